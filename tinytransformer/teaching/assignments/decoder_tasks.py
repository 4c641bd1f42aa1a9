"""A task of assignment 2: a decoder layer that goes on from a past."""

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.head_tasks import packed_attention
from tinytransformer.teaching.assignments.layer_tasks import ATTENTION, layer_norm, layer_weights, network
from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task


def _mask(new: int, real: Tensor, shift: int = 0) -> Tensor:
    """What new tokens may see, (B, T, P + T): the last of all positions are theirs."""
    return torch.ones(new, real.size(1), dtype=torch.bool).tril(real.size(1) - new + shift) & real[:, None, :]


def _decoder(shift=lambda past: 0, rows=lambda kept: kept, see=None, ask=lambda x, h: h, add=lambda x, h: h):
    """The right answer, or one that differs in one of these. ``rows`` may change who counts as real: target, source;
    ``see`` what is looked at and its mask; ``ask`` what cross-attention asks with; ``add`` what is added to a part."""

    def decoder_layer(x, past, memory, target_real, source_real, weights, num_heads) -> Tensor:
        target, source = rows([target_real, source_real])
        seen, mask = torch.cat([past, x], dim=1), _mask(x.size(1), target, shift(past.size(1)))
        if see is not None:
            seen, mask = see(past, x, mask)
        source_mask = source[:, None, :].expand(-1, x.size(1), -1)
        parts = (
            lambda h: packed_attention(h, seen, weights["self"], num_heads, mask),
            lambda h: packed_attention(ask(x, h), memory, weights["cross"], num_heads, source_mask),
            lambda h: network(h, weights),
        )
        h = x
        for number, part in enumerate(parts, start=1):
            h = layer_norm(add(x, h) + part(h), weights, number)
        return h

    return decoder_layer


def _pre_norm(x, past, memory, target_real, source_real, weights, num_heads) -> Tensor:
    seen, mask = layer_norm(torch.cat([past, x], dim=1), weights, 1), _mask(x.size(1), target_real)
    x = x + packed_attention(layer_norm(x, weights, 1), seen, weights["self"], num_heads, mask)
    source_mask = source_real[:, None, :].expand(-1, x.size(1), -1)
    x = x + packed_attention(layer_norm(x, weights, 2), memory, weights["cross"], num_heads, source_mask)
    return x + network(layer_norm(x, weights, 3), weights)


def _decoder_case(batch: int, past: int, new: int, source: int, heads: int, size: int, seed: int) -> tuple:
    """The first sentence has padding in front of its words; the last source is padded behind."""
    lengths, d_model = (new, past, source), heads * size
    x, before, memory = (2 * random(batch, n, d_model, seed=seed + i) if n else torch.zeros(batch, 0, d_model)
                         for i, n in enumerate(lengths))  # fmt: skip
    target_real, source_real = (torch.ones(batch, n, dtype=torch.bool) for n in (past + new, source))
    target_real[0, 0], source_real[-1, -2:] = False, False
    weights = layer_weights(d_model, d_model + 3, ("self", "cross"), seed + 3)
    return x, before, memory, target_real, source_real, weights, heads


def _by_hand() -> tuple:
    """Two new tokens after two, no padding: the mask of the task's text."""
    x, past, memory, target_real, source_real, *rest = _decoder_case(1, 2, 2, 3, 2, 2, seed=200)
    return x, past, memory, torch.ones_like(target_real), torch.ones_like(source_real), *rest


def _decoder_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    past, new, size = (2 + int(number) for number in torch.randint(0, 4, (3,), generator=dice))
    return [
        Case("several new tokens after a past", _decoder_case(2, past, new + 1, past + new + 3, 2, size, seed)),
        Case("one new token after a past", _decoder_case(2, past + 1, 1, past + new + 1, 2, size, seed + 100)),
        Case("no past, padding in front", _decoder_case(2, 0, new + 1, new + 2, 3, 2, seed + 200)),
        Case("three sentences", _decoder_case(3, past, new, past + new + 1, 2, size, seed + 300)),
    ]


DECODER = Task(
    Exercise(
        "decoder_layer",
        reference=_decoder(),
        cases=lambda: [_decoder_case(2, 2, 3, 4, 2, 3, 1), _decoder_case(2, 0, 3, 4, 2, 2, 100), _by_hand()],
        mistakes=(
            Mistake("past-forgotten", "New tokens look at each other only. The past belongs to the keys and values.",
                    _decoder(see=lambda past, x, mask: (x, mask[:, :, past.size(1) :]))),
            Mistake("new-before-past", "The new tokens stand in front of the past among the keys. They come behind it, "
                    "and the mask counts on that.",
                    _decoder(see=lambda past, x, mask: (torch.cat([x, past], dim=1), mask))),
            Mistake("top-left", "Right without a past. With one, the first new token stands behind all of it; your "
                    "mask begins at the first key.", _decoder(shift=lambda past: -past)),
            Mistake("not-causal", "New tokens see new tokens that come after them.",
                    _decoder(shift=lambda past: 10_000)),
            Mistake("not-oneself", "A new token does not see itself. It must: the target is shifted by one.",
                    _decoder(shift=lambda past: -1)),
            Mistake("target-padding-seen", "Padding among the target's tokens is seen.",
                    _decoder(rows=lambda kept: [torch.ones_like(kept[0]), kept[1]])),
            Mistake("source-padding-seen", "Padding in the memory is seen.",
                    _decoder(rows=lambda kept: [kept[0], torch.ones_like(kept[1])])),
            Mistake("cross-asks-with-the-input", "The cross-attention asks with the layer's own input. It asks with "
                    "what self-attention and the first norm made.", _decoder(ask=lambda x, h: x)),
            Mistake("residual-from-the-input", "Every part's result is added to the layer's own input. Each residual "
                    "connection begins where its part begins.", _decoder(add=lambda x, h: x)),
            Mistake("pre-norm", "The norms stand in front of the parts. The paper's layer has them behind the sums.",
                    _pre_norm),
        ),
    ),
    points=16,
    minutes=30,
    hidden=_decoder_hidden,
    given=ATTENTION,
)  # fmt: skip
