"""Figures of training runs with several seeds, for lesson 11: plain numbers come in, Figures go out."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from tinytransformer.inspection.plots import PALETTE, Figure

MARKERS = "os^Dv"


def variations(
    base: Sequence[float],
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    paper: Mapping[str, float],
    noise: float,
    xlabel: str = "BLEU more than the base",
) -> Figure:
    """How far each variation is from the base: group to row to the scores of its seeds, and the paper's differences.

    A point is a seed against the base's mean, a bar their mean; the band is ``noise`` to either side. A diamond is the
    difference in the paper, which has another scale and another text.
    """
    rows = [(group, name, scores) for group, members in groups.items() for name, scores in members.items()]
    unknown = sorted(set(paper) - {name for _, name, _ in rows})
    if unknown:
        raise ValueError(f"the paper's {', '.join(unknown)} has no row of ours beside it")
    figure = Figure(figsize=(8.6, 0.8 + 0.27 * len(rows)), layout="constrained")
    axes = figure.subplots()
    middle, names = float(np.mean(base)), list(groups)
    axes.axvspan(-noise, noise, color="0.88", lw=0, label="noise")
    for place, (group, name, scores) in enumerate(rows):
        colour = PALETTE[names.index(group) % len(PALETTE)]
        if len(scores):
            axes.barh(place, np.mean(scores) - middle, 0.5, color=colour, alpha=0.4)
            axes.plot(np.asarray(scores) - middle, [place] * len(scores), "o", color=colour, ms=4)
        if name in paper:
            axes.plot(
                paper[name], place, "D", mfc="none", mec="0.1", ms=5, label="the paper" if not _has(axes) else None
            )
    axes.axvline(0, color="0.3", lw=0.8)
    axes.set_yticks(range(len(rows)), [f"{name}  ({group})" for group, name, _ in rows])
    axes.invert_yaxis()
    axes.set(xlabel=xlabel)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _has(axes: Axes) -> bool:
    return "the paper" in axes.get_legend_handles_labels()[1]


def by_data(panels: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]], ylabel: str = "BLEU") -> Figure:
    """Scores over the number of pairs learned from: title to model to pairs to the scores of its seeds."""
    figure = Figure(figsize=(2.2 + 3.8 * len(panels), 3.8), layout="constrained")
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, models) in zip(all_axes, panels.items(), strict=True):
        for number, (name, scores) in enumerate(models.items()):
            pairs, rows = list(scores), [np.asarray(scores[size], dtype=float) for size in scores]
            colour, marker = PALETTE[number], MARKERS[number]
            axes.plot(pairs, [row.mean() for row in rows], marker + "-", color=colour, ms=5, label=name)
            lows, highs = [row.min() for row in rows], [row.max() for row in rows]
            axes.fill_between(pairs, lows, highs, color=colour, alpha=0.2, lw=0)
        ticks = sorted({size for scores in models.values() for size in scores})
        axes.set(xscale="log", title=title, xlabel="pairs learned from")
        axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    all_axes[0].set_ylabel(ylabel)
    all_axes[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
