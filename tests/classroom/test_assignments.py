"""The four assignments: right answers get all points, each known mistake costs its task and is named."""

import re
from dataclasses import replace

import nbformat
import pytest
import torch

import tinytransformer.teaching.grading.wire as wire
from classroom.support_classroom import ANSWERS, PUBLIC, SOURCES, text_of
from tinytransformer.teaching.exercises import judge, random
from tinytransformer.teaching.grading.box import Limits, Outcome
from tinytransformer.teaching.grading.scoring import Graded, _arguments, judge_outcome
from tinytransformer.teaching.grading.tasks import Made, Task
from tinytransformer.teaching.verdicts import CORRECT, NOT_ATTEMPTED

TASKS = [(name, task) for name, assignment in PUBLIC.items() for task in assignment]
every_task = pytest.mark.parametrize(("name", "task"), TASKS, ids=[task.name for _, task in TASKS])
every_assignment = pytest.mark.parametrize("name", PUBLIC)
SEEDS = (1, 20_002, 281_474_976_710_655)


def grade_here(name: str, task: Task, answer: str, seed: int) -> Graded:
    """Grade an answer of ours without a box, through the same wire: every mistake in every box would take an hour."""
    cases = task.hidden(seed)
    names = {"__name__": "answer"}
    for text in (PUBLIC[name].setup, task.given, answer):
        exec(text, names)
    lines = []
    for case in cases:
        sent = [
            argument if isinstance(argument, Made) else wire.loads(wire.dumps(argument)) for argument in case.arguments
        ]
        given = [names[one.maker](*one.values) if isinstance(one, Made) else one for one in sent]
        try:
            got = names[task.name](*given)
        except Exception as error:
            got = error
        after = [value for value, one in zip(given, sent, strict=True) if not isinstance(one, Made)]
        lines.append(wire.loads(wire.dumps({"answer": got, "after": after, "line": None, "used": []})))
    return judge_outcome(task, cases, Outcome(tuple(lines), ""), Limits())


@every_task
@pytest.mark.parametrize("style", [0, 1, 2], ids=["loops", "vectorised", "library"])
def test_right_answers_get_all_points_in_three_styles(name, task, style):
    answer = text_of(task.name, ANSWERS[name].RIGHT[task.name][style])
    for seed in SEEDS:
        assert grade_here(name, task, answer, seed) == Graded(task.name, task.points, task.points, "correct")


PLANTED = [
    (name, task, mistake, function)
    for name, task in TASKS
    for mistake, function in ANSWERS[name].PLANTED[task.name].items()
]


@pytest.mark.parametrize(
    ("name", "task", "mistake", "function"), PLANTED, ids=[f"{task.name}-{mistake}" for _, task, mistake, _ in PLANTED]
)
def test_a_known_mistake_costs_its_task_and_gets_its_hint(name, task, mistake, function):
    hints = {known.name: known.hint for known in task.exercise.mistakes}
    for seed in SEEDS:
        graded = grade_here(name, task, text_of(task.name, function), seed)
        assert (graded.points, graded.status, graded.mistake) == (0.0, "wrong", mistake)
        assert graded.hint == hints[mistake]


@pytest.mark.parametrize(
    ("name", "task", "mistake", "function"), PLANTED, ids=[f"{task.name}-{mistake}" for _, task, mistake, _ in PLANTED]
)
def test_the_students_own_check_names_the_mistake_before_it_counts(name, task, mistake, function):
    assert judge(visible(task), function).mistake == mistake


def visible(task: Task):
    """The exercise with its visible cases; what they make is made here."""
    made = _arguments(task, [type("Try", (), {"arguments": arguments}) for arguments in task.exercise.cases()])
    return replace(task.exercise, cases=lambda: made)


def test_there_are_eighty_mistakes_and_all_are_planted():
    known = {(task.name, mistake.name) for _, task in TASKS for mistake in task.exercise.mistakes}
    assert {(task.name, mistake) for _, task, mistake, _ in PLANTED} == known
    assert len(known) >= 80


