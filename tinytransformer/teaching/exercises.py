"""How an exercise judges a function: a pure step from a callable to a verdict.

The function runs on all cases and is compared with the reference. If it differs, known mistakes are tried: each is a
wrong implementation, and whoever computes the same wrong numbers has made that mistake. Symptoms catch the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytransformer.teaching.verdicts import CORRECT, NOT_ATTEMPTED, STOPPED, WRONG, Verdict

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Mistake:
    """A mistake that is often made: the hint names it and does not give the solution; ``wrong`` makes it."""

    name: str
    hint: str
    wrong: Callable


@dataclass(frozen=True)
class Run:
    """One case: the arguments, what the function made of them, and what was wanted. An exception is an outcome too."""

    arguments: tuple
    got: object
    wanted: object


@dataclass(frozen=True)
class Symptom:
    """What a wrong result looks like, whatever its cause. ``seen`` looks at all runs; ``hint`` is made from the first
    wrong one."""

    name: str
    seen: Callable[[Sequence[Run]], bool]
    hint: Callable[[Run], str]


@dataclass(frozen=True)
class Exercise:
    """What is asked: the right answers (``reference``), the cases to try, and the mistakes and symptoms known.

    ``cases`` makes the arguments anew at each call. ``normal`` brings answers that mean the same into one form.
    """

    name: str
    reference: Callable
    cases: Callable[[], list[tuple]]
    mistakes: tuple[Mistake, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    normal: Callable[[tuple, object], object] = lambda arguments, answer: answer


def random(*shape: int, seed: int, spread: float = 1.0) -> Tensor:
    """The same random numbers in every run, for cases."""
    return spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def judge(exercise: Exercise, function: Callable) -> Verdict:
    """The verdict about a function. It prints nothing and raises nothing, whatever the function does."""
    if not callable(function):
        return Verdict(exercise.name, STOPPED, f"Give the function itself, without parentheses, not {function!r}.")
    return explain(exercise, *run_cases(exercise, function))


def explain(exercise: Exercise, runs: Sequence[Run], changes_input: bool) -> Verdict:
    """The verdict about runs of all cases, wherever they were made."""
    if untouched(runs[0].got):
        hint = "" if isinstance(runs[0].got, NotImplementedError) else "It returns nothing: is a return missing?"
        return Verdict(exercise.name, NOT_ATTEMPTED, hint)
    wrong = [run for run in runs if not agree(run.got, run.wanted)]
    if not wrong and not changes_input:
        return Verdict(exercise.name, CORRECT)
    for mistake in exercise.mistakes:
        planted, _ = run_cases(exercise, mistake.wrong)
        if all(agree(run.got, other.got) for run, other in zip(runs, planted, strict=True)):
            return Verdict(exercise.name, WRONG, mistake.hint, mistake.name)
    if not wrong:
        hint = "The results are right, but the function changes the tensors it was given: work on a copy."
        return Verdict(exercise.name, WRONG, hint, "changes-its-input")
    for symptom in (*exercise.symptoms, *GENERAL):
        if symptom.seen(runs):
            status = STOPPED if isinstance(wrong[0].got, Exception) else WRONG
            return Verdict(exercise.name, status, symptom.hint(wrong[0]), symptom.name)
    return Verdict(exercise.name, WRONG, f"For {shapes(wrong[0].arguments)} {difference(wrong[0])}.")


def run_cases(exercise: Exercise, function: Callable) -> tuple[list[Run], bool]:
    """All runs, and whether the function changed what it was given."""
    runs, changed = [], False
    for arguments in exercise.cases():
        given = deepcopy(arguments)
        got = outcome(exercise, function, arguments, given)
        data = [(a, b) for a, b in zip(given, arguments, strict=True) if is_comparable(b)]
        changed |= not all(agree(after, before) and _learns(after) == _learns(before) for after, before in data)
        runs.append(Run(arguments, got, outcome(exercise, exercise.reference, arguments, arguments)))
    return runs, changed


def outcome(exercise: Exercise, function: Callable, arguments: tuple, given: tuple) -> object:
    """What a function makes of one case: its answer in normal form, or its error. A task may ask for an error, too."""
    try:
        return exercise.normal(arguments, function(*given))
    except Exception as error:  # whatever a learner's code does, a verdict must come out
        return error


def _learns(argument: object) -> bool:
    return isinstance(argument, Tensor) and argument.requires_grad


def untouched(got: object) -> bool:
    return got is None or got is ... or isinstance(got, NotImplementedError)


def agree(one: object, other: object) -> bool:
    """Same structure, same shapes, true and false not mixed with numbers, and the same values; NaN equals NaN. What is
    neither text nor number nor made of them agrees with nothing."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    if one is None or other is None:
        return one is other
    if is_text(one) or is_text(other):
        return plain(one) == plain(other)
    if isinstance(one, dict) or isinstance(other, dict):
        both = isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()
        return both and all(agree(value, other[key]) for key, value in one.items())
    if isinstance(one, set | frozenset) or isinstance(other, set | frozenset):
        return isinstance(one, set | frozenset) and isinstance(other, set | frozenset) and one == other
    if is_several(one) or is_several(other):
        both = isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other)
        return both and all(map(agree, one, other))
    one, other = as_tensor(one), as_tensor(other)
    if one is None or other is None:
        return False
    if one.shape != other.shape or (one.dtype == torch.bool) != (other.dtype == torch.bool):
        return False
    half = torch.half in (one.dtype, other.dtype)  # three digits are all it has
    tolerance = 20 * TOLERANCE if half else TOLERANCE
    return torch.allclose(one.double(), other.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def is_comparable(value: object) -> bool:
    """Whether `agree` can say anything about it: not about a model, a generator or a function."""
    if isinstance(value, dict | list | tuple | set | frozenset):
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return all(map(is_comparable, parts))
    return value is None or isinstance(value, str | Exception) or as_tensor(value) is not None


def is_several(answer: object) -> bool:
    """Several results, such as tensors or lists of different lengths, rather than one list of numbers."""
    if not isinstance(answer, tuple | list):
        return False
    return any(isinstance(part, Tensor) for part in answer) or as_tensor(answer) is None


def is_text(answer: object) -> bool:
    """Words, or lists and dictionaries that hold some and no tensors: compared as they are, not as numbers."""
    leaves = list(_leaves(answer))
    return any(isinstance(leaf, str) for leaf in leaves) and not any(isinstance(leaf, Tensor) for leaf in leaves)


def _leaves(answer: object) -> Iterator[object]:
    if isinstance(answer, dict):
        answer = [*answer.keys(), *answer.values()]
    if not isinstance(answer, list | tuple | set):
        yield answer
        return
    for part in answer:
        yield from _leaves(part)


def plain(answer: object) -> object:
    """Lists where tuples might stand as well, and any mapping as a dictionary."""
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items()}
    return [plain(part) for part in answer] if isinstance(answer, list | tuple) else answer


