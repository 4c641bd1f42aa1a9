"""``average``: the mean of a run's last checkpoints as a model folder."""

import argparse
from pathlib import Path

from tinytransformer.training.recipe import Recipe
from tinytransformer.translation.card import finished_model

DESCRIPTION = """\
Average the last checkpoints of a run (the paper: the last 5 for base, the last 20 for big) into a model folder with a
card. `train` does this at its end; use it for another number of checkpoints, or while a run is still going on."""
EXAMPLES = "example: python -m tinytransformer average runs/microworld --last 3 --output runs/average-of-three"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("--last", type=int, default=5, help="how many checkpoints; default: 5")
    parser.add_argument("--output", type=Path, required=True, help="the model folder to write")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    _, used = finished_model(Recipe.load(options.run), options.run, options.last, options.output)
    print(f"{options.output}: the average of {', '.join(path.name for path in used)}")
