"""Verdicts: what was found out about a learner's function or about a claim of a lesson. Only `report` prints.

Every verdict that a lesson prints goes through here, so that each of them could have been a failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

CORRECT = "correct"
NOT_ATTEMPTED = "not attempted yet"
WRONG = "not right yet"
STOPPED = "stopped by an error"


@dataclass(frozen=True)
class Verdict:
    """One finding: about what, its status, a hint, and the name of the mistake if it is a known one."""

    subject: str
    status: str
    hint: str = ""
    mistake: str | None = None

    @property
    def passed(self) -> bool:
        return self.status == CORRECT

    def __str__(self) -> str:
        return f"{self.subject}: {self.status}" + (f". {self.hint}" if self.hint else "")

    def _ipython_display_(self) -> None:
        """A notebook shows nothing: the verdict was printed when it was reported."""


def report(verdict: Verdict) -> Verdict:
    """Print a verdict and hand it back."""
    print(verdict)
    return verdict


def same(subject: str, ours, theirs, tolerance: float = 1e-5) -> Verdict:
    """Report whether two tensors, or two sequences of tensors, have the same shapes and, to a tolerance, values."""
    try:
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance, check_dtype=False)
    except AssertionError as difference:
        first = str(difference).strip().splitlines()
        return report(Verdict(subject, "DIFFERENT", " ".join(line.strip() for line in first if line.strip())))
    return report(Verdict(subject, f"the same to {tolerance:g}"))


def holds(claim: str, truth) -> Verdict:
    """Report whether a claim came true: ``truth`` is a bool or a tensor or sequence of them, all of which must be."""
    if isinstance(truth, Sequence):
        truth = all(truth)
    return report(Verdict(claim, "yes" if bool(torch.as_tensor(truth).all()) else "NO"))
