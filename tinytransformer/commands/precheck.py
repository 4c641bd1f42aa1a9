"""``precheck``: what a grader would say about a notebook before it runs anything. For students and teachers."""

import argparse
from pathlib import Path

from tinytransformer.teaching.grading.answers import stub
from tinytransformer.teaching.grading.course import ASSIGNMENTS, public
from tinytransformer.teaching.grading.feedback import clean
from tinytransformer.teaching.grading.submissions import SubmissionError, read

DESCRIPTION = """\
Look at a notebook before it is handed in: is every answer where the grader looks for it, does each cell stand alone,
was anything lost or copied? Nothing is run. The exit code is 1 if something would keep a task from being graded."""
EXAMPLES = "example: python -m tinytransformer precheck assignment1.ipynb"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="the notebook to look at")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> int:
    assignments, serious = [public(name) for name in ASSIGNMENTS], False
    for path in options.notebooks:
        try:
            submission = read(path, assignments)
        except SubmissionError as error:
            print(f"{path}: PROBLEM: {clean(error, 500)}")
            serious = True
            continue
        answers, tasks = submission.answers, len(submission.assignment.tasks)
        attempted = sum(not stub(text, name) for name, text in answers.items())
        print(f"{path}: {submission.assignment.name}, {len(answers)} of {tasks} answers found, {attempted} attempted")
        for finding in submission.findings:
            print(f"  {clean(finding, 500)}")
            serious |= finding.serious
    return int(serious)
