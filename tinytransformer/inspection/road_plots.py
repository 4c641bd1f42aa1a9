"""Figures about what came before attention, for lesson 01: shapes of recurrent nets, fading slopes, length and BLEU."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from tinytransformer.inspection.plots import PALETTE, Figure

ROWS = {"input": 0, "state": 1, "output": 2}  # from below
COLOURS = {"input": PALETTE[0], "state": "0.8", "output": PALETTE[2]}
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def unrolled(panels: Mapping[str, Sequence[tuple[bool, bool]]]) -> Figure:
    """Recurrent nets drawn step by step: title to (reads an input, writes an output) for every step."""
    widths = [len(steps) + 0.2 for steps in panels.values()]
    figure = Figure(figsize=(1.0 + 0.62 * sum(widths), 2.5), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for axes, (title, steps) in zip(all_axes, panels.items(), strict=True):
        for step, (reads, writes) in enumerate(steps):
            _box(axes, step, "state")
            if step:
                _arrow(axes, (step - 0.72, 1), (step - 0.28, 1))
            if reads:
                _box(axes, step, "input")
                _arrow(axes, (step, 0.28), (step, 0.72))
            if writes:
                _box(axes, step, "output")
                _arrow(axes, (step, 1.28), (step, 1.72))
        axes.set(xlim=(-0.6, len(steps) - 0.4), ylim=(-0.5, 2.5), aspect="equal", xticks=[], yticks=[])
        axes.set_title(title, fontsize=10)
        axes.spines[:].set_visible(False)
    all_axes[0].set_yticks(list(ROWS.values()), list(ROWS))
    all_axes[0].tick_params(length=0)
    return figure


def fading(panels: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str, floor: float = 1e-8) -> Figure:
    """How numbers shrink or grow with distance 1, 2, 3 …: one panel per title, all on one logarithmic scale.

    What is below the ``floor`` lies on it: nobody can learn from either.
    """
    figure = Figure(figsize=(6.0 * len(panels), 3.6), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        for colour, style, (name, values) in zip(PALETTE, STYLES, lines.items(), strict=False):
            values = np.maximum(np.asarray(values, dtype=float), floor)
            axes.plot(range(1, len(values) + 1), values, color=colour, linestyle=style, label=name)
        axes.axhline(1, color="0.5", lw=0.8)
        axes.set(title=title, xlabel="distance in words", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    all_axes[0].set_ylabel(ylabel)
    return figure


def by_length(spans: Sequence[str], scores: Mapping[str, Sequence[Sequence[float]]], ylabel: str = "BLEU") -> Figure:
    """Scores over sentence lengths: name to one row of scores per seed. A line is the mean, a point is a seed."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(spans))
    for number, (name, rows) in enumerate(scores.items()):
        rows = np.asarray(rows, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(spans):
            raise ValueError(
                f"{name}: scores have shape {rows.shape}, but there are {len(spans)} lengths: one row a seed"
            )
        colour, marker = PALETTE[number], "os^Dv"[number]
        axes.plot(places, rows.mean(axis=0), color=colour, linestyle=STYLES[number], label=name)
        axes.fill_between(places, rows.min(axis=0), rows.max(axis=0), color=colour, alpha=0.2, lw=0)
        for row in rows:
            axes.plot(places, row, marker, color=colour, ms=4, alpha=0.7)
    axes.set_xticks(places, spans)
    axes.set(xlabel="words of the source sentence", ylabel=ylabel)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


def _box(axes: Axes, step: int, kind: str) -> None:
    corner = (step - 0.2, ROWS[kind] - 0.2)
    patch = FancyBboxPatch(corner, 0.4, 0.4, boxstyle="round,pad=0.06", facecolor=COLOURS[kind], edgecolor="0.3")
    patch.set_gid(kind)
    axes.add_patch(patch)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": "0.3"})