def as_tensor(answer: object) -> Tensor | None:
    """Tensors, numbers, arrays and lists of numbers; None for everything else."""
    try:
        return torch.as_tensor(answer).detach()
    except (TypeError, ValueError, RuntimeError):
        return None


def shapes(arguments: tuple) -> str:
    """The arguments in words: few whole numbers as they are, of other tensors and lists the shapes."""
    known = [argument for argument in arguments if not callable(argument)]
    return "arguments " + ", ".join(map(_argument, known))


def _argument(argument: object) -> str:
    if argument is None or isinstance(argument, int | float):
        return str(argument)
    if isinstance(argument, dict) and not is_text(argument):
        return f"a dictionary of {len(argument)}"
    whole = isinstance(argument, Tensor) and not argument.is_floating_point() and argument.dtype != torch.bool
    return str(argument.tolist()) if whole and argument.numel() <= 16 else shown(argument)


def shown(answer: object) -> str:
    """Text as it is, if it is not too long; of everything else the shape."""
    if not is_text(answer):
        return shape(answer)
    words = repr(answer)
    return words if len(words) <= 120 else words[:117] + "..."


def shape(answer: object) -> str:
    if is_text(answer):
        return "text"
    if is_several(answer):
        return f"{len(answer)} results of shapes " + ", ".join(map(shape, answer))
    tensor = as_tensor(answer)
    return f"an object of type {type(answer).__name__}" if tensor is None else f"{tuple(tensor.shape)}"


