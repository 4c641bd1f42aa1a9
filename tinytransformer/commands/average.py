"""``average``: the mean of the last checkpoints of one run, or of several, as a model folder."""

import argparse
from pathlib import Path

from tinytransformer.training.recipe import Recipe
from tinytransformer.translation.card import finished_model

DESCRIPTION = """\
Average the last checkpoints of a run (the paper: the last 5 for base, the last 20 for big) into a model folder with a
card. `train` does this at its end; use it for another number of checkpoints, or while a run is still going on.

Of several runs that went on from one model (`train --start`) the mean is often better than each of them."""
EXAMPLES = """\
examples:
  python -m tinytransformer average runs/microworld --last 3 --output runs/average-of-three
  python -m tinytransformer average runs/first runs/second --last 10 --output runs/both"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("runs", type=Path, nargs="+", metavar="run", help="the folder of a run, or of several")
    parser.add_argument("--last", type=int, default=5, help="how many checkpoints of each run; default: 5")
    parser.add_argument("--output", type=Path, required=True, help="the model folder to write")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    first, *others = options.runs
    _, used = finished_model(Recipe.load(first), first, options.last, options.output, others)
    names = [str(path.relative_to(path.parent.parent) if others else path.name) for path in used]
    print(f"{options.output}: the average of {', '.join(names)}")
