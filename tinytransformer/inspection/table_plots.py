"""Figures of the paper's tables, for lesson 11: loaded results files, or parts of them, come in; Figures go out."""

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes

from tinytransformer.inspection.plots import PALETTE, Figure

# One colour and one marker for each kind of layer in every figure; what is alike has the same colour.
STYLES = {
    "self-attention": (PALETTE[0], "o", "-"),
    "self-attention, written out": (PALETTE[0], "s", ":"),
    "restricted, by a mask": (PALETTE[9], "v", ":"),
    "restricted, in blocks": (PALETTE[9], "^", "-"),
    "recurrent": (PALETTE[1], "o", "-"),
    "GRU": (PALETTE[1], "D", "--"),
    "LSTM": (PALETTE[1], "s", ":"),
    "convolution": (PALETTE[2], "o", "-"),
    "separable convolution": (PALETTE[2], "s", ":"),
}
PATH_COLOURS = {"self-attention": 0, "recurrent": 1, "restricted": 9, "contiguous": 2, "dilated": 4}
OURS = PALETTE[0]


def growth_over_n(results: Mapping, quantity: str, d: int, kinds: Sequence[str]) -> Figure:
    """Seconds or bytes of a training step over n at one d, from table1.json, with the slopes that were predicted.

    ``quantity`` is "seconds" or "bytes". The pale line behind each curve's end has the predicted slope.
    """
    rows = results[{"seconds": "times", "bytes": "memory"}[quantity]]
    figure, axes = _one_panel(7.6, 4.4)
    for kind in kinds:
        points = [(row["n"], _middle(row[quantity])) for row in rows if row["kind"] == kind and row["d"] == d]
        (fit,) = [row for row in results["slopes"] if (row["kind"], row["along"], row["at"]) == (kind, "n", d)]
        fitted = fit["seconds"]["median"] if quantity == "seconds" else fit["bytes"]
        predicted = fit["all"] if quantity == "seconds" else fit["bytes_predicted"]
        _curve(axes, kind, points, f"{kind}: {fitted:.2f} ({predicted:.2f})")
        first, (n, last) = fit["sizes"][0], points[-1]
        axes.plot([first, n], [last * (first / n) ** predicted, last], color=STYLES[kind][0], alpha=0.3, lw=5, zorder=1)
    _log_axes(axes, sorted({row["n"] for row in rows}), "sequence length n")
    axes.set(yscale="log", ylabel={"seconds": "seconds for one step", "bytes": "peak bytes of one step"}[quantity])
    axes.set_title(f"d = {d}")
    _legend_outside(axes, "slope: fitted (predicted)")
    return figure


