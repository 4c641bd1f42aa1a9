"""``grade``: a folder of submissions to grades and feedback, without trusting a line of them."""

import argparse
import sys
from pathlib import Path

from tinytransformer.teaching.grading.box import unprotected
from tinytransformer.teaching.grading.classroom import grade_class
from tinytransformer.teaching.grading.course import Course

DESCRIPTION = """\
Grade a folder of notebooks named by student (anna.ipynb, or anna/assignment1.ipynb). Each answer runs in a box of its
own; what it returns is compared outside. Writes grades.csv, feedback/, nbgrader's gradebook.db and reflections/ into
the course folder. Stopped half-way, the same command goes on."""
EXAMPLES = "example: python -m tinytransformer grade submissions --course course --regrade anna"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("submissions", type=Path, help="the folder with the notebooks")
    parser.add_argument("--course", type=Path, default=Path("course"), help="the course's folder; default: course")
    parser.add_argument("--regrade", action="append", default=[], metavar="STUDENT", help="grade this student again")
    parser.add_argument("--workers", type=int, help="how many submissions at once; default: one for each core")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers {options.workers}: at least one is needed")
    if warning := unprotected():
        print(f"\n{warning}\n", file=sys.stderr)
    course = Course.load(options.course)
    results = grade_class(course, options.submissions, print, options.workers, options.regrade)
    lost = [one for one in results if one["assignment"] is None]
    again = sum(one.get("known", False) for one in results)
    needed = [
        one for one in results if one["assignment"] and any(task["status"] == "needs a person" for task in one["tasks"])
    ]
    print(f"\n{len(results)} submissions: {len(results) - len(lost)} graded ({again} of them before), {len(lost)} not")
    for one in lost:
        print(f"  NOT GRADED {one['student']}: see above")
    for one in needed:
        print(f"  NEEDS A PERSON {one['student']}, {one['assignment']}: see {options.course / 'feedback'}")
    print(f"{options.course / 'grades.csv'} · {options.course / 'feedback'} · {options.course / 'reflections'}")
