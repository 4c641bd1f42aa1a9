"""Points and words: credit by case, the same grade twice, nothing hidden in the feedback."""

from dataclasses import replace

import pytest
import torch

from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.box import Limits, Outcome
from tinytransformer.teaching.grading.scoring import ENDED, Graded, judge_outcome, seed_for
from tinytransformer.teaching.grading.tasks import Case, Made, Task
from tinytransformer.teaching.grading.wire import UnsendableError

CASES = (
    Case("a long row", (torch.tensor([7777.0, 1.0]),), weight=3),
    Case("a row of zeros", (torch.zeros(2),)),
)
EXERCISE = Exercise(
    "total",
    reference=lambda x: x.sum(),
    cases=lambda: [(torch.ones(2),)],
    mistakes=(Mistake("mean", "This is the mean.", lambda x: x.mean()),),
)
TASK = Task(EXERCISE, points=8, minutes=5, hidden=lambda seed: CASES)


def outcome(*answers, ended: str = "", after=None, line=None, used=()) -> Outcome:
    lines = [
        {"answer": answer, "after": list(after or case.arguments), "line": line, "used": list(used)}
        for answer, case in zip(answers, CASES, strict=False)
    ]
    return Outcome(tuple(lines), ended)


def graded(*answers, task: Task = TASK, **more) -> Graded:
    return judge_outcome(task, CASES, outcome(*answers, **more), Limits())


def test_all_right():
    assert graded(torch.tensor(7778.0), 0.0) == Graded("total", 8.0, 8, "correct")


def test_credit_by_the_weight_of_the_cases():
    assert graded(torch.tensor(7778.0), torch.tensor(5.0)) == Graded(
        "total", 6.0, 8, "partly right", messages=("a row of zeros: the values are not right",)
    )
    assert graded(torch.tensor(1.0), torch.tensor(0.0)).points == 2.0


def test_a_known_mistake_costs_the_task_though_some_cases_are_right():
    found = graded(torch.tensor(3889.0), torch.tensor(0.0))
    assert (found.points, found.status, found.mistake, found.hint) == (0.0, "wrong", "mean", "This is the mean.")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (torch.zeros(3), "another form or shape"),
        ("text", "another form or shape"),
        (ValueError(), "it raised ValueError in line 4"),
        (Exception(), "it raised an error of its own in line 4"),
        (UnsendableError(), "neither a tensor nor a number"),
        (torch.tensor(2.0), "the values are not right"),
        ([1.0, [2.0]], "another form or shape"),
        ({"a": torch.ones(2)}, "another form or shape"),
    ],
    ids=range(8),
)
def test_words_for_each_failed_case(answer, words):
    found = graded(answer, answer, line=4)
    assert len(found.messages) == 2
    assert found.messages[0].startswith("a long row: ")
    assert words in found.messages[0]
    assert not {"7777", "7778", "3889"} & set(" ".join((found.hint, *found.messages)).split())


def test_a_line_number_that_lies_is_not_shown():
    for line in (-3, 10**9, "7777"):
        assert graded(ValueError(), ValueError(), line=line).messages[0] == "a long row: it raised ValueError"


@pytest.mark.parametrize("ended", [name for name in ENDED if name != "start"])
def test_what_came_before_the_end_counts(ended):
    found = graded(torch.tensor(7778.0), ended=ended)
    assert (found.points, found.status) == (6.0, "partly right")
    assert found.messages[0].startswith("a row of zeros: ")
    assert graded(ended=ended).points == 0.0


def test_a_box_that_does_not_start_is_nobodys_zero():
    found = graded(ended="start")
    assert (found.status, found.points) == ("needs a person", 0.0)
    assert "not the student's fault" in found.messages[0]


def test_changed_arguments_are_noticed_outside():
    found = graded(torch.tensor(7778.0), torch.tensor(0.0), after=[torch.tensor([1.0, 1.0])])
    assert found.points == 0.0
    assert "work on a copy" in found.messages[0]


def test_not_attempted():
    assert graded(NotImplementedError(), NotImplementedError()).status == "not attempted"
    assert graded(None, None).hint == "It returns nothing: is a return missing?"


def test_forbidden_functions_are_named_only_if_the_task_forbids_them():
    right = (torch.tensor(7778.0), 0.0)
    assert graded(*right, used=["sum"]).status == "correct"
    found = graded(*right, used=["sum", "7777"], task=replace(TASK, forbidden=("sum",)))
    assert (found.points, found.hint) == (0.0, "This task asks to do without sum, and the answer uses it.")


def test_an_error_that_was_asked_for():
    def refuse(x):
        raise ValueError("no")

    task = replace(TASK, exercise=replace(EXERCISE, reference=refuse, mistakes=()))
    assert graded(ValueError(), ValueError(), task=task).status == "correct"
    assert "should have refused" in graded(1.0, 1.0, task=task).messages[0]
    assert "it raised KeyError" in graded(KeyError(), KeyError(), task=task).messages[0]


def test_what_is_made_is_made_on_both_sides():
    given = "def scaler(by):\n    return lambda x: by * x"
    case = Case("a function", (Made("scaler", (3.0,)), torch.ones(2)))
    exercise = Exercise("apply", lambda f, x: f(x), list)
    task = Task(exercise, 5, 5, lambda seed: (case,), given)
    line = {"answer": torch.full((2,), 3.0), "after": [torch.ones(2)], "line": None, "used": []}
    assert judge_outcome(task, (case,), Outcome((line,), ""), Limits()).status == "correct"


def test_every_student_has_a_seed_of_their_own():
    seeds = {seed_for(secret, name, student) for secret in "ab" for name in "cd" for student in "ef"}
    assert len(seeds) == 8
    assert seed_for("a", "c", "e") == seed_for("a", "c", "e")
    assert seed_for("a", "bc", "d") != seed_for("ab", "c", "d")
