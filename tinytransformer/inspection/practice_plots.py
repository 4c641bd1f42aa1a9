"""Figures of what came after the paper, for lesson 12: loaded results files come in, Figures go out."""

from collections.abc import Mapping
from statistics import median

from matplotlib.axes import Axes

from tinytransformer.inspection.plots import PALETTE, Figure, bars, curves, growth

MARKERS = "os^Dv"
SEQUENTIAL, REFINING = "sequential, ", "refining, "


def long_sequences(results: Mapping, kind: str = "forward") -> Figure:
    """Time and memory of every way to attend over n, from long.json; ``kind`` is "forward" or "training".

    The legends tell the power of n by which each grows, fitted over the largest lengths.
    """
    known = list(dict.fromkeys(row["pass"] for row in results["times"]))
    if kind not in known:
        raise ValueError(f"{kind!r} was not measured: choose {' or '.join(known)}")
    lengths = results["settings"]["lengths"]
    fits = {row["way"]: row for row in results["slopes"] if row["pass"] == kind}
    seconds = {(row["way"], row["n"]): median(row["seconds"]) for row in results["times"] if row["pass"] == kind}
    peaks = {(row["way"], row["n"]): row["bytes"] / 1e6 for row in results["memory"] if row["pass"] == kind}
    panels: dict[str, dict[str, list[float]]] = {f"{kind}: seconds": {}, f"{kind}: peak megabytes": {}}
    for way, fit in fits.items():
        for (label, lines), found, power in zip(
            panels.items(), (seconds, peaks), (fit["seconds"]["median"], fit["bytes"]), strict=True
        ):
            panels[label] = lines | {f"{way}: n^{power:.1f}": [found[way, n] for n in lengths]}
    figure = growth(lengths, panels)
    figure.set_size_inches(9.6, 4.8)
    for axes in figure.axes:  # lines fill the panels from corner to corner
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return figure


def reach_by_layers(results: Mapping) -> Figure:
    """How far news travels by layers with a window: gradients (markers) and layers · radius (lines), from long.json.

    The grey line is full attention, which the ends of the sequence stop, and nothing else.
    """
    rows = results["reach"]
    figure, axes = _one_panel(7.4, 3.4)
    layers = sorted({row["layers"] for row in rows})
    axes.plot(layers, [next(row["full"] for row in rows if row["layers"] == number) for number in layers],
              color="0.5", label="full attention")  # fmt: skip
    for colour, marker, radius in zip(PALETTE, MARKERS, dict.fromkeys(row["radius"] for row in rows), strict=False):
        own = [row for row in rows if row["radius"] == radius]
        axes.plot([row["layers"] for row in own], [row["expected"] for row in own], color=colour, lw=1)
        axes.plot([row["layers"] for row in own], [row["measured"] for row in own], marker, color=colour,
                  label=f"window of {radius} to each side")  # fmt: skip
    axes.set(xlabel="layers", ylabel="positions to each side")
    axes.set_xticks(layers)
    axes.grid(alpha=0.3)
    _legend_outside(axes)
    return figure


def refinement_tradeoff(results: Mapping, split: str = "test") -> Figure:
    """BLEU over passes of the decoder, and over sentences a second on one core, from refinement.json.

    Filled points decode one sentence at a time, hollow ones many together. Sequential decoding is a dashed line.
    """
    known = {row["way"]: row for row in results["rows"] if row["split"] == split}
    if not known:
        raise ValueError(f"split {split!r} is not in these results: choose test or test_long")
    figure = Figure(figsize=(10.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    groups = {
        "refining": [way for way in known if way.startswith(REFINING) and "three" not in way],
        "refining, three lengths": [way for way in known if way.startswith(REFINING) and "three" in way],
    }
    for colour, (name, ways) in zip(PALETTE[1:], groups.items(), strict=False):
        points = [known[way] for way in ways]
        left.plot([row["passes"] for row in points], [row["bleu"] for row in points], "o-", color=colour, label=name)
        _speeds(right, results, points, colour)
    reference = [row for way, row in known.items() if way.startswith(SEQUENTIAL)]
    for style, row in zip(("--", ":"), reference, strict=False):
        for axes in (left, right):
            axes.axhline(
                row["bleu"], color=PALETTE[0], ls=style, lw=1, label=f"{row['way']}: {row['passes']:.0f} passes"
            )
        _speeds(right, results, [row], PALETTE[0], "s")
    left.set(xlabel="passes of the decoder", ylabel=f"BLEU, {split}")
    right.set(xlabel="sentences a second", xscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    left.legend(frameon=False)
    return figure


def _speeds(axes: Axes, results: Mapping, rows: list[Mapping], colour, marker: str = "o") -> None:
    """BLEU over speed: one line per number of sentences that are decoded together."""
    speeds = {(row["way"], row["together"]): row["sentences_per_second"] for row in results["speed"]}
    for place, together in enumerate(sorted({together for _, together in speeds})):
        face, style = (colour, "-") if place == 0 else ("none", ":")
        x = [speeds[row["way"], together] for row in rows]
        axes.plot(x, [row["bleu"] for row in rows], marker=marker, color=colour, mfc=face, ls=style)


def ways_of_training(results: Mapping) -> Figure:
    """Time of a step, and peak memory, of every way to train, as multiples of the plain way; from practice.json."""
    rows = [row for row in results["training"] if "missing" not in row]
    plain = next(row for row in rows if row["way"] == "plain")
    others = [row for row in rows if row is not plain]
    series = {
        "seconds": [median(row["seconds"]) / median(plain["seconds"]) for row in others],
        "peak bytes": [row["peak_bytes"] / plain["peak_bytes"] for row in others],
    }
    figure = bars([row["way"] for row in others], {"of a step, plain = 1": series})
    figure.set_size_inches(6.4, 3.4)
    (axes,) = figure.axes
    axes.axhline(1, color="0.3", lw=0.8)
    _legend_outside(axes)
    return figure


def family_losses(results: Mapping) -> Figure:
    """The losses of the two families while they learn, from families.json. They answer different questions."""
    own = {name: results[name]["curve"] for name in ("writer", "reader")}
    named = {"writer: the next token": own["writer"]["loss"], "reader: a hidden token": own["reader"]["loss"]}
    return curves(own["writer"]["steps"], {"loss per token": named}, "steps", markers=False)


def _one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _legend_outside(axes: Axes) -> None:
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
