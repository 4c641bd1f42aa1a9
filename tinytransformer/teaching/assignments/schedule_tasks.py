"""Tasks of assignment 3 about the length of a step: the warm-up after a restart, and Adam behind a clip."""

from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched
from tinytransformer.teaching.grading.tasks import Case, Task

# --- the learning rate after a restart


def rates_after(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    return [peak * min(step / warmup, (warmup / step) ** 0.5) for step in range(done + 1, done + steps + 1)]


def _rates(curve, first=lambda done: done + 1):
    """Rates by another curve, a function of step and warm-up, or from another first step on."""
    return lambda done, steps, warmup, peak: [
        peak * curve(step, warmup) for step in range(first(done), first(done) + steps)
    ]


def _usual(step: int, warmup: int) -> float:
    return step / warmup if step < warmup else (warmup / step) ** 0.5


def _shares(arguments: tuple, answer):
    """Rates are small numbers: they are compared as shares of the highest one."""
    return answer if untouched(answer) else torch.tensor([float(rate) for rate in answer]) / arguments[3]


def _rates_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    warmup = number(5, 9, dice)
    peak = number(5, 40, dice) / 10_000
    return [
        Case("a run from its first step on, through the warm-up and beyond", (0, 3 * warmup, warmup, peak)),
        Case("a run that goes on in the middle of the warm-up", (number(2, 3, dice), warmup, warmup, 2 * peak)),
        Case("a run that goes on after the warm-up", (warmup + number(1, 9, dice), 6, warmup, peak)),
        Case("a warm-up of one step", (0, number(4, 7, dice), 1, peak)),
        Case("one step only", (number(0, 2, dice), 1, warmup, peak)),
    ]


RATES = Task(
    Exercise(
        "rates_after",
        reference=rates_after,
        cases=lambda: [(0, 10, 4, 0.002), (2, 4, 4, 0.001), (6, 3, 5, 0.004), (0, 3, 1, 0.001)],
        normal=_shares,
        mistakes=(
            Mistake("counted-from-zero", "Every rate comes one step late: a new run begins with a rate of 0 and "
                    "changes nothing. Steps are counted from 1.", _rates(_usual, first=lambda done: done)),
            Mistake("warms-up-again", "After a restart the warm-up begins anew. The steps that were done count.",
                    _rates(_usual, first=lambda done: 1)),
            Mistake("peak-not-reached", "The highest rate is not `peak`: the paper's formula was multiplied by it. "
                    "What is that formula's own highest value, and at which step?",
                    _rates(lambda step, warmup: min(step**-0.5, step * warmup**-1.5))),
            Mistake("larger-of-the-two", "The larger of the two branches is taken.",
                    _rates(lambda step, warmup: max(step / warmup, (warmup / step) ** 0.5))),
            Mistake("falls-too-fast", "After the warm-up it falls like 1 / step. The paper's falls like 1 / √step.",
                    _rates(lambda step, warmup: min(step / warmup, warmup / step))),
            Mistake("no-fall", "After the warm-up the rate stays where it is.",
                    _rates(lambda step, warmup: min(step / warmup, 1.0))),
            Mistake("fall-counted-from-the-peak", "The falling branch counts its steps from the end of the warm-up. "
                    "The root is taken of the number of all steps.",
                    _rates(lambda step, warmup: min(step / warmup, max(step - warmup + 1, 1) ** -0.5))),
        ),
    ),
    points=8,
    minutes=10,
    hidden=lambda seed: telling(RATES.exercise, _rates_hidden, seed),
)  # fmt: skip


# --- Adam behind a clip

Parts = list[Tensor]


def adam_step(
    weights: Parts, gradients: Parts, m: Parts, v: Parts, step: int, rate: float, clip: float, eps: float
) -> tuple[Parts, Parts, Parts]:
    norm = sum(float(one.square().sum()) for one in gradients) ** 0.5
    share = clip / norm if norm > clip else 1.0
    m = [0.9 * old + 0.1 * share * new for old, new in zip(m, gradients, strict=True)]
    v = [0.98 * old + 0.02 * (share * new).square() for old, new in zip(v, gradients, strict=True)]
    moves = [one / (1 - 0.9**step) / ((two / (1 - 0.98**step)).sqrt() + eps) for one, two in zip(m, v, strict=True)]
    return [weight - rate * move for weight, move in zip(weights, moves, strict=True)], m, v


ADAM_GIVEN = "Parts = list\n\n\n" + getsource(adam_step)


def _shortened(gradients: Parts, clip: float) -> Parts:
    norm = sum(float(one.square().sum()) for one in gradients) ** 0.5
    return [one * (clip / norm) if norm > clip else one for one in gradients]


def _stretched(gradients: Parts, clip: float) -> Parts:
    norm = sum(float(one.square().sum()) for one in gradients) ** 0.5
    return [one * (clip / norm) if norm else one for one in gradients]


def _step(shorten=_shortened, beta_2=0.98, fair=lambda beta, step: 1 - beta**step, inside=False, kept=False):
    """A wrong step: with another clip, memory or correction, ε inside the root, or corrected averages handed on."""

    def wrong(weights, gradients, m, v, step, rate, clip, eps):
        gradients = shorten(gradients, clip)
        m = [0.9 * old + 0.1 * new for old, new in zip(m, gradients, strict=True)]
        v = [beta_2 * old + (1 - beta_2) * new.square() for old, new in zip(v, gradients, strict=True)]
        fair_m, fair_v = ([one / fair(beta, step) for one in part] for beta, part in ((0.9, m), (beta_2, v)))
        roots = [(one + eps).sqrt() if inside else one.sqrt() + eps for one in fair_v]
        found = [w - rate * one / root for w, one, root in zip(weights, fair_m, roots, strict=True)]
        return (found, fair_m, fair_v) if kept else (found, m, v)

    return wrong


def _nothing_remembered(weights, gradients, m, v, *settings):
    zeros = [torch.zeros_like(one) for one in weights]
    return adam_step(weights, gradients, zeros, zeros, *settings)


def _step_case(sizes: list[tuple[int, ...]], step: int, length: float, settings: tuple, seed: int) -> tuple:
    """``length`` is that of all gradients together; before the first step both averages are 0."""
    weights, gradients, m, v = (
        [random(*size, seed=seed + 10 * k + i) for i, size in enumerate(sizes)] for k in range(4)
    )
    gradients = _stretched(gradients, length)
    m, v = [0.3 * one * (step > 1) for one in m], [0.2 * one.square() * (step > 1) for one in v]
    return weights, gradients, m, v, step, *settings


def _standing_still(sizes: list[tuple[int, ...]], step: int, settings: tuple, seed: int) -> tuple:
    weights, gradients, *rest = _step_case(sizes, step, 1.0, settings, seed)
    return weights, [0 * one for one in gradients], *rest


def _adam_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    rows, columns = number(2, 4, dice), number(5, 7, dice)
    settings = number(10, 30, dice) / 100, number(8, 15, dice) / 10, number(2, 8, dice) / 100  # rate, clip, ε
    several, base = [(rows, columns), (columns,), (3,)], 1000 * number(1, 10**6, dice)
    later = number(3, 6, dice)
    return [
        Case("the first step", _step_case(several, 1, 5.0, settings, base)),
        Case("a later step with long gradients", _step_case(several, later, 6.0, settings, base + 100)),
        Case("a later step with short gradients", _step_case(several[1:], later + 2, 0.5, settings, base + 200)),
        Case(
            "a step at which all gradients are zero",
            _standing_still([(columns,), (2, rows)], later, settings, base + 300),
        ),
    ]


def _flat(arguments: tuple, answer):
    """Three lists of tensors as one, so that they are compared tensor by tensor."""
    return answer if untouched(answer) else tuple(torch.as_tensor(one) for part in answer for one in part)


ADAM = Task(
    Exercise(
        "adam_step",
        reference=adam_step,
        cases=lambda: [
            _step_case([(2, 3), (4,)], 1, 3.0, (0.1, 1.0, 0.05), 100),
            _step_case([(2, 3), (4,)], 4, 5.0, (0.1, 1.0, 0.05), 200),
            _step_case([(3,), (2,)], 3, 0.5, (0.2, 1.0, 0.02), 300),
            _standing_still([(2,), (3,)], 3, (0.2, 1.0, 0.02), 400),
        ],
        normal=_flat,
        mistakes=(
            Mistake("each-tensor-clipped", "Each tensor is clipped by itself, which turns the direction of the step. "
                    "The length is that of all gradients together.",
                    _step(lambda gs, clip: [part for one in gs for part in _shortened([one], clip)])),
            Mistake("always-scaled", "Gradients that are shorter than the limit are stretched to it. They stay as they "
                    "are.", _step(_stretched)),
            Mistake("numbers-clipped", "Each number is cut off at the limit. Asked for is the length of the whole "
                    "gradient, its norm.", _step(lambda gs, clip: [one.clamp(-clip, clip) for one in gs])),
            Mistake("not-clipped", "The gradients are not clipped.", _step(lambda gs, clip: gs)),
            Mistake("not-corrected", "The two averages begin at 0 and are too small at first: nothing corrects that.",
                    _step(fair=lambda beta, step: 1.0)),
            Mistake("correction-to-the-power", "The correction is a power of 1 − β. It should be 1 minus a power of β.",
                    _step(fair=lambda beta, step: (1 - beta) ** step)),
            Mistake("corrected-averages-kept", "The step is right, but the averages that you hand on are corrected "
                    "ones: at the next step they would be corrected again.", _step(kept=True)),
            Mistake("eps-inside-the-root", "ε stands inside the root. In Adam it is added to the root.",
                    _step(inside=True)),
            Mistake("usual-beta", "β₂ is PyTorch's usual 0.999. The paper takes 0.98.", _step(beta_2=0.999)),
            Mistake("nothing-remembered", "The averages of earlier steps are not used: Adam has no memory then.",
                    _nothing_remembered),
        ),
    ),
    points=14,
    minutes=30,
    hidden=lambda seed: telling(ADAM.exercise, _adam_hidden, seed),
)  # fmt: skip
