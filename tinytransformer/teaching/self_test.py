"""The two-minute self-test of lesson 00: what a reader should know before the course begins.

The lesson asks the questions; here are the answers, computed, and what to read again where one was missed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from tinytransformer.teaching.exercises import agree
from tinytransformer.teaching.verdicts import CORRECT, NOT_ATTEMPTED, WRONG, Verdict, report


@dataclass(frozen=True)
class Question:
    """What is asked, how the answer is computed, and what to read again."""

    text: str
    answer: Callable[[], object]
    hint: str


def _slope() -> torch.Tensor:
    x = torch.tensor(3.0, requires_grad=True)
    (x**2).backward()
    return x.grad


QUESTIONS = (
    Question(
        "What is the dot product of [1, 2, 3] and [2, 0, 1]?",
        lambda: torch.tensor([1, 2, 3]) @ torch.tensor([2, 0, 1]),
        "Multiply place by place and add up. Lesson 02 begins with it.",
    ),
    Question(
        "What shape has torch.zeros(2, 5, 8) @ torch.zeros(8, 3)?",
        lambda: (torch.zeros(2, 5, 8) @ torch.zeros(8, 3)).shape,
        "A matrix product joins the last axis of the first with the last but one of the second: both disappear. Axes "
        "in front stay.",
    ),
    Question(
        "What shape has torch.zeros(4, 1) + torch.zeros(3)?",
        lambda: (torch.zeros(4, 1) + torch.zeros(3)).shape,
        "Broadcasting: shapes are compared from the right, and an axis of size 1, or a missing one, is repeated.",
    ),
    Question(
        "What is torch.arange(6).view(2, 3).transpose(0, 1)[2, 0]?",
        lambda: torch.arange(6).view(2, 3).transpose(0, 1)[2, 0],
        "view fills row by row: 0 1 2 and 3 4 5. transpose exchanges rows and columns.",
    ),
    Question(
        "What is the first number of torch.softmax(torch.zeros(4), dim=0)?",
        lambda: torch.softmax(torch.zeros(4), dim=0)[0],
        "A softmax makes positive numbers that sum to one; equal scores get equal shares. Lesson 02 builds it.",
    ),
    Question(
        "x = torch.tensor(3.0, requires_grad=True); (x**2).backward(). What is x.grad?",
        _slope,
        "backward computes slopes: that of x squared is 2 x.",
    ),
)


def self_test(answers: Mapping[int, object]) -> Verdict:
    """Report on each answer, by the number of its question, and on all together."""
    right = 0
    for number, question in enumerate(QUESTIONS, start=1):
        given = answers.get(number)
        passed = given is not None and agree(given, question.answer())
        right += passed
        status = CORRECT if passed else NOT_ATTEMPTED if given is None else WRONG
        report(Verdict(f"question {number}", status, question.hint if status == WRONG else ""))
    return report(Verdict("self-test", f"{right} of {len(QUESTIONS)} right"))
