"""Exercises of lesson 03 about what a mask lets through: over several layers, and in somebody's model."""

import torch
from torch import Tensor

from tinytransformer.model.masks import causal_mask, window_mask
from tinytransformer.teaching.exercises import Exercise, Mistake

# --- how far a window reaches


def _reach_cases() -> list[tuple]:
    skipping = torch.ones(7, 7).tril().triu(-2).bool() & ~torch.eye(7, dtype=torch.bool)  # the two before, not oneself
    return [(window_mask(9, 1), 1), (window_mask(9, 2), 3), (skipping, 2), (causal_mask(5), 4)]


def _reach(mask: Tensor, layers: int) -> Tensor:
    return torch.linalg.matrix_power(mask.double(), layers) > 0


REACH = Exercise(
    "reach_after",
    reference=_reach,
    cases=_reach_cases,
    mistakes=(
        Mistake("one-layer-too-many", "One layer too many: after one layer the reach is the mask itself.",
                lambda m, layers: _reach(m, layers + 1)),
        Mistake("one-layer-too-few", "One layer too few: the reach after one layer is the mask, not the diagonal.",
                lambda m, layers: _reach(m, layers - 1)),
        Mistake("one-layer-only", "However many layers there are, you return the mask. Entry by entry, True and True "
                "is True: what is needed is a step from i to k and one from k to j.", lambda m, layers: m),
        Mistake("transposed", "Rows and columns are exchanged: rows are the positions that look.",
                lambda m, layers: _reach(m, layers).T),
        Mistake("always-doubled", "Each step multiplies what you have by itself, so the reach doubles. A layer adds "
                "one step.", lambda m, layers: _reach(m, 2 ** (layers - 1))),
        Mistake("stays-in-place", "You also keep what shorter ways reach. A mask that hides a position from itself "
                "lets nothing stay in place.", lambda m, layers: sum(_reach(m, n + 1) for n in range(layers)) > 0),
        Mistake("numbers", "These are numbers of ways. Asked for is whether there is one: True or False.",
                lambda m, layers: torch.linalg.matrix_power(m.double(), layers)),
    ),
)  # fmt: skip


# --- who influences whom


def _model(pattern: Tensor, seed: int, silent: int = 2):
    """A model of which we know who looks at whom: each output sums features of the tokens in its row of the pattern.

    The ``silent`` features tell nothing, and neither does the sum of all.
    """
    number = torch.randperm(10, generator=torch.Generator().manual_seed(seed)).float() + 1
    features = torch.stack([*torch.ones(silent, 10), number, -number], dim=1)

    def model(ids: Tensor) -> Tensor:
        return pattern.float() @ features[ids]

    return model


def _influence_cases() -> list[tuple]:
    scattered = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]]).bool()
    ids = torch.tensor([4, 2, 7, 5, 3])
    return [
        (_model(causal_mask(5), seed=1), ids, 9),
        (_model(torch.ones(5, 5).tril(1), seed=2, silent=0), ids, 8),
        (_model(scattered, seed=3), ids[:4], 0),
    ]


def _influence(model, ids: Tensor, replacement: int, restore: bool = True, judge=torch.any) -> Tensor:
    before, columns, changed = model(ids), [], ids.clone()
    for place in range(len(ids)):
        changed = ids.clone() if restore else changed
        changed[place] = replacement
        columns.append(judge(model(changed) != before, dim=-1))
    return torch.stack(columns, dim=1)


def _influence_of_sums(model, ids: Tensor, replacement: int) -> Tensor:
    return _influence(lambda tokens: model(tokens).sum(-1, keepdim=True), ids, replacement)


INFLUENCE = Exercise(
    "influence",
    reference=_influence,
    cases=_influence_cases,
    mistakes=(
        Mistake("transposed", "Rows and columns are exchanged: entry [i, j] asks about output i and token j.",
                lambda *inputs: _influence(*inputs).T),
        Mistake("changes-pile-up", "Each token stays replaced while the next one is tried. Begin each time with the "
                "sentence as it was.", lambda *inputs: _influence(*inputs, restore=False)),
        Mistake("all-features", "An output counts as changed only if every feature of it changed. One is enough.",
                lambda *inputs: _influence(*inputs, judge=torch.all)),
        Mistake("sum-of-features", "The features of an output are added up before they are compared, and changes "
                "cancel. Compare feature by feature.", _influence_of_sums),
        Mistake("inverted", "True stands where nothing changed.", lambda *inputs: ~_influence(*inputs)),
        Mistake("future-only", "Only leaks are marked. Asked for is every influence, the allowed ones, too.",
                lambda *inputs: _influence(*inputs).triu(1)),
    ),
)  # fmt: skip
