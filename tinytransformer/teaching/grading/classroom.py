"""Grading a class: every submission in boxes of its own, several at once, each stored when it is done.

Killed half-way, the same command goes on: what was graded is not graded again, unless the submission, the assignment or
the points changed, or a teacher asks for it.
"""

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

import torch

import tinytransformer.teaching.grading.feedback as feedback
from tinytransformer.teaching.grading.answers import Finding, stub
from tinytransformer.teaching.grading.box import Limits
from tinytransformer.teaching.grading.course import Course, CourseError, write
from tinytransformer.teaching.grading.reports import publish
from tinytransformer.teaching.grading.scoring import Graded, grade_task, seed_for
from tinytransformer.teaching.grading.submissions import Submission, SubmissionError, read
from tinytransformer.teaching.grading.tasks import Assignment
from tinytransformer.teaching.verdicts import NOT_ATTEMPTED

SUBMISSION_SECONDS = 55.0  # on the clock, for all tasks together


@dataclass(frozen=True)
class Handed:
    """One file that somebody handed in."""

    student: str
    path: Path


def collect(folder: Path) -> list[Handed]:
    """All submissions of a folder: ``anna.ipynb``, ``anna/whatever.ipynb`` or, as nbgrader collects them,
    ``anna/assignment1/assignment1.ipynb``. Names that could do harm are refused."""
    if not folder.is_dir():
        raise CourseError(f"{folder} is no folder: name the folder with the submissions")
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            inside = sorted([*path.glob("*.ipynb"), *path.glob("[!.]*/*.ipynb")])
            found += [Handed(path.name, inner) for inner in inside]
        else:
            found.append(Handed(path.name.removesuffix(".ipynb"), path))
    for one in found:
        if not re.fullmatch(r"\w[\w .@+-]{0,80}", one.student) or ".." in one.student:
            raise CourseError(
                f"{feedback.clean(one.path.name)!r}: a student's name may hold letters, digits and ' . @ + - _', and "
                "begins with a letter or digit: rename the file"
            )
    return found


def grade_submission(submission: Submission, student: str, secret: str, limits: Limits) -> list[Graded]:
    """All tasks of one submission, one box after another."""
    assignment, begun, graded = submission.assignment, time.monotonic(), []
    seed = seed_for(secret, assignment.name, student)
    for task in assignment:
        left = SUBMISSION_SECONDS - (time.monotonic() - begun)
        if task.name not in submission.answers:
            messages = tuple(submission.problems(task.name))
            graded.append(Graded(task.name, 0.0, task.points, "needs a person", messages=messages))
        elif stub(submission.answers[task.name], task.name):
            graded.append(Graded(task.name, 0.0, task.points, "not attempted"))
        elif left <= 0:
            message = f"not run: the answers before it took the {SUBMISSION_SECONDS:g} seconds of the whole submission"
            graded.append(Graded(task.name, 0.0, task.points, "needs a person", messages=(message,)))
        else:
            own = replace(limits, seconds=min(limits.seconds, left))
            graded.append(grade_task(task, assignment, submission.answers[task.name], seed, own))
    return graded


def opened(handed: Handed, assignments: Sequence[Assignment]) -> Submission | str:
    """The submission, or why there is none."""
    try:
        return read(handed.path, assignments)
    except SubmissionError as error:
        return str(error)


def one_each(handed: Sequence[Handed], assignments: Sequence[Assignment]) -> dict[Handed, Submission | str]:
    """Everything that was handed in, read. Two notebooks of one student for one assignment need a person."""
    found = {one: opened(one, assignments) for one in handed}
    names = {one: (one.student, sub.assignment.name) for one, sub in found.items() if isinstance(sub, Submission)}
    times = Counter(names.values())
    for one, name in names.items():
        if times[name] > 1:
            found[one] = f"{one.path.name} is one of {times[name]} notebooks for {name[1]}: keep one of them"
    return found


