"""Where there is no bubblewrap: answers are graded all the same, within what limits there are, and loudly."""

import pytest
import torch

import tinytransformer.teaching.grading.box as box
from tinytransformer.teaching.exercises import Exercise
from tinytransformer.teaching.grading.box import Limits
from tinytransformer.teaching.grading.scoring import grade_task
from tinytransformer.teaching.grading.tasks import Assignment, Case, Task

X = torch.tensor([1.0, 2.0, 4.0])
TASK = Task(
    Exercise("halves", lambda x: x / 2, lambda: [(X,)]),
    points=10,
    minutes=5,
    hidden=lambda seed: [Case("numbers", (X,))],
)
ASSIGNMENT = Assignment("one", "One", "import torch", (TASK,), 0)


@pytest.fixture(autouse=True)
def _no_bubblewrap(monkeypatch):
    monkeypatch.setattr(box, "bubblewrap", lambda: None)


def test_it_is_said_loudly():
    assert box.unprotected().startswith("NOT PROTECTED: bubblewrap")
    assert "your files" in box.unprotected()


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        ("def halves(x): return x / 2", 10.0),
        ("def halves(x): return x", 0.0),
        ("def halves(x):\n    while True: pass", 0.0),
        ("import torch\ntorch.allclose = lambda *a: True\ndef halves(x): return x", 0.0),
        ("from tinytransformer.teaching.grading.tasks import Task\ndef halves(x): return x / 2", 0.0),
    ],
    ids=["right", "wrong", "endless", "patched", "package"],
)
def test_answers_are_graded(answer, points):
    limits = Limits(seconds=4.0, cpu_seconds=2.0)
    assert grade_task(TASK, ASSIGNMENT, answer, 1, limits).points == points