def difference(run: Run) -> str:
    """Where two answers of the same form differ most."""
    if is_text(run.wanted):
        return f"it returns {shown(run.got)}, wanted is {shown(run.wanted)}"
    if is_several(run.wanted):
        pairs = zip(run.got, run.wanted, strict=True)
        number, pair = next((n, pair) for n, pair in enumerate(pairs) if not agree(*pair))
        return f"result number {number + 1} is wrong: " + difference(Run(run.arguments, *pair))
    if isinstance(run.wanted, dict) and isinstance(run.got, dict):
        if run.got.keys() != run.wanted.keys():
            return "the dictionary has other keys than were asked for"
        key = next(key for key, value in run.wanted.items() if not agree(run.got[key], value))
        return f"what stands at {key!r} is wrong: " + difference(Run(run.arguments, run.got[key], run.wanted[key]))
    if shape(run.got) != shape(run.wanted) or as_tensor(run.wanted) is None:
        return f"it returns {shape(run.got)}, wanted is {shape(run.wanted)}"
    got, wanted = as_tensor(run.got), as_tensor(run.wanted)
    got, wanted = got.double(), wanted.double()
    gap = torch.where(got == wanted, 0.0, (got - wanted).abs().nan_to_num(nan=torch.inf))
    place = [int(index) for index in torch.unravel_index(gap.argmax(), gap.shape)]
    return f"the value at {place} is {got[tuple(place)].item():.4g}, not {wanted[tuple(place)].item():.4g}"


def _first_wrong(runs: Sequence[Run]) -> Run:
    return next(run for run in runs if not agree(run.got, run.wanted))


def _form_is_wrong(runs: Sequence[Run]) -> bool:
    run = _first_wrong(runs)
    return shape(run.got) != shape(run.wanted)


def _kind_is_wrong(runs: Sequence[Run]) -> bool:
    def kinds(answer):
        parts = [as_tensor(part) for part in (answer if is_several(answer) else [answer])]
        return [part is not None and part.dtype == torch.bool for part in parts]

    run = _first_wrong(runs)
    if is_text(run.wanted):
        return False
    return any(kinds(run.wanted)) and not all(kinds(run.got))


def _has_nan(runs: Sequence[Run]) -> bool:
    got = as_tensor(_first_wrong(runs).got)
    return got is not None and got.is_floating_point() and bool(got.isnan().any())


GENERAL = (
    Symptom(
        "error",
        lambda runs: isinstance(_first_wrong(runs).got, Exception),
        lambda run: f"For {shapes(run.arguments)} it raised {type(run.got).__name__}: {first_line(run.got)}",
    ),
    Symptom(
        "wrong-shape",
        _form_is_wrong,
        lambda run: f"For {shapes(run.arguments)} it returns {shape(run.got)}, wanted is {shape(run.wanted)}.",
    ),
    Symptom("not-boolean", _kind_is_wrong, lambda run: "A mask holds True and False: yours holds numbers."),
    Symptom("nan", _has_nan, lambda run: f"For {shapes(run.arguments)} the result holds NaN, which is not a number."),
)


def first_line(error: Exception) -> str:
    """The first line of what an error says; a long one is cut."""
    lines = str(error).strip().splitlines() or ["without a message"]
    return lines[0] if len(lines[0]) <= 160 else lines[0][:157] + "..."
