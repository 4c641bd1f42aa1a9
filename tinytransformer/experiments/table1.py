"""Table 1 measured: what a layer costs (operations, seconds, bytes), how many of its steps wait for each other, and how
far apart two positions are.

`run` writes each section to a results file as soon as it is measured, and goes on where it stopped.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from tinytransformer.experiments.generating import cache_sizes, latency, throughput, training_step
from tinytransformer.experiments.layer_kinds import KINDS, travelling
from tinytransformer.experiments.measuring import (
    counted_operations,
    crossing,
    in_turns,
    longest_chain,
    one_thread,
    path_length,
    peak_bytes,
    slope,
    slope_over_rounds,
)
from tinytransformer.experiments.runs import in_sections, versions

COMMAND = "python -m tinytransformer.experiments table1"
NOTE = (
    "One thread, batch 1 unless said, float32, forward and backward. Seconds are the processor's, taken in interleaved "
    "rounds of one process; compare them with each other, not with another machine's. Operations are multiply-adds of "
    "one forward pass. Bytes are the most that PyTorch's allocator had handed out at one moment of a forward and "
    "backward pass, beyond weights and input."
)
RIVALS = ("recurrent", "GRU", "LSTM", "convolution")
ATTENTION = "self-attention"


@dataclass(frozen=True)
class Settings:
    """The sizes to measure at. ``fitted`` counts the largest sizes that a slope is fitted over."""

    lengths: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 2048)
    features: tuple[int, ...] = (64, 128, 256, 512)
    fitted: int = 3
    rounds: int = 7
    counted_up_to: int = 256
    claim: tuple[int, int] = (50, 512)  # n and d of an often-heard claim
    claim_batches: tuple[int, ...] = (1, 32)
    path_lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    path_kernels: tuple[int, ...] = (3, 5)
    generated: tuple[int, ...] = (16, 64, 256, 1024, 4096, 16384)
    generating_features: int = 256
    tokens_in_batch: int = 2048
    cache_lengths: tuple[int, ...] = (32, 128, 512)
    seed: int = 0

    def __post_init__(self):
        shorter = min(len(self.lengths), len(self.features))
        if not 2 <= self.fitted <= shorter:
            raise ValueError(f"fitted={self.fitted} sizes make no slope: choose 2 to {shorter}, as there are sizes")


FULL = Settings()


def operations(settings: Settings) -> list[dict]:
    """Multiply-adds by the formula, split into parts, beside those that PyTorch's counter finds."""
    rows = []
    for name, kind in KINDS.items():
        for d in settings.features:
            layer = kind.build(d)
            for n in settings.lengths:
                row = {"kind": name, "n": n, "d": d, "paper": kind.paper(n, d), "products": kind.products(n, d)}
                row["all"] = kind.operations(n, d)
                if n <= settings.counted_up_to:
                    row["counted"] = counted_operations(lambda layer=layer, n=n, d=d: layer(torch.randn(1, n, d)))
                rows.append(row)
    return rows


def sequential(settings: Settings) -> list[dict]:
    """The most matrix products that wait for each other, from the autograd graph; features play no part in it."""
    d, lengths = settings.features[0], [n for n in settings.lengths if n <= settings.counted_up_to]
    return [
        {"kind": name, "n": n, "products": longest_chain(lambda kind=kind, n=n: kind.build(d)(torch.randn(1, n, d)))}
        for name, kind in KINDS.items()
        for n in lengths
    ]


def paths(settings: Settings, d: int = 8) -> list[dict]:
    """Layers, or steps of a recurrence, until a gradient flows from the last position to the first."""
    generator = torch.Generator().manual_seed(settings.seed)
    return [
        {"kind": name, "n": n, "formula": formula(n), "measured": path_length(outputs, n, d, generator)}
        for name, (outputs, formula) in travelling(settings.path_kernels, d).items()
        for n in settings.path_lengths
    ]


def times(settings: Settings) -> list[dict]:
    """Seconds of a training step of every kind, at every n and d, in interleaved rounds over the whole grid."""
    layers = {(name, d): KINDS[name].build(d) for name in KINDS for d in settings.features}
    cells = [(name, n, d) for d in settings.features for n in settings.lengths for name in KINDS]
    tasks = {(name, n, d): training_step(layers[name, d], 1, n, d) for name, n, d in cells}
    measured = in_turns(tasks, settings.rounds)
    return [{"kind": name, "n": n, "d": d, "seconds": measured[name, n, d]} for name, n, d in cells]