def operations_over_n(results: Mapping, d: int, kinds: Sequence[str]) -> Figure:
    """Operations over n at one d: the terms of Table 1 alone, and all products counted, projections included."""
    figure = Figure(figsize=(10.2, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, field, title in zip(panels, ("paper", "all"), ("only the terms of Table 1", "all products"), strict=True):
        for kind in kinds:
            rows = [row for row in results["operations"] if row["kind"] == kind and row["d"] == d]
            _curve(axes, kind, [(row["n"], row[field]) for row in rows], kind)
        _log_axes(axes, sorted({row["n"] for row in results["operations"]}), "sequence length n")
        axes.set(yscale="log", title=f"{title}, d = {d}")
    panels[0].set_ylabel("multiply-adds")
    _legend_outside(panels[1])
    return figure


def claimed_ratios(results: Mapping) -> Figure:
    """How many times cheaper self-attention is than each other layer at the claim's n and d, in several ways."""
    rows = {row["kind"]: row for row in results["claim"]}
    own = rows.pop("self-attention")
    ways = {"the terms of Table 1": lambda row: row["paper"], "all products": lambda row: row["all"]}
    for batch in own["seconds"]:
        ways[f"seconds, batch {batch}"] = lambda row, batch=batch: median(row["seconds"][batch])
    figure, axes = _one_panel(7.8, 3.6)
    height = 0.8 / len(ways)
    for number, (colour, (way, cost)) in enumerate(zip(PALETTE, ways.items(), strict=False)):
        places = [place + (number - (len(ways) - 1) / 2) * height for place in range(len(rows))]
        ratios = [cost(row) / cost(own) for row in rows.values()]
        axes.barh(places, [ratio - 1 for ratio in ratios], height, left=1, color=colour, label=way)
        for place, ratio in zip(places, ratios, strict=True):
            side = "left" if ratio >= 1 else "right"
            axes.annotate(f"{ratio:.2g}", (ratio, place), (3 if ratio >= 1 else -3, 0), textcoords="offset points",
                          va="center", ha=side, fontsize=8)  # fmt: skip
    axes.axvline(1, color="0.3", lw=0.8)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.3, high * 1.3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="cost of the layer / cost of self-attention", title=f"n = {own['n']}, d = {own['d']}")
    axes.grid(axis="x", alpha=0.3)
    _legend_outside(axes)
    return figure


def path_lengths(results: Mapping) -> Figure:
    """Layers, or steps, between the first and the last position: found by gradients (markers), and formulas (lines)."""
    rows = results["paths"]
    figure, axes = _one_panel(7.4, 3.8)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for marker, kind in zip("os^Dv<>P", kinds, strict=False):
        colour = PALETTE[PATH_COLOURS[kind.split(",")[0]]]
        own = [row for row in rows if row["kind"] == kind]
        lengths = [row["n"] for row in own]
        axes.plot(lengths, [row["formula"] for row in own], color=colour, lw=1)
        axes.plot(lengths, [row["measured"] for row in own], color=colour, ls="", marker=marker, label=kind)
    _log_axes(axes, sorted({row["n"] for row in rows}), "sequence length n")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(ylabel="layers (recurrent: steps)")
    _legend_outside(axes)
    return figure


def training_and_generating(results: Mapping) -> Figure:
    """Thousand positions a second in training, and microseconds for one new position in generation, over n."""
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, section, value in (
        (left, "throughput", lambda row: median(row["tokens_per_second"]) / 1000),
        (right, "latency", lambda row: 1e6 * median(row["seconds"])),
    ):
        rows = results[section]
        for kind in dict.fromkeys(row["kind"] for row in rows):
            _curve(axes, kind, [(row["n"], value(row)) for row in rows if row["kind"] == kind], kind)
        _log_axes(axes, sorted({row["n"] for row in rows}), "sequence length n")
        axes.set_yscale("log", base=2 if axes is left else 10)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set(title="training: all positions at once", ylabel="thousand positions per second")
    right.set(title="generating: one position at a time", ylabel="microseconds per position")
    left.legend(frameon=False)
    return figure


def training_costs(results: Mapping) -> Figure:
    """Operations that training base and big took, from costs.json: by hours of GPUs, and by the model's arithmetic."""
    rows = results["rows"]
    figure, axes = _one_panel(6.4, 2.6)
    ways = {"hours × GPUs × 9.5 TFLOPS": "operations_from_hours", "the model's arithmetic": "operations_from_model"}
    for number, (colour, (way, field)) in enumerate(zip((PALETTE[7], OURS), ways.items(), strict=True)):
        places = [place + (number - 0.5) * 0.38 for place in range(len(rows))]
        axes.barh(places, [row[field] for row in rows], 0.36, color=colour, label=way)
        for place, row in zip(places, rows, strict=True):
            share = "" if number == 0 else f"  ({row['model_share_of_hours']:.0%})"
            axes.text(row[field] * 1.06, place, f"{_power_of_ten(row[field])}{share}", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [row["model"] for row in rows])
    axes.invert_yaxis()
    most = max(row["operations_from_hours"] for row in rows)
    axes.set(xscale="log", xlim=(most / 100, most * 8), xlabel="operations of the whole training")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.45, 1.2), ncols=2)
    return figure


def quality_over_cost(panels: Mapping[str, Mapping[str, tuple[float, float]]], ours: str = "Transformer") -> Figure:
    """BLEU over the operations of training: title to system to (operations, BLEU); names with ``ours`` are filled."""
    figure = Figure(figsize=(2.4 + 3.6 * len(panels), 3.6), layout="constrained")
    names = list(dict.fromkeys(name for systems in panels.values() for name in systems))
    families = list(dict.fromkeys(_family(name) for name in names))
    own_markers = dict(zip((name for name in names if ours in name), "oD^v", strict=False))
    handles = {}
    for axes, (title, systems) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for name, (operations, bleu) in systems.items():
            colour = OURS if ours in name else PALETTE[1 + families.index(_family(name))]
            marker = own_markers.get(name, "s" if name != _family(name) else "o")
            face = colour if ours in name else "none"
            (handles[name],) = axes.plot(operations, bleu, marker, color=colour, mfc=face, ms=8, mew=2, label=name)
        axes.set(xscale="log", title=title, xlabel="operations of training", ylabel="BLEU")
        axes.margins(0.12)
        axes.grid(alpha=0.3)
    figure.legend(handles=[handles[name] for name in names], loc="outside right upper", frameon=False)
    return figure


def _family(name: str) -> str:
    """An ensemble has the colour of its single model, and a square."""
    return name.removesuffix(" ensemble")


def _one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _curve(axes: Axes, kind: str, points: Sequence[tuple[float, float]], label: str) -> None:
    colour, marker, line = STYLES[kind]
    axes.plot(*zip(*points, strict=True), color=colour, marker=marker, ls=line, label=label, ms=4.5)


def _log_axes(axes: Axes, ticks: Sequence[int], xlabel: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlabel(xlabel)
    axes.grid(alpha=0.3)


def _legend_outside(axes: Axes, title: str = "") -> None:
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title, alignment="left")


def _middle(value: float | Sequence[float]) -> float:
    return median(value) if isinstance(value, Sequence) else value


def _power_of_ten(value: float) -> str:
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(int(exponent)))
