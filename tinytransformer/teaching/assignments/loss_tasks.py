"""Tasks of assignment 3 about the loss: a smoothed target, and the loss with its gradient, by hand;
and texts with logits, on which losses are measured."""

from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.telling import dice_of, number
from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task

IMPORTS = "import torch\nfrom torch import Tensor\n\n\n"

# --- the target


def smoothed_targets(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = torch.full((*targets.shape, vocab_size), smoothing / (vocab_size - 1))
    wanted.scatter_(-1, targets[..., None], 1 - smoothing + smoothing / (vocab_size - 1))
    wanted[..., pad_id] = 0.0
    return wanted * (targets != pad_id)[..., None]


def _target(right, other, keep_rows: bool = False, keep_column: bool = False):
    """``right`` and ``other``: from ε and V to the shares of the right token and of each other token."""

    def smoothed(targets: Tensor, size: int, eps: float, pad_id: int) -> Tensor:
        hot = torch.nn.functional.one_hot(targets, size).bool()
        wanted = torch.where(hot, right(eps, size), torch.full(hot.shape, other(eps, size)))
        if not keep_column:
            wanted[..., pad_id] = 0.0
        return wanted if keep_rows else wanted * (targets != pad_id)[..., None]

    return smoothed


def _right(eps: float, size: int) -> float:
    return 1 - eps + eps / (size - 1)


def _share(eps: float, size: int) -> float:
    return eps / (size - 1)


def _padding_predicted(targets: Tensor, size: int, eps: float, pad_id: int) -> Tensor:
    wanted = smoothed_targets(targets, size, eps, pad_id)
    wanted[targets == pad_id] = eps / (size - 1)
    wanted[..., pad_id] = torch.where(targets == pad_id, 1 - eps, 0.0)
    return wanted


def _words(rows: int, length: int, size: int, pad_id: int, dice: torch.Generator) -> Tensor:
    """Target ids without padding: any id but the padding's."""
    words = torch.randint(1, size, (rows, length), generator=dice)
    return (pad_id + words) % size


def _target_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    size, pad_id = number(6, 9, dice), number(2, 4, dice)
    eps = number(10, 30, dice) / 100
    padded, other = _words(2, 5, size, 0, dice), _words(3, 4, size, pad_id, dice)
    padded[0, number(2, 4, dice) :] = 0
    other[1, 2:], other[2] = pad_id, pad_id
    return [
        Case("a sentence with padding behind it", (padded, size, eps, 0)),
        Case("another padding id, and a row that is all padding", (other, size + 2, 0.1, pad_id)),
        Case("no smoothing", (padded, size, 0.0, 0)),
        Case("one token only", (_words(1, 1, size, 0, dice), size, eps, 0)),
    ]


TARGETS = Task(
    Exercise(
        "smoothed_targets",
        reference=smoothed_targets,
        cases=lambda: [
            (torch.tensor([[2, 4, 1], [3, 0, 0]]), 5, 0.1, 0),
            (torch.tensor([[0, 5], [3, 3]]), 6, 0.3, 3),
            (torch.tensor([[1, 2, 0]]), 4, 0.0, 0),
        ],
        mistakes=(
            Mistake("padding-gets-a-share", "ε is spread over all V tokens, as in the lesson. Here nobody shall write "
                    "padding: its column was to be 0.",
                    _target(lambda e, v: 1 - e + e / v, lambda e, v: e / v, keep_column=True)),
            Mistake("share-of-padding-lost", "The padding's column is 0, but its share went nowhere: rows no longer "
                    "sum to one.", _target(lambda e, v: 1 - e + e / v, lambda e, v: e / v)),
            Mistake("spread-over-the-others", "ε is spread over the wrong tokens only. The right token has its share "
                    "of ε, too.", _target(lambda e, v: 1 - e, lambda e, v: e / (v - 2))),
            Mistake("right-token-without-share", "The right token has 1 − ε, without its share of ε: rows sum to less "
                    "than one.", _target(lambda e, v: 1 - e, _share)),
            Mistake("taken-from-nobody", "ε was given to all but taken from nobody: rows sum to more than one.",
                    _target(lambda e, v: 1 + e / (v - 1), _share)),
            Mistake("padding-rows-kept", "Where the target is padding the row was to be all 0.",
                    _target(_right, _share, keep_rows=True)),
            Mistake("padding-predicted", "Where the target is padding the model is asked to write padding: that row "
                    "was to be all 0.", _padding_predicted),
            Mistake("not-smoothed", "The smoothing has no effect.", _target(lambda e, v: 1.0, lambda e, v: 0.0)),
        ),
    ),
    points=10,
    minutes=15,
    hidden=_target_hidden,
)  # fmt: skip


# --- the loss and its gradient

TARGETS_GIVEN = IMPORTS + getsource(smoothed_targets)


def _loss(
    over=lambda real: real.sum(), gradient_over=None, gradient=lambda p, wanted, hot: p - wanted, pads=False, log=None
):
    """The right pair, or one with other counts, another gradient, padding in it or another logarithm."""

    def loss_and_gradient(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
        size, real = logits.size(-1), targets != pad_id
        wanted, hot = (smoothed_targets(targets, size, eps, pad_id) for eps in (smoothing, 0.0))
        logs = log(logits) if log else logits.log_softmax(-1)
        slope = gradient(logits.softmax(-1), wanted, hot) * (1.0 if pads else real[..., None])
        return -(wanted * logs).sum() / over(real), slope / (gradient_over or over)(real)

    return loss_and_gradient


def _logits(rows: int, length: int, size: int, seed: int, far: int | None = None) -> Tensor:
    logits = random(rows, length, size, seed=seed, spread=2.0)
    if far is not None:
        logits[..., far] -= 400.0
    return logits


def _loss_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    size, pad_id = number(6, 9, dice), number(2, 4, dice)
    padded, other = _words(2, 5, size, 0, dice), _words(3, 4, size, pad_id, dice)
    padded[0, number(2, 4, dice) :] = 0
    other[1, 2:], other[2] = pad_id, pad_id
    eps = number(10, 30, dice) / 100
    base = 10 * number(1, 10**6, dice)
    return [
        Case("a sentence with padding behind it", (_logits(2, 5, size, base), padded, eps, 0)),
        Case("another padding id, and a row of padding", (_logits(3, 4, size, base + 1), other, 0.1, pad_id)),
        Case("no smoothing", (_logits(2, 5, size, base + 2), padded, 0.0, 0)),
        Case("a token that is next to impossible", (_logits(2, 5, size, base + 3, far=1), padded, eps, 0)),
    ]


LOSS = Task(
    Exercise(
        "loss_and_gradient",
        reference=_loss(),
        cases=lambda: [
            (_logits(2, 3, 5, 1), torch.tensor([[2, 4, 1], [3, 0, 0]]), 0.1, 0),
            (_logits(2, 2, 6, 2), torch.tensor([[0, 5], [4, 3]]), 0.0, 3),
            (_logits(1, 3, 5, 3, far=1), torch.tensor([[3, 2, 0]]), 0.2, 0),
        ],
        mistakes=(
            Mistake("gradient-at-padding", "Padding has a gradient, though it adds nothing to the loss.",
                    _loss(pads=True)),
            Mistake("divided-by-all", "Padding is left out of the sum, but counted when you divide.",
                    _loss(over=lambda real: real.numel())),
            Mistake("summed", "Nothing was divided: asked for is the mean over real tokens.", _loss(lambda real: 1)),
            Mistake("gradient-of-the-sum", "The loss is right. The gradient is that of the sum: the mean divides it, "
                    "too.", _loss(gradient_over=lambda real: 1)),
            Mistake("sign", "The loss is right. The gradient has the wrong sign: the loss *falls* in its direction.",
                    _loss(gradient=lambda p, wanted, hot: wanted - p)),
            Mistake("of-probabilities", "This is the gradient with respect to the probabilities. The softmax "
                    "still stands between them and the logits.",
                    _loss(gradient=lambda p, wanted, hot: -wanted / p)),
            Mistake("gradient-of-the-logarithms", "This is the gradient with respect to the log-probabilities. A logit "
                    "changes the log-probability of every token.", _loss(gradient=lambda p, wanted, hot: -wanted)),
            Mistake("gradient-not-smoothed", "The loss is smoothed, its gradient is not.",
                    _loss(gradient=lambda p, wanted, hot: p - hot)),
            Mistake("logarithm-of-zero", "Where a probability is 0 in float32 its logarithm is −∞: take the logarithm "
                    "without going through the probability.", _loss(log=lambda logits: logits.softmax(-1).log())),
        ),
    ),
    points=13,
    minutes=25,
    hidden=_loss_hidden,
    given=TARGETS_GIVEN,
    forbidden=("backward", "grad", "make_dual"),  # by hand: autograd neither backwards nor forwards
)  # fmt: skip


# --- texts in batches, for the perplexity

Batches = list[tuple[Tensor, Tensor]]


def scored_text(
    sizes: list[tuple[int, int]], size: int, pad_id: int, seed: int, dice: torch.Generator, silent: int | None = None
) -> tuple[Batches, int]:
    """Logits and targets of batches of these sizes, one of which may be ``silent``: all padding."""
    batches = []
    for place, (rows, length) in enumerate(sizes):
        targets = _words(rows, length, size, pad_id, dice)
        targets[0, length - place % 3 :] = pad_id
        if place == silent:
            targets.fill_(pad_id)
        batches.append((random(rows, length, size, seed=seed + place, spread=1.5), targets))
    return batches, pad_id


def surprised(batches: Batches, pad_id: int) -> tuple[Batches, int]:
    """The same, with a right token in the last batch whose probability is 0 in float32."""
    logits, targets = batches[-1]
    logits[-1, 0, targets[-1, 0]] -= 130.0
    return batches, pad_id
