"""The paper's tables, one command each: ``python -m tinytransformer.experiments table3``."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tinytransformer.experiments.costs import run as costs
from tinytransformer.experiments.families import run as families
from tinytransformer.experiments.lengths import main as lengths
from tinytransformer.experiments.long import run as long
from tinytransformer.experiments.practice import run as practice
from tinytransformer.experiments.refinement import run as refinement
from tinytransformer.experiments.table1 import run as table1
from tinytransformer.experiments.table2 import main as table2
from tinytransformer.experiments.table3 import main as table3
from tinytransformer.experiments.table4 import run as table4

RESULTS = Path("data/results")
Table = Callable[[list[str], Path], None]


def only_output(run: Callable[[Path], object]) -> Table:
    """The command of a table that has nothing to choose but where its results go."""

    def main(arguments: list[str], results: Path) -> None:
        parser = argparse.ArgumentParser(prog=f"python -m tinytransformer.experiments {results.stem}")
        parser.add_argument("--output", type=Path, default=results, help="the results file; default: %(default)s")
        run(parser.parse_args(arguments).output)

    return main


TABLES: Mapping[str, tuple[str, Table]] = {
    "lengths": ("BLEU by sentence length, with attention and without", lengths),
    "table1": ("layers: operations, time, memory, path lengths", only_output(table1)),
    "costs": ("what training costs, then and now", only_output(costs)),
    "table2": ("before and after the Transformer, at equal size", table2),
    "table3": ("variations on the base model, three seeds each", table3),
    "table4": ("parsing as translation", only_output(table4)),
    "refinement": ("all positions at once, then refined, beside one after the other", only_output(refinement)),
    "long": ("long sequences: full attention, blocks, windows, and how far a window reaches", only_output(long)),
    "practice": ("bfloat16, recomputing, accumulating, compiling: each beside the plain way", only_output(practice)),
    "families": ("a decoder that writes and an encoder that fills in, beside baselines", only_output(families)),
}


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m tinytransformer.experiments",
        description="Re-run one of the paper's tables, small. Each command goes on where it stopped.",
        epilog="\n".join(f"  {name:<10} {about}" for name, (about, _) in TABLES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=TABLES, metavar=" | ".join(TABLES))
    chosen = parser.parse_args(arguments[:1]).table
    TABLES[chosen][1](arguments[1:], RESULTS / f"{chosen}.json")


if __name__ == "__main__":
    main()
