"""Training reads all positions at once; generating makes one after the other. What each costs, and what must be kept.

A self-attention layer keeps keys and values of all positions so far, and looks at all of them for each new one. A
recurrent layer keeps one state, and a step costs the same wherever it stands.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tinytransformer.experiments.layer_kinds import Recurrent, SelfAttention, heads_for
from tinytransformer.experiments.measuring import in_turns
from tinytransformer.model.attention import MultiHeadAttention
from tinytransformer.model.cache import Cache, KeyValue
from tinytransformer.model.config import PRESETS, TransformerConfig
from tinytransformer.model.masks import causal_mask
from tinytransformer.model.transformer import Transformer

RECURRENT: dict[str, tuple[type[nn.RNNBase], type[nn.RNNCellBase]]] = {
    "recurrent": (nn.RNN, nn.RNNCell),
    "LSTM": (nn.LSTM, nn.LSTMCell),
}
ATTENTION = "self-attention"


def training_step(layer: nn.Module, batch: int, n: int, d: int) -> Callable[[], None]:
    """One forward and backward pass over random sequences, as a task to be timed; gradients are dropped."""
    x = torch.randn(batch, n, d, requires_grad=True)

    def run() -> None:
        layer(x).sum().backward()
        x.grad = None
        layer.zero_grad(set_to_none=True)

    return run


def throughput(lengths: Sequence[int], d: int, tokens: int, rounds: int) -> list[dict]:
    """Positions a second in training, forward and backward, with ``tokens`` positions in each batch."""
    layers: dict[str, nn.Module] = {ATTENTION: SelfAttention(MultiHeadAttention(d, heads_for(d)), causal_mask)}
    layers |= {name: Recurrent(whole(d, d, batch_first=True)) for name, (whole, _) in RECURRENT.items()}
    sizes = [(name, n, max(1, tokens // n)) for n in lengths for name in layers]
    seconds = in_turns({size: training_step(layers[size[0]], size[2], size[1], d) for size in sizes}, rounds)
    return [
        {"kind": name, "n": n, "d": d, "batch": batch, "tokens_per_second": [batch * n / value for value in values]}
        for (name, n, batch), values in seconds.items()
    ]


def latency(lengths: Sequence[int], d: int, rounds: int) -> list[dict]:
    """Seconds for one new position when n - 1 stand before it, one sequence at a time, and the bytes kept for it."""
    attention = MultiHeadAttention(d, heads_for(d))
    tasks: dict[tuple[str, int], Callable[[], tuple[Tensor, ...]]] = {}
    for n in lengths:
        tasks[ATTENTION, n] = attention_step(attention, n)
        tasks |= {(name, n): recurrent_step(cell(d, d)) for name, (_, cell) in RECURRENT.items()}
    kept = {size: sum(tensor.nbytes for tensor in run()) for size, run in tasks.items()}
    seconds = in_turns(tasks, rounds)
    return [
        {"kind": name, "n": n, "d": d, "bytes_kept": kept[name, n], "seconds": values}
        for (name, n), values in seconds.items()
    ]


def attention_step(attention: MultiHeadAttention, n: int) -> Callable[[], tuple[Tensor, ...]]:
    """The n-th position, given a cache of the n - 1 before it; returns what must be kept. The cache grows by a copy."""
    if n < 2:
        raise ValueError(f"n={n} leaves nothing to look back at: measure the second position or a later one")
    new = torch.randn(1, 1, attention.d_model)
    with torch.inference_mode():
        past = attention.keys_values(*(torch.randn(1, n - 1, attention.d_model) for _ in range(2)))

    @torch.inference_mode()
    def run() -> tuple[Tensor, ...]:
        seen = past.append(attention.keys_values(new, new))
        attention.attend(new, seen)
        return seen.key, seen.value

    return run


def recurrent_step(cell: nn.RNNCellBase) -> Callable[[], tuple[Tensor, ...]]:
    """The next position, given the state before it; returns what must be kept."""
    new, state = torch.randn(1, cell.input_size), torch.randn(1, cell.hidden_size)
    before = (state, state) if isinstance(cell, nn.LSTMCell) else state

    @torch.inference_mode()
    def run() -> tuple[Tensor, ...]:
        after = cell(new, before)
        return after if isinstance(after, tuple) else (after,)

    return run


def cache_formula(config: TransformerConfig, source: int, target: int, rows: int, number_bytes: int = 4) -> dict:
    """Bytes that decoding keeps for one sentence of ``source`` tokens and ``rows`` translations of ``target`` tokens.

    2 · layers · n · d_model numbers for each translation's own positions, and the same once for the sentence's.
    """
    a_position = 2 * config.num_layers * config.d_model * number_bytes
    return {"own positions": a_position * target * rows, "the sentence": a_position * source}


def cache_bytes(cache: Cache) -> dict:
    """The same two, added up over the tensors of a real cache."""

    def total(kept: list[KeyValue | None]) -> int:
        return sum(each.key.nbytes + each.value.nbytes for each in kept if each is not None)

    return {
        "own positions": total([layer.past for layer in cache.layers]),
        "the sentence": total([layer.memory for layer in cache.layers]),
    }


@torch.inference_mode()
def filled_cache(config: TransformerConfig, source: int, target: int, rows: int) -> Cache:
    """The cache of a model of this configuration after ``target`` tokens of ``rows`` translations of one sentence."""
    model = Transformer(config).eval()
    memory = model.encode(torch.randint(3, config.vocab_size, (1, source)))
    cache = model.decoder.start(memory).select(torch.zeros(1, rows, dtype=torch.int64))
    return model.step(torch.randint(3, config.vocab_size, (rows, target)), memory, cache)[1]


def cache_sizes(lengths: Sequence[int], rows: int = 4) -> list[dict]:
    """Formula and measurement for the presets, for a source and a target of n tokens each and a beam of ``rows``."""
    found = []
    for preset in ("small", "base"):
        for n in lengths:
            # The vocabulary plays no part in a cache: a small one builds fast.
            config = TransformerConfig(vocab_size=100, max_length=max(lengths), **PRESETS[preset])
            sizes = {
                "formula": cache_formula(config, n, n, rows),
                "measured": cache_bytes(filled_cache(config, n, n, rows)),
            }
            found.append({"preset": preset, "n": n, "beam": rows, **sizes})
    return found
