"""A Table 2 of our own: before and after the Transformer, on one corpus, at equal size, with what each one cost.

An LSTM without attention, one with additive attention, gated convolutions and the Transformer, with as many parameters
each (within a tenth). Every one gets the same number of tries at its learning rate, on the validation split. Then they
learn from 1,000, 10,000 and 100,000 pairs, with three seeds each, and are scored on the test split twice: after equally
many updates, and after as many as fit into the seconds that the Transformer's take.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from tinytransformer.experiments.measuring import in_turns
from tinytransformer.experiments.runs import (
    Task,
    command_options,
    forget_checkpoints,
    parameters,
    result_of,
    said,
    trained,
    trained_until,
    versions,
    write,
)
from tinytransformer.text.batching import TokenBatches
from tinytransformer.text.corpus import microworld
from tinytransformer.training.loss import batch_loss
from tinytransformer.training.preparing import encode, initial_model
from tinytransformer.training.recipe import Recipe

COMMAND = "python -m tinytransformer.experiments table2"
NOTE = (
    "microworld en–de; BLEU on its test split, beam 4, α = 0.6, the last checkpoints averaged. Seconds of an update "
    "are the processor's, on one thread, measured in turns"
)
ARCHITECTURES = ("lstm", "lstm-additive", "convs2s", "transformer")
LAYERS = {"lstm": 2, "lstm-additive": 2, "convs2s": 4, "transformer": 3}
SEEDS = (1, 2, 3)
PAIRS = (1_000, 10_000, 100_000)
TUNED_ON = 10_000  # pairs
PEAKS = (1e-3, 2.5e-3, 6e-3, 1.5e-2)
SENTENCES = 500
UPDATES = 2000
BASE = Recipe(
    vocab_size=1500,
    d_model=64,
    num_heads=4,
    d_ff=256,
    dropout=0.1,
    norm="pre",
    tokens=512,
    steps=UPDATES,
    warmup=200,
    falls="root",
    save_every=50,
    validate_every=10**6,
)


@cache
def sized(architecture: str) -> Recipe:
    """The recipe of an architecture, as wide as it takes to have the Transformer's number of parameters."""
    goal = parameters(initial_model(replace(BASE, num_layers=LAYERS["transformer"])))
    base = replace(BASE, architecture=architecture, num_layers=LAYERS[architecture])
    if architecture == "transformer":
        return base
    wide = [replace(base, d_model=width) for width in range(32, 161, 4)]
    return min(wide, key=lambda recipe: abs(parameters(initial_model(recipe)) - goal))


@cache
def task(pairs: int, split: str) -> Task:
    """So many pairs to learn from, and the sentences of a split to be judged by; the same for all architectures."""
    return Task.of(replace(BASE, pairs=pairs), microworld(split, SENTENCES, seed=1))


def seconds_of_an_update(rounds: int = 7) -> dict[str, float]:
    """Forward, backward and Adam on a batch of real sentences, in turns: the median of some rounds."""
    common = task(TUNED_ON, "valid")
    batches = TokenBatches(encode(common.tokenizer, common.train), BASE.tokens)
    some = [batches.batch(rows) for rows in batches.plan(0, 1)[:8]]

    def updates(architecture: str) -> Callable[[], None]:
        model = initial_model(sized(architecture)).train()
        optimiser = torch.optim.Adam(model.parameters(), fused=True)

        def run() -> None:
            for batch in some:
                optimiser.zero_grad(set_to_none=True)
                loss, count = batch_loss(model, batch)
                (loss / count).backward()
                optimiser.step()

        return run

    found = in_turns({name: updates(name) for name in ARCHITECTURES}, rounds)
    return {name: round(statistics.median(times) / len(some), 5) for name, times in found.items()}


def tried(architecture: str, peak: float, folder: Path) -> dict:
    """One try at the learning rate."""
    recipe = replace(sized(architecture), pairs=TUNED_ON, peak=peak)
    place = folder / f"{architecture}-peak-{peak:g}"

    def run() -> dict:
        return {"peak": peak, **trained(initial_model(recipe), recipe, task(TUNED_ON, "valid"), place)}

    return result_of(place, said(recipe), run)


def best_peak(tries: Sequence[Mapping]) -> float:
    """The learning rate with the lowest perplexity on validation."""
    return min(tries, key=lambda found: found.get("perplexity", float("inf")))["peak"]


def compared(recipe: Recipe, in_equal_time: int, seed: int, folder: Path) -> dict:
    """Train once, and score at two moments: after `UPDATES`, and after as many as fit into equal time."""
    place = folder / f"{recipe.architecture}-{recipe.pairs}-{seed}"
    recipe = replace(recipe, seed=seed)

    def run() -> dict:
        model, common = initial_model(recipe), task(recipe.pairs, "test")
        found = {
            steps: trained_until(model, replace(recipe, steps=steps), common, place)
            for steps in sorted({UPDATES, in_equal_time})
        }
        forget_checkpoints(place)
        equal = {"equal_updates": found[UPDATES], "equal_seconds": {"updates": in_equal_time, **found[in_equal_time]}}
        return {"seed": seed, **equal}

    return result_of(place, {**said(recipe), "in_equal_time": in_equal_time}, run)


def main(arguments: Sequence[str], results: Path) -> None:
    """Tune, train what is missing, and write what there is after each run."""
    parser = command_options(COMMAND, __doc__, results)
    part = "; a part of the table needs an --output of its own"
    parser.add_argument("--pairs", type=int, nargs="+", default=PAIRS, help=f"default: 1000 10000 100000{part}")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help=f"default: 1 2 3{part}")
    options = parser.parse_args(arguments)
    if options.output == results and not (set(PAIRS) <= set(options.pairs) and set(SEEDS) <= set(options.seeds)):
        parser.error(f"a part of the table would replace {results}: give it an --output of its own")
    torch.set_num_threads(1)
    seconds = result_of(options.folder / "seconds", {"updates": "of a batch"}, seconds_of_an_update)
    rows = {name: {"name": name, "seconds_of_an_update": seconds[name]} for name in ARCHITECTURES}
    for name, row in rows.items():
        row["tries"] = [tried(name, peak, options.folder) for peak in PEAKS]
        row["peak"] = best_peak(row["tries"])
        row["d_model"], row["num_layers"] = sized(name).d_model, sized(name).num_layers
        row["parameters"] = parameters(initial_model(sized(name)))
        row["runs"] = {str(pairs): [] for pairs in options.pairs}
        print(f"{name}: {row['parameters']:,} parameters, peak {row['peak']}", flush=True)
    about = {"command": COMMAND, "versions": versions(), "note": NOTE, "updates": UPDATES}
    for pairs in options.pairs:
        for seed in options.seeds:
            for name, row in rows.items():
                recipe = replace(sized(name), pairs=pairs, peak=row["peak"])
                in_equal_time = round(UPDATES * seconds["transformer"] / seconds[name])
                row["runs"][str(pairs)].append(compared(recipe, in_equal_time, seed, options.folder))
                print(f"{name}, {pairs} pairs: {row['runs'][str(pairs)][-1]}", flush=True)
                write(options.output, {**about, "rows": list(rows.values())})