def memory(settings: Settings) -> list[dict]:
    """Peak bytes of a training step of every kind, at every n and d."""
    return [
        {"kind": name, "n": n, "d": d, "bytes": peak_bytes(training_step(KINDS[name].build(d), 1, n, d))}
        for name in KINDS
        for d in settings.features
        for n in settings.lengths
    ]


def claim(settings: Settings) -> list[dict]:
    """Is attention 10 × cheaper than a recurrent layer at n = 50, d = 512? Counted two ways, and timed."""
    n, d = settings.claim
    kinds = (ATTENTION, *RIVALS)
    layers = {name: KINDS[name].build(d) for name in kinds}
    tasks = {
        (name, batch): training_step(layers[name], batch, n, d) for batch in settings.claim_batches for name in kinds
    }
    measured = in_turns(tasks, settings.rounds)
    rows = []
    for name in kinds:
        row = {"kind": name, "n": n, "d": d, "paper": KINDS[name].paper(n, d), "all": KINDS[name].operations(n, d)}
        row["seconds"] = {str(batch): measured[name, batch] for batch in settings.claim_batches}
        rows.append(row)
    return rows


def crossovers(settings: Settings, timed: list[dict]) -> list[dict]:
    """From which n on self-attention costs more than another layer: the paper's terms, all products, and seconds."""
    rows = []
    for rival in RIVALS:
        for d in settings.features:
            row = {"against": rival, "d": d}
            row["paper"] = first_above(KINDS[ATTENTION].paper, KINDS[rival].paper, d)
            row["all"] = first_above(KINDS[ATTENTION].operations, KINDS[rival].operations, d)
            one, other = (
                [median(each["seconds"]) for each in timed if (each["kind"], each["d"]) == (name, d)]
                for name in (ATTENTION, rival)
            )
            row["seconds"] = crossing(settings.lengths, one, other)
            rows.append(row)
    return rows


def first_above(one: Callable[[int, int], int], other: Callable[[int, int], int], d: int) -> int | None:
    """The smallest n at which ``one`` costs more than ``other``: 1 if always. None up to 16 · d: never, here."""
    return next((n for n in range(1, 16 * d + 1) if one(n, d) > other(n, d)), None)


def slopes(settings: Settings, timed: list[dict], held: list[dict]) -> list[dict]:
    """How seconds and bytes grow along n at each d, and along d at each n: fitted beside predicted."""
    seconds = {(row["kind"], row["n"], row["d"]): row["seconds"] for row in timed}
    peaks = {(row["kind"], row["n"], row["d"]): row["bytes"] for row in held}
    rows = []
    for name in KINDS:
        kind = KINDS[name]
        for along, sizes, others in (
            ("n", settings.lengths, settings.features),
            ("d", settings.features, settings.lengths),
        ):
            largest = sizes[-settings.fitted :]
            for other in others:
                cells = [(size, other) if along == "n" else (other, size) for size in largest]
                row = {"kind": name, "along": along, "at": other, "sizes": list(largest)}
                row["paper"] = slope(largest, [kind.paper(*cell) for cell in cells])
                row["all"] = slope(largest, [kind.operations(*cell) for cell in cells])
                row["seconds"] = slope_over_rounds(largest, [seconds[name, *cell] for cell in cells])
                row["bytes"] = slope(largest, [peaks[name, *cell] for cell in cells])
                if along == "n":
                    row["bytes_predicted"] = kind.memory_growth
                rows.append(row)
    return rows


def run(path: Path, settings: Settings = FULL) -> dict:
    """Measure every section that the file at ``path`` does not have yet, write it, and return all of them."""
    head = {"command": COMMAND, "versions": versions(), "note": NOTE, "settings": asdict(settings)}
    sections: dict[str, Callable[[dict], list[dict]]] = {
        "operations": lambda results: operations(settings),
        "sequential": lambda results: sequential(settings),
        "paths": lambda results: paths(settings),
        "times": lambda results: times(settings),
        "memory": lambda results: memory(settings),
        "claim": lambda results: claim(settings),
        "crossovers": lambda results: crossovers(settings, results["times"]),
        "slopes": lambda results: slopes(settings, results["times"], results["memory"]),
        "throughput": lambda results: throughput(
            settings.lengths, settings.generating_features, settings.tokens_in_batch, settings.rounds
        ),
        "latency": lambda results: latency(settings.generated, settings.generating_features, settings.rounds),
        "cache": lambda results: cache_sizes(settings.cache_lengths),
    }
    with one_thread():
        return in_sections(path, head, sections, settings.seed)