def result_of(handed: Handed, submission: Submission | str, course: Course, limits: Limits, again: bool) -> dict:
    """Grade one submission, unless that was done before. A file that could not be read is a result, too."""
    if isinstance(submission, str):
        return {"student": handed.student, "assignment": None, "problem": submission}
    name = submission.assignment.name
    digest = hashlib.sha256(course.fingerprint(name).encode() + handed.path.read_bytes()).hexdigest()
    stored = course.folder / "graded" / name / f"{handed.student}.json"
    if stored.is_file() and not again:
        before = json.loads(stored.read_text(encoding="utf-8"))
        if before["fingerprint"] == digest:
            return before | {"known": True}
    begun = time.monotonic()
    graded = grade_submission(submission, handed.student, course.secret, limits)
    findings = [one for one in (*submission.findings, *_late(handed, course, name)) if one.message != NOT_ATTEMPTED]
    result = {
        "student": handed.student,
        "assignment": name,
        "fingerprint": digest,
        "tasks": [asdict(one) for one in graded],
        "findings": [asdict(one) for one in findings],  # an empty answer is told by its task's status
        "reflection": {"text": submission.reflection[:20_000], "most": submission.assignment.reflection},
        "seconds": round(time.monotonic() - begun, 1),
    }
    write(stored, json.dumps(result, indent=1))
    return result


def _late(handed: Handed, course: Course, name: str) -> list[Finding]:
    """A note, not a deduction: a file's time is what the teacher's own disk says."""
    if name not in course.deadlines:
        return []
    try:
        deadline = datetime.fromisoformat(course.deadlines[name])
    except ValueError:
        raise CourseError(f"deadline {course.deadlines[name]!r} of {name}: write it as 2027-02-01 23:59") from None
    handed_in = datetime.fromtimestamp(handed.path.stat().st_mtime, tz=deadline.tzinfo)
    return [Finding("notebook", f"the file is from {handed_in:%Y-%m-%d %H:%M}, after the deadline")] * (
        handed_in > deadline
    )


def grade_class(
    course: Course,
    submissions: Path,
    tell: Callable[[str], None],
    workers: int | None = None,
    again: Sequence[str] = (),
    limits: Limits | None = None,
) -> list[dict]:
    """Grade all submissions of a folder, then write the book, the pages and ``grades.csv``."""
    handed, assignments = collect(submissions), course.assignments()
    if not handed:
        raise CourseError(f"{submissions} holds no submission: put notebooks there, named by student")
    if unknown := set(again) - {one.student for one in handed}:
        raise CourseError(f"{sorted(unknown)[0]!r} handed nothing in: the students are those of {submissions}")
    torch.set_num_threads(1)
    results = []
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        limits = limits or Limits()
        waiting = [
            pool.submit(result_of, one, submission, course, limits, one.student in again)
            for one, submission in one_each(handed, assignments).items()
        ]
        try:
            for done in as_completed(waiting):
                results.append(done.result())
                tell(f"[{len(results)}/{len(handed)}] {line(results[-1])}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    publish(course, assignments, [one for one in results if one["assignment"] is None])
    return sorted(results, key=lambda one: one["student"])


def line(result: dict) -> str:
    """One submission in one line, for a terminal."""
    student = feedback.clean(result["student"])
    if result["assignment"] is None:
        return f"{student}: NOT GRADED. {feedback.clean(result['problem'], 300)}"
    points, most = (sum(one[key] for one in result["tasks"]) for key in ("points", "most"))
    how = "graded before" if result.get("known") else f"{result['seconds']:.0f} s"
    problems = [one for one in result["findings"] if one["serious"]]
    loud = "".join(f"\n    PROBLEM, {one['about']}: {feedback.clean(one['message'], 300)}" for one in problems)
    return f"{student}, {result['assignment']}: {feedback.number(points)} of {most} ({how}){loud}"
