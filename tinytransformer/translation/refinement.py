"""Less sequential decoding: write all positions at once, then refine (mask-predict, Ghazvininejad et al. 2019).

A sequential decoder needs one pass per token. Here a pass predicts every token, and the number of passes is chosen: all
places begin as blanks; after each pass the tokens that the model was least sure of become blanks again, fewer each
time.

The model is ours with two changes. Its decoder sees the whole target, blanks included, not only the past; and since
nothing says when to stop, it guesses the length first, from the encoder's output. The start token begins no sentence
here, so it serves as the blank.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytransformer.model.cache import Memory
from tinytransformer.model.masks import padding_mask
from tinytransformer.model.transformer import Transformer, TransformerConfig
from tinytransformer.text.batching import Batch
from tinytransformer.training.loss import projected_loss
from tinytransformer.translation.greedy import Hypothesis

FARTHEST = 24  # tokens that a target may be shorter or longer than its source


class RefiningTransformer(Transformer):
    """A conditional masked language model: source ids and a target with blanks to logits for every place."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.length = nn.Linear(config.d_model, 2 * FARTHEST + 1)
        nn.init.zeros_(self.length.weight)
        nn.init.zeros_(self.length.bias)

    @property
    def blank_id(self) -> int:
        """What stands where nothing is known yet."""
        return self.config.start_id

    def length_logits(self, memory: Memory) -> Tensor:
        """One score per difference of target and source length, -FARTHEST … FARTHEST: (B, 2 · FARTHEST + 1).

        What each word adds or saves is summed, so a sum, not a mean, of the encoder's states is looked at.
        """
        real = memory.mask[:, 0, 0, :, None]  # (B, S, 1)
        return self.length((memory.states * real).sum(1) / 16)

    def likely_lengths(self, memory: Memory, number: int = 1) -> Tensor:
        """The likeliest target lengths (B, number)."""
        source = memory.mask[:, 0, 0].sum(-1, keepdim=True) - 1  # the end token does not count
        differences = self.length_logits(memory).topk(number).indices - FARTHEST
        return (source + differences).clamp(1, self.config.max_length)

    def _causal(self, ids: Tensor, offset: int = 0) -> Tensor:
        """Not causal here: every place of the target sees every other, but for padding."""
        return self._within_window(padding_mask(ids, self.config.pad_id), ids.size(1), offset)


def blanks(lengths: Tensor, width: int, generator: torch.Generator | None = None) -> Tensor:
    """Which places to hide in training (B, width): of each target a number between one and all, anywhere in it.

    Without a generator PyTorch's own is used, as by dropout.
    """

    def draw(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator).to(lengths.device)

    number = 1 + (draw(len(lengths)) * lengths).long()  # 1 … length
    return lowest(draw(len(lengths), width), lengths, number)


def lowest(values: Tensor, lengths: Tensor, number: Tensor) -> Tensor:
    """True at the ``number`` (B) lowest of the first ``lengths`` (B) values of each row (B, width)."""
    real = torch.arange(values.size(1), device=values.device) < lengths[:, None]
    ranks = values.masked_fill(~real, float("inf")).argsort(-1).argsort(-1)
    return (ranks < number[:, None]) & real


def refinement_loss(
    model: RefiningTransformer, batch: Batch, smoothing: float = 0.0, agreement: float = 0.0
) -> tuple[Tensor, int]:
    """For the training loop: the loss of hidden tokens, as if all had been hidden, and of the length."""
    if agreement:
        raise ValueError(f"agreement={agreement} is for sequential models: leave it at 0")
    c = model.config
    target = batch.target_out[:, :-1].masked_fill(batch.target_out[:, :-1] == c.end_id, c.pad_id)
    lengths = (target != c.pad_id).sum(-1)
    hidden = blanks(lengths, target.size(1))
    memory = model.encode(batch.source)
    states = model.decode(target.masked_fill(hidden, model.blank_id), memory)[hidden][None]  # (1, N, D)
    output = model.embedding
    loss = projected_loss(states, output.output_matrix, output.output_bias, target[hidden], smoothing)
    differences = lengths - (memory.mask[:, 0, 0].sum(-1) - 1)
    classes = (differences + FARTHEST).clamp(0, 2 * FARTHEST)
    of_length = F.cross_entropy(model.length_logits(memory).float(), classes, reduction="sum")
    count = batch.num_targets
    return loss * (count / max(1, int(hidden.sum()))) + of_length, count


