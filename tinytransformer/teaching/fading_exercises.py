"""Exercises of lesson 01 about gradients through time: how they fade, written out, and how they are clipped."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Run, Symptom, agree, random, shape

# --- the slope of a state with respect to the first one


def _slopes_cases() -> list[tuple]:
    def case(steps: int, size: int, spread: float, seed: int) -> tuple:
        w_h, inputs = random(size, size, seed=seed, spread=spread), random(steps, size, seed=seed + 1)
        states = [torch.tanh(inputs[0])]
        for share in inputs[1:]:
            states.append(torch.tanh(w_h @ states[-1] + share))
        return torch.stack(states), w_h

    return [case(5, 3, 0.6, 80), case(7, 4, 1.2, 90), case(1, 2, 1.0, 95)]


def _largest(matrix: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(matrix, ord=2)


def _slope(h: Tensor, w_h: Tensor) -> Tensor:
    """diag(1 − h²) W_h: how the state h answers to the one before it."""
    return (1 - h**2)[:, None] * w_h


def _slopes(states, w_h, step: Callable = _slope, size: Callable = _largest, shift: int = 0, reverse=False) -> Tensor:
    product = torch.eye(len(w_h))
    found = [size(product)]
    for number in range(1, len(states)):
        factor = step(states[number - shift], w_h)
        product = product @ factor if reverse else factor @ product
        found.append(size(product))
    return torch.stack(found)


def _norms_multiplied(states, w_h) -> Tensor:
    factors = [_largest(_slope(h, w_h)) for h in states[1:]]
    return torch.cumprod(torch.stack([torch.tensor(1.0), *factors]), dim=0)


def _steps_alone(states, w_h) -> Tensor:
    return torch.stack([torch.tensor(1.0), *(_largest(_slope(h, w_h)) for h in states[1:])])


def _one_factor_more(states, w_h) -> Tensor:
    return _slopes(torch.cat([states[:1], states]), w_h)[1:]


def _is_frobenius(runs: Sequence[Run]) -> bool:
    """Whether all numbers but the first are Frobenius norms: the first may have been set to 1."""
    found = [_slopes(*run.arguments, size=torch.linalg.matrix_norm) for run in runs]
    same_form = all(shape(run.got) == shape(run.wanted) for run in runs)
    return same_form and all(agree(run.got[1:], norms[1:]) for run, norms in zip(runs, found, strict=True))


SLOPES = Exercise(
    "slopes_over_distance",
    reference=_slopes,
    cases=_slopes_cases,
    mistakes=(
        Mistake("tanh-left-out", "These are powers of w_h alone. Each step also has the slope of its tanh.",
                lambda states, w_h: _slopes(states, w_h, step=lambda h, w: w)),
        Mistake("bent-twice", "The slope of tanh is 1 − tanh², and a state is a tanh already: you bend it once more.",
                lambda states, w_h: _slopes(states.tanh(), w_h)),
        Mistake("slope-behind-the-matrix", "The slope stands on the wrong side of w_h. The matrix acts first, the "
                "tanh then: which of its rows or columns does the slope of number i belong to?",
                lambda states, w_h: _slopes(states, w_h, step=lambda h, w: w * (1 - h**2))),
        Mistake("state-before", "Each step takes the slope at the state it comes from. The tanh makes the new one.",
                lambda states, w_h: _slopes(states, w_h, shift=1)),
        Mistake("order-reversed", "The factors are multiplied in the wrong order: the step made last stands at the "
                "left.", lambda states, w_h: _slopes(states, w_h, reverse=True)),
        Mistake("w_h-transposed", "w_h is turned. That is how gradients travel back; the slope itself has it as it "
                "stands, and with the tanh between, turning it gives other numbers.",
                lambda states, w_h: _slopes(states, w_h.T)),
        Mistake("norms-multiplied", "You multiply the largest singular values of the steps. That is an upper bound: "
                "the direction that one step stretches most may be shrunk by the next. Multiply the matrices.",
                _norms_multiplied),
        Mistake("steps-alone", "These are the stretches of single steps. The slope over a distance is the product of "
                "all steps up to there.", _steps_alone),
        Mistake("one-factor-more", "There is a factor for step 1, too. The slope is that of h_n with respect to h_1, "
                "so the first number is 1 and the first factor belongs to step 2.", _one_factor_more),
        Mistake("square-left-out", "The slope of tanh is 1 − h², and you have 1 − h.",
                lambda states, w_h: _slopes(states, w_h, step=lambda h, w: (1 - h)[:, None] * w)),
        Mistake("eigenvalue", "This is the largest eigenvalue, not the largest singular value.",
                lambda states, w_h: _slopes(states, w_h, size=lambda m: torch.linalg.eigvals(m).abs().max())),
        Mistake("first-left-out", "One number is missing: the first state answers to itself with a slope of 1.",
                lambda states, w_h: _slopes(states, w_h)[1:]),
    ),
    symptoms=(
        Symptom("all-entries", _is_frobenius,
                lambda run: "This is the length of the matrix as one long vector (Frobenius). Asked for is the largest "
                "singular value: ord=2."),
    ),
)  # fmt: skip


# --- clipping by the length of all gradients together


def _clip_cases() -> list[tuple]:
    long = [random(2, 3, seed=100), random(4, seed=101)]
    return [
        (long, 1.0),
        ([random(3, seed=102, spread=0.1), random(2, 2, seed=103, spread=0.1)], 1.0),  # short enough
        ([random(3, 3, seed=104, spread=5.0), random(2, seed=105, spread=0.01)], 2.5),
        ([torch.zeros(3), torch.zeros(2, 2)], 1.0),
    ]


def _norm(gradients: list[Tensor]) -> Tensor:
    return torch.cat([gradient.flatten() for gradient in gradients]).norm()


def _clip(gradients: list[Tensor], limit: float, length: Callable = _norm) -> list[Tensor]:
    """Scaled to the limit where ``length`` finds them longer than it."""
    whole = length(gradients)
    return [gradient * (limit / whole) if whole > limit else gradient for gradient in gradients]


def _largest_number(gradients: list[Tensor]) -> Tensor:
    return torch.stack([gradient.abs().max() for gradient in gradients]).max()


def _each_alone(gradients: list[Tensor], limit: float) -> list[Tensor]:
    return [_clip([gradient], limit)[0] for gradient in gradients]


CLIP = Exercise(
    "clip_gradients",
    reference=_clip,
    cases=_clip_cases,
    mistakes=(
        Mistake("each-alone", "Each gradient is clipped by its own length, so the step points elsewhere than before. "
                "There is one length for all of them together.", _each_alone),
        Mistake("numbers-clamped", "Each number is cut off by itself, which turns the step. Clipping by length scales "
                "all numbers by one factor.",
                lambda gradients, limit: [gradient.clamp(-limit, limit) for gradient in gradients]),
        Mistake("always-scaled", "Short gradients are made longer, too (and zeros become NaN). Those within the limit "
                "stay as they are.", lambda gradients, limit: [g * (limit / _norm(gradients)) for g in gradients]),
        Mistake("lengths-added", "The lengths of the single gradients are added up. Lengths do not add: their squares "
                "do.", lambda gradients, limit: _clip(gradients, limit, lambda parts: sum(g.norm() for g in parts))),
        Mistake("no-root", "The sum of the squares is not a length yet: the root is missing.",
                lambda gradients, limit: _clip(gradients, limit, lambda parts: _norm(parts) ** 2)),
        Mistake("longest-alone", "The factor comes from one gradient alone. All of them together are longer.",
                lambda gradients, limit: _clip(gradients, limit, lambda parts: max(g.norm() for g in parts))),
        Mistake("length-one", "Clipped gradients have length 1, whatever the limit is.",
                lambda gradients, limit: [g / _norm(gradients) if _norm(gradients) > limit else g for g in gradients]),
        Mistake("largest-number", "The largest number is taken for the length. The length is the root of the sum of "
                "all squares.", lambda gradients, limit: _clip(gradients, limit, _largest_number)),
        Mistake("condition-reversed", "The short ones are scaled and the long ones left: the condition is the wrong "
                "way round.", lambda gradients, limit: [
                    g * (limit / _norm(gradients)) if _norm(gradients) < limit else g for g in gradients]),
        Mistake("thrown-away", "A gradient that is too long is thrown away. It should be shortened, not lost.",
                lambda gradients, limit: [g * (_norm(gradients) <= limit) for g in gradients]),
    ),
)  # fmt: skip
