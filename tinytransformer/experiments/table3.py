"""Table 3 small: the paper's variations on the base model, re-run on the microworld with three seeds each.

Every size is scaled down: rows (A) to (E) change heads, d_k, size, dropout and label smoothing, and positions by the
paper's proportions where small numbers allow it; of two layers none is a third, so ours are halved and grow by one and
two. Below them stand rows that the paper does not have but people quote, and the deepest and the biggest model again
with pre-norm. The text is small on purpose, so that no model becomes perfect and differences show.
**Departure**: one peak of the learning rate for all rows, found for the base; the paper's formula depends on d_model.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from tinytransformer.experiments.runs import (
    RESULT,
    Task,
    command_options,
    parameters,
    result_of,
    said,
    trained,
    versions,
    write,
)
from tinytransformer.experiments.variants import CHANGES
from tinytransformer.model.transformer import Transformer
from tinytransformer.training.preparing import validation_corpus
from tinytransformer.training.recipe import Recipe

COMMAND = "python -m tinytransformer.experiments table3"
SEEDS = (1, 2, 3)
SENTENCES = 1000
BASE = Recipe(
    pairs=3000,
    vocab_size=1500,
    d_model=64,
    num_heads=4,
    d_ff=256,
    num_layers=2,
    dropout=0.1,
    norm="post",
    tokens=512,
    steps=1800,
    peak=4e-3,
    warmup=400,
    falls="root",
    save_every=50,
    validate_every=10**6,
)


@dataclass(frozen=True)
class Row:
    """One line of the table: what differs from the base, in the recipe, in the model's sizes, or in its parts."""

    name: str
    group: str
    recipe: Mapping[str, float | str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # of TransformerConfig, where a recipe has no such field
    change: str = ""  # one of `variants.CHANGES`

    def model(self, seed: int) -> Transformer:
        """The row's model with the first weights of a seed."""
        torch.manual_seed(seed)
        return CHANGES[self.change](Transformer(replace(self.made(seed).config(), **self.sizes)))

    def made(self, seed: int) -> Recipe:
        """The recipe of a run."""
        return replace(BASE, **self.recipe, seed=seed)

    def settings(self, seed: int) -> dict:
        """All that a run depends on, as plain values; what a recipe says anyway is left out."""
        return {"recipe": said(self.made(seed)), "sizes": dict(self.sizes), "change": self.change}


ROWS = (
    Row("base", "base"),
    Row("h = 1", "A", {"num_heads": 1}),
    Row("h = 2", "A", {"num_heads": 2}),
    Row("h = 8", "A", {"num_heads": 8}),
    Row("h = 16", "A", {"num_heads": 16}),
    Row("d_k = 4", "B", sizes={"d_k": 4}),
    Row("d_k = 8", "B", sizes={"d_k": 8}),
    Row("N = 1", "C", {"num_layers": 1}),
    Row("N = 3", "C", {"num_layers": 3}),
    Row("N = 4", "C", {"num_layers": 4}),
    Row("d_model = 32", "C", {"d_model": 32}),
    Row("d_model = 128", "C", {"d_model": 128}),
    Row("d_ff = 128", "C", {"d_ff": 128}),
    Row("d_ff = 512", "C", {"d_ff": 512}),
    Row("dropout 0.0", "D", {"dropout": 0.0}),
    Row("dropout 0.2", "D", {"dropout": 0.2}),
    Row("smoothing 0.0", "D", {"smoothing": 0.0}),
    Row("smoothing 0.2", "D", {"smoothing": 0.2}),
    Row("learned positions", "E", {"positions": "learned"}),
    Row("big", "big", {"d_model": 128, "d_ff": 512, "num_heads": 8, "dropout": 0.3}),
    Row("no residual", "quoted", change="no residual"),
    Row("no LayerNorm", "quoted", change="no LayerNorm"),
    Row("pre-norm", "quoted", {"norm": "pre"}),
    Row("no positions", "quoted", {"positions": "none"}),
    Row("no scaling", "quoted", change="no scaling"),
    Row("N = 4, pre-norm", "quoted", {"num_layers": 4, "norm": "pre"}),
    Row("big, pre-norm", "quoted", {"d_model": 128, "d_ff": 512, "num_heads": 8, "dropout": 0.3, "norm": "pre"}),
)


def row_named(name: str) -> Row:
    """The row of this name."""
    for row in ROWS:
        if row.name == name:
            return row
    raise ValueError(f"there is no row {name!r}: choose from {'; '.join(row.name for row in ROWS)}")


def task() -> Task:
    """The text of all rows, the same for all seeds."""
    return Task.of(BASE, validation_corpus(BASE, count=SENTENCES))


def run_one(row: Row, seed: int, common: Task, folder: Path) -> dict:
    """One run of one row: read if it was done before, else trained and scored now."""
    place = run_folder(folder, row, seed)
    model = row.model(seed)

    def run() -> dict:
        return {"seed": seed, **trained(model, row.made(seed), common, place), "parameters": parameters(model)}

    return result_of(place, row.settings(seed), run)


def run_folder(folder: Path, row: Row, seed: int) -> Path:
    return folder / f"{row.name.lower().replace(' ', '-').replace('=-', '').replace(',', '')}-{seed}"


def collect(folder: Path) -> dict:
    """The results file from whatever runs are done."""
    rows = []
    for row in ROWS:
        runs = [
            result_of(run_folder(folder, row, seed), row.settings(seed), dict)
            for seed in SEEDS
            if (run_folder(folder, row, seed) / RESULT).is_file()
        ]
        if runs:
            config = {**asdict(row.model(SEEDS[0]).config), **{name: getattr(row.made(1), name) for name in TRAINING}}
            rows.append(
                {"name": row.name, "group": row.group, "config": {**config, "change": row.change}, "runs": runs}
            )
    about = {"command": COMMAND, "versions": versions(), "sentences": SENTENCES, "task": TASK}
    return {**about, "rows": rows}


TRAINING = ("pairs", "tokens", "steps", "peak", "warmup", "falls", "smoothing", "clip", "keep")
TASK = "microworld en–de; scores on its validation split; beam 4, α = 0.6, the last checkpoints averaged"


def spread(values: Iterable[float]) -> tuple[float, float]:
    """Mean and standard deviation (n − 1) of the seeds."""
    values = list(values)
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def line(row: Mapping) -> str:
    """A row of results as text."""
    done = [run for run in row["runs"] if "bleu" in run]
    if not done:
        return f"{row['group']:>6}  {row['name']:<18} failed after {[run['failed_after'] for run in row['runs']]} steps"
    (perplexity, width), (bleu, range_) = (spread(run[name] for run in done) for name in ("perplexity", "bleu"))
    size = done[0]["parameters"]
    return f"{row['group']:>6}  {row['name']:<18} {perplexity:6.3f} ±{width:.3f}  {bleu:6.2f} ±{range_:.2f}  {size:>9,}"


def main(arguments: Sequence[str], results: Path) -> None:
    """Train what is missing, and write what there is after each run."""
    parser = command_options(COMMAND, __doc__, results)
    parser.add_argument("--only", help="train these rows only, with semicolons between their names")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="default: 1 2 3")
    options = parser.parse_args(arguments)
    rows = [row_named(name.strip()) for name in options.only.split(";")] if options.only else ROWS
    torch.set_num_threads(1)
    common = task()
    for seed in options.seeds:
        for row in rows:
            found = run_one(row, seed, common, options.folder)
            print(f"seed {seed}, {row.name}: {found}", flush=True)
            write(options.output, collect(options.folder))
    for row in collect(options.folder)["rows"]:
        print(line(row))