def left(length: Tensor | int, iterations: int, done: int) -> Tensor | int:
    """How many tokens of a length become blanks again after ``done`` of all passes: (T - t) / T of them."""
    return length * (iterations - done) // iterations


@dataclass(frozen=True, eq=False)
class Draft:
    """A translation after one pass: ids (B, T), how sure each token was when written, and which were written now."""

    ids: Tensor
    log_probabilities: Tensor
    written: Tensor


@torch.no_grad()
def drafts(model: RefiningTransformer, memory: Memory, lengths: Tensor, iterations: int) -> Iterator[Draft]:
    """The translations of given lengths (B · K), K of each sentence, after every pass of the decoder.

    After a pass the least sure tokens become blanks again, `left` of them; the last draft has none. What is kept keeps
    the probability it was written with.
    """
    if iterations < 1:
        raise ValueError(f"iterations={iterations} must be at least 1 pass")
    c = model.config
    real = torch.arange(int(lengths.max()), device=lengths.device) < lengths[:, None]
    ids = torch.where(real, model.blank_id, c.pad_id)
    sure = torch.zeros(ids.shape, device=ids.device)
    never = torch.tensor(sorted({c.pad_id, c.start_id, c.end_id}), device=ids.device)
    cache = model.decoder.start(memory)  # the source is projected once for all passes
    hidden = real
    for number in range(1, iterations + 1):
        x = model._embed(model.embedding.target(ids))
        states, _ = model.decoder.step(x, cache, model._causal(ids))
        logits = model.logits(states[hidden]).float().index_fill(-1, never, float("-inf"))  # (N, V)
        best, tokens = logits.log_softmax(-1).max(-1)
        ids, sure = ids.masked_scatter(hidden, tokens), sure.masked_scatter(hidden, best)
        yield Draft(ids, sure, hidden)
        hidden = lowest(sure, lengths, left(lengths, iterations, number))
        if not hidden.any():
            return
        ids = ids.masked_fill(hidden, model.blank_id)


@torch.no_grad()
def refine(model: RefiningTransformer, source: Tensor, iterations: int = 4, candidates: int = 1) -> list[Hypothesis]:
    """Translate source ids (B, S) in so many passes; the length takes the end token's place in the log-probability.

    With more ``candidates`` the likeliest lengths are tried side by side and the best translation by mean is kept.
    Departure: the paper ranks by the tokens alone; ours are as sure of themselves at a wrong length.
    """
    if not 1 <= candidates <= 2 * FARTHEST + 1:
        raise ValueError(f"candidates={candidates} lengths cannot be tried: choose 1 to {2 * FARTHEST + 1}")
    memory = model.encode(source)
    lengths = model.likely_lengths(memory, candidates)  # (B, K)
    of_length = model.length_logits(memory).float().log_softmax(-1).topk(candidates).values
    *_, last = drafts(model, memory, lengths.flatten(), iterations)
    totals = last.log_probabilities.sum(-1).view_as(lengths) + of_length
    best = (totals / lengths).argmax(-1)
    rows = best + torch.arange(len(best), device=best.device) * candidates
    found = zip(last.ids[rows].tolist(), lengths.flatten()[rows].tolist(), totals.flatten()[rows].tolist(), strict=True)
    return [Hypothesis(tuple(ids[:length]), total, total / length) for ids, length, total in found]
