"""``classroom``: a course folder with the assignments as students get them."""

import argparse
from pathlib import Path

from tinytransformer.teaching.grading.course import make

DESCRIPTION = """\
Make a course folder: the four assignments without their solutions, to be handed out (release/), the teacher's versions
(source/), and course.json with points and deadlines, which you may change; run the command again after a change. With
--private, task variants and hidden inputs come from a folder that you keep. docs/teaching.md tells the whole way."""
EXAMPLES = "example: python -m tinytransformer classroom --course course --private ../my-variants"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--course", type=Path, default=Path("course"), help="the folder to make; default: course")
    parser.add_argument("--private", type=Path, help="a folder with your own variants and hidden inputs")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    for path in make(options.course, options.private):
        print(path)
    print(f"Hand these out. Points and deadlines: {options.course / 'course.json'}")
