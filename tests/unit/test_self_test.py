"""The self-test of lesson 00: right answers in any form, wrong ones with a hint, missing ones without."""

from pathlib import Path

import nbformat
import pytest
import torch

from tinytransformer.teaching import checks
from tinytransformer.teaching.self_test import QUESTIONS

LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "00_start_here.ipynb"
RIGHT = {1: 5, 2: (2, 5, 3), 3: [4, 3], 4: 2, 5: 0.25, 6: 6.0}


def test_right_answers_are_found_right(capsys):
    assert checks.self_test(RIGHT).status == "6 of 6 right"
    assert capsys.readouterr().out.count(": correct\n") == 6


def test_nothing_answered_is_no_mistake(capsys):
    assert checks.self_test(dict.fromkeys(RIGHT)).status == "0 of 6 right"
    assert capsys.readouterr().out.splitlines()[:2] == [f"question {n}: not attempted yet" for n in (1, 2)]


@pytest.mark.parametrize(("number", "wrong"), [(1, 6), (2, (2, 5, 8, 3)), (3, (4, 1)), (4, 4), (5, 1.0), (6, "two x")])
def test_a_wrong_answer_gets_its_hint(number, wrong, capsys):
    assert checks.self_test({**RIGHT, number: wrong}).status == "5 of 6 right"
    assert f"question {number}: not right yet. {QUESTIONS[number - 1].hint}\n" in capsys.readouterr().out


def test_tensors_and_shapes_are_answers_too():
    assert checks.self_test({**RIGHT, 2: torch.Size([2, 5, 3]), 6: torch.tensor(6)}).status == "6 of 6 right"


def test_the_lesson_asks_these_questions():
    (asked,) = (cell.source for cell in nbformat.read(LESSON, as_version=4).cells if cell.id == "self-test")
    for number, question in enumerate(QUESTIONS, start=1):
        assert f"{number}. {question.text}" in asked.replace("`", "")