@every_task
def test_hidden_cases_come_from_the_seed_alone(name, task):
    first, again, other = (wire.dumps([_plain(case) for case in task.hidden(seed)]) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    assert 3 <= len(task.hidden(7)) <= 8


def _plain(case) -> list:
    return [list(one.values) if isinstance(one, Made) else one for one in case.arguments]


@every_task
def test_words_about_a_case_give_no_number_away(name, task):
    for case in task.hidden(3):
        assert not re.search(r"\d", case.about), case.about


@every_task
def test_an_unfilled_stub_is_not_attempted(name, task):
    stub = f"def {task.name}(*arguments):\n    raise NotImplementedError"
    assert grade_here(name, task, stub, 1).status == "not attempted"
    for empty in ("...", "None"):
        assert grade_here(name, task, f"def {task.name}(*arguments):\n    return {empty}", 1).points == 0


@every_task
def test_noise_gets_no_points(name, task):
    answer = f"import torch\ndef {task.name}(*arguments):\n    return torch.rand(2, 3)"
    assert grade_here(name, task, answer, 1).points < task.points / 2


@every_assignment
def test_points_and_minutes_add_up_to_three_hours(name):
    assignment = PUBLIC[name]
    assert 6 <= len(assignment.tasks) <= 8
    assert (sum(task.points for task in assignment), assignment.points) == (90, 100)
    assert 140 <= sum(task.minutes for task in assignment) <= 190


# --- the notebooks


@every_assignment
def test_the_notebook_and_the_tasks_agree(name):
    notebook = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    assert PUBLIC[name].setup.strip() in cells["setup"].source
    for number, task in enumerate(PUBLIC[name], 1):
        heading = rf"## Task {number}: .*\({task.points} points, {task.minutes} minutes\)"
        assert re.match(heading, cells[f"task-{task.name}"].source), heading
        answer, check = cells[task.name], cells[f"check-{task.name}"]
        assert re.search(rf"^def {task.name}\(", answer.source, re.MULTILINE)
        assert answer.source.count("### BEGIN SOLUTION") == answer.source.count("### END SOLUTION") == 1
        assert (answer.metadata.nbgrader.solution, answer.metadata.nbgrader.grade) == (True, False)
        assert (check.metadata.nbgrader.grade, check.metadata.nbgrader.points) == (True, task.points)
        assert check.outputs[0].text == f"{task.name}: {CORRECT}\n"
    assert cells["reflection"].metadata.nbgrader.points == PUBLIC[name].reflection
    for cell in notebook.cells:
        assert cell.metadata.get("nbgrader", {}).get("grade_id", cell.id) == cell.id


@every_assignment
def test_the_solutions_of_the_notebook_get_all_points(name):
    notebook = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)
    cells = {cell.id: cell.source for cell in notebook.cells}
    for task in PUBLIC[name]:
        assert grade_here(name, task, cells[task.name], 11).status == "correct"


@every_assignment
def test_a_check_wants_one_of_its_functions(name, capsys):
    assignment = PUBLIC[name]
    with pytest.raises(ValueError, match="has no task 'random'"):
        assignment.check(random)

    def stub(*arguments):
        raise NotImplementedError

    stub.__name__ = assignment.tasks[0].name
    assert not assignment.ready(stub)
    assert capsys.readouterr().out == f"Come back when the check of {stub.__name__} says 'correct'.\n"
    assert assignment.check(stub).status == NOT_ATTEMPTED
    assert capsys.readouterr().out == f"{stub.__name__}: {NOT_ATTEMPTED}\n"
    assert torch.get_num_threads() == 1


def test_the_visible_check_sees_what_a_task_forbids(capsys):
    task = PUBLIC["assignment1"]["attention_backward"]

    def attention_backward(*arguments):
        torch.ones(2).softmax(dim=0)
        return task.exercise.reference(*arguments)

    verdict = PUBLIC["assignment1"].check(attention_backward)
    assert (verdict.passed, verdict.mistake) == (False, "forbidden")
    assert "do without softmax, and the answer uses it" in capsys.readouterr().out
