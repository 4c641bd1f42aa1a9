"""From what came out of the box to points and words. This process never runs or imports a student's code.

A task's points are shared among its hidden cases. A known misconception costs the whole task, since its idea was
missed; any other wrong answer keeps the points of the cases that it gets right. Words name the mistake or the
kind of case, never an argument, a wanted value, or text of the student's making.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinytransformer.teaching.exercises import Exercise, Run, agree, explain, shape, untouched
from tinytransformer.teaching.exercises import outcome as outcome_of
from tinytransformer.teaching.grading.box import Limits, Outcome, run
from tinytransformer.teaching.grading.tasks import Assignment, Case, Made, Task, forbidden_hint
from tinytransformer.teaching.grading.wire import UnsendableError

ENDED = {
    "time": "it took too long ({cpu:g} seconds of computing, {seconds:g} on the clock) and was stopped: does a loop "
    "never end?",
    "memory": "it took more than {memory} MB of memory and was stopped",
    "size": "it returned far more than was asked for and was stopped",
    "died": "the program ended before it returned an answer",
    "forged": "the program wrote what no answer can be",
    "start": "the box could not be started: this is not the student's fault, grade again",
}


@dataclass(frozen=True)
class Graded:
    """One task: points out of points, a status, the hint for a known mistake, and what failed, case by case."""

    task: str
    points: float
    most: int
    status: str  # correct · partly right · wrong · not attempted · needs a person
    hint: str = ""
    mistake: str = ""
    messages: tuple[str, ...] = ()


def seed_for(secret: str, assignment: str, student: str) -> int:
    """The seed of a student's hidden cases: the same whenever it is graded, another for everybody else."""
    digest = hashlib.sha256("\0".join((secret, assignment, student)).encode()).digest()
    return int.from_bytes(digest[:6], "big")


def grade_task(task: Task, assignment: Assignment, answer: str, seed: int, limits: Limits) -> Graded:
    """Run one answer on its hidden cases, in a box, and say what it is worth."""
    cases = list(task.hidden(seed))
    outcome = run(task, assignment.setup, answer, [case.arguments for case in cases], limits)
    return judge_outcome(task, cases, outcome, limits)


def judge_outcome(task: Task, cases: Sequence[Case], outcome: Outcome, limits: Limits) -> Graded:
    """Compare what came out with what was wanted."""
    if outcome.ended == "start":
        return Graded(task.name, 0.0, task.points, "needs a person", messages=(ENDED["start"],))
    arguments = _arguments(task, cases)
    exercise = replace(task.exercise, cases=lambda: _arguments(task, cases))
    runs = [
        Run(given, _normal(exercise, given, line["answer"]), outcome_of(exercise, exercise.reference, given, given))
        for given, line in zip(arguments, outcome.lines, strict=False)
    ]
    if runs and untouched(runs[0].got):
        hint = "" if isinstance(runs[0].got, NotImplementedError) else "It returns nothing: is a return missing?"
        return Graded(task.name, 0.0, task.points, "not attempted", hint)
    used = {str(name) for line in outcome.lines for name in line["used"] or ()} & set(task.forbidden)
    if used:
        return Graded(task.name, 0.0, task.points, "wrong", forbidden_hint(used), "forbidden")
    changed = [not _unchanged(case, line["after"]) for case, line in zip(cases, outcome.lines, strict=False)]
    failed, earned = [], 0
    for number, case in enumerate(cases):
        message = _message(runs, outcome, changed, number, limits)
        if message:
            failed.append(f"{case.about}: {message}")
        else:
            earned += case.weight
    if not failed:
        return Graded(task.name, float(task.points), task.points, "correct")
    if len(runs) == len(cases):
        verdict = explain(exercise, runs, changes_input=False)
        hints = {mistake.name: mistake.hint for mistake in exercise.mistakes}
        if verdict.mistake in hints:
            hint = hints[verdict.mistake]
            return Graded(task.name, 0.0, task.points, "wrong", hint, verdict.mistake, tuple(failed))
    points = round(task.points * earned / sum(case.weight for case in cases), 2)
    return Graded(task.name, points, task.points, "partly right" if points else "wrong", messages=tuple(failed))


def _arguments(task: Task, cases: Sequence[Case]) -> list[tuple]:
    """The arguments on our side: what is made in the box by the task's own makers is made here by the same ones."""
    names: dict = {}
    if any(isinstance(argument, Made) for case in cases for argument in case.arguments):
        exec(compile(task.given, "<given>", "exec"), names)  # ours, not the student's

    def made(argument: object) -> object:
        return names[argument.maker](*argument.values) if isinstance(argument, Made) else argument

    return [tuple(made(argument) for argument in case.arguments) for case in cases]


def _normal(exercise: Exercise, given: tuple, answer: object) -> object:
    return answer if isinstance(answer, Exception) else outcome_of(exercise, lambda *_: answer, given, given)


def _unchanged(case: Case, after: object) -> bool:
    before = [argument for argument in case.arguments if not isinstance(argument, Made)]
    if not isinstance(after, list) or len(after) != len(before):
        return after is None  # an error: there is nothing to compare
    return all(map(agree, after, before))


def _message(runs: list[Run], outcome: Outcome, changed: list[bool], number: int, limits: Limits) -> str:
    """What is wrong with one case; empty if nothing is."""
    if number >= len(runs):
        return ENDED[outcome.ended].format(
            cpu=limits.cpu_seconds, seconds=limits.seconds, memory=limits.memory_bytes >> 20
        )
    one, line = runs[number], outcome.lines[number]
    if agree(one.got, one.wanted) and type(one.got) is not UnsendableError:
        return "the arguments were changed: work on a copy" if changed[number] else ""
    if isinstance(one.got, UnsendableError):
        return "the result is neither a tensor nor a number, text, list or dictionary of such"
    if isinstance(one.got, Exception):
        where = f" in line {line['line']}" if isinstance(line["line"], int) and 0 < line["line"] < 10_000 else ""
        kind = type(one.got).__name__
        return f"it raised {kind if kind != 'Exception' else 'an error of its own'}{where}"
    if isinstance(one.wanted, Exception):
        return "it should have refused its arguments"
    if shape(one.got) != shape(one.wanted):
        return "the result has another form or shape than was asked for"
    return "the values are not right"
