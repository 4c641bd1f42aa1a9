"""Every static figure of the course, in one palette. Each function returns a Figure and shows nothing by itself.

Heat maps of attention have queries down and keys across. Probabilities use one sequential map fixed at 0 to 1; what a
mask forbids is grey, so that "not allowed" never looks like "allowed and zero". Signed values use a diverging map.
"""

import io
from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as PlainFigure

PALETTE = sns.color_palette("colorblind")
PROBABILITY = "Blues"
SIGNED = "vlag"  # blue below zero, nearly white at zero, red above
FORBIDDEN = "0.85"
CELL = 0.34  # inches a token takes in a heat map


class Figure(PlainFigure):
    """A matplotlib figure that a notebook shows by itself, whatever the plotting backend, and shows once."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def attention_matrix(
    weights, query_tokens: Sequence[str], key_tokens: Sequence[str], mask=None, title: str = ""
) -> Figure:
    """One head's weights (queries, keys) as a heat map; ``mask`` is True where attending is allowed."""
    rows, columns = len(query_tokens), len(key_tokens)
    figure = Figure(figsize=(2.4 + CELL * columns, 1.5 + CELL * rows), layout="compressed")
    axes = figure.subplots()
    _heat_map(axes, weights, query_tokens, key_tokens, mask, bar=True)
    axes.set(title=title, xlabel="key", ylabel="query")
    return figure


def attention_heads(
    weights, query_tokens: Sequence[str], key_tokens: Sequence[str], mask=None, title: str = ""
) -> Figure:
    """All heads of one layer (heads, queries, keys) side by side."""
    weights = np.asarray(weights)
    if weights.ndim != 3:
        raise ValueError(
            f"attention_heads needs (heads, queries, keys), got shape {weights.shape}: choose one sentence"
        )
    rows, columns = len(query_tokens), len(key_tokens)
    size = (1.0 + len(weights) * (0.2 + CELL * columns), 1.5 + CELL * rows)
    figure = Figure(figsize=size, layout="compressed")
    all_axes = figure.subplots(1, len(weights), sharey=True, squeeze=False)[0]
    for head, axes in enumerate(all_axes):
        _heat_map(axes, weights[head], query_tokens, key_tokens, mask, bar=False)
        axes.set(title=f"head {head}", xlabel="key", ylabel="query" if head == 0 else "")
        axes.tick_params(axis="y", left=head == 0)
    if title:
        figure.suptitle(title)
    return figure


def attention_panels(panels: Mapping[str, tuple], rows: str = "query") -> Figure:
    """Several matrices of any shapes side by side: title to (weights, query tokens, key tokens, mask or None).

    ``rows`` says what the rows are where they are not queries, such as the heads of one query.
    """
    widths = [0.8 + CELL * len(keys) for _, _, keys, _ in panels.values()]
    height = 1.5 + CELL * max(len(queries) for _, queries, _, _ in panels.values())
    figure = Figure(figsize=(0.8 + sum(widths), height), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for axes, (title, panel) in zip(all_axes, panels.items(), strict=True):
        _heat_map(axes, *panel, bar=False)
        axes.set(title=title, xlabel="key", ylabel=rows if axes is all_axes[0] else "", anchor="N")
    return figure


def curves(
    x: Sequence[float],
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    xlabel: str,
    xscale: str = "linear",
    yscale: str = "linear",
    markers: bool = True,
) -> Figure:
    """How numbers change over ``x``: one panel per y label, one line per name; markers off where points are many."""
    figure = Figure(figsize=(4.6 * len(panels), 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (ylabel, lines) in zip(all_axes, panels.items(), strict=True):
        for colour, marker, (name, values) in zip(PALETTE, "os^Dv", lines.items(), strict=False):
            axes.plot(x, values, marker=marker if markers else None, color=colour, label=name)
        if xscale == "log":
            axes.set_xscale("log", base=2)
            axes.set_xticks(x, [str(value) for value in x])
        axes.set(xlabel=xlabel, ylabel=ylabel, yscale=yscale)
        axes.grid(alpha=0.3)
    all_axes[0].legend(frameon=False)
    return figure


def growth(
    lengths: Sequence[int], panels: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str = "sequence length n"
) -> Figure:
    """How costs grow: one log-log panel per y label, one line per name, over the same lengths."""
    figure = curves(lengths, panels, xlabel, xscale="log")
    for axes in figure.axes:
        axes.set_yscale("log")
        axes.legend(frameon=False)
    return figure


def position_table(table, title: str = "") -> Figure:
    """A table of position vectors (positions, dimensions), values from -1 to 1: positions down, dimensions across."""
    table = np.asarray(table, dtype=float)
    positions, dimensions = table.shape
    figure = Figure(figsize=(min(9.0, 2.4 + 0.14 * dimensions), min(6.0, 1.4 + 0.08 * positions)), layout="constrained")
    axes = figure.subplots()
    steps = {"xticklabels": max(1, dimensions // 8), "yticklabels": max(1, positions // 6)}
    sns.heatmap(table, ax=axes, cmap=SIGNED, vmin=-1, vmax=1, cbar_kws={"label": "value"}, **steps)
    axes.tick_params(axis="y", rotation=0)
    axes.set(title=title, xlabel="dimension", ylabel="position")
    return figure


def lines(
    x: Sequence[float],
    named: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    border: tuple[float, str] | None = None,
) -> Figure:
    """Smooth curves over ``x`` in one panel; ``border`` is a place on the x axis and what ends there."""
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots()
    styles = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
    for colour, style, (name, values) in zip(PALETTE, styles, named.items(), strict=False):
        axes.plot(x, values, color=colour, linestyle=style, label=name)
    if border is not None:
        axes.axvline(border[0], color="0.5")
        axes.text(border[0], 1.01, border[1], transform=axes.get_xaxis_transform(), horizontalalignment="center")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def tensors(panels: Mapping[str, tuple], limit: float = 3.0) -> Figure:
    """Vectors of tokens below each other: title to (values (tokens, features), tokens), zero white, ±``limit`` full."""
    heights = [CELL * len(tokens) for _, tokens in panels.values()]
    figure = Figure(figsize=(9.0, sum(heights) + 0.75 * len(panels)), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, (values, tokens)) in zip(all_axes, panels.items(), strict=True):
        values = np.asarray(values, dtype=float)
        if values.ndim != 2 or len(values) != len(tokens):
            raise ValueError(
                f"{title}: values have shape {values.shape}, but there are {len(tokens)} tokens: one row each"
            )
        scale = {"vmin": -limit, "vmax": limit, "cmap": SIGNED}
        sns.heatmap(values, ax=axes, cbar=False, xticklabels=False, yticklabels=list(tokens), **scale)
        axes.set(title=title, xlabel=f"{values.shape[1]} features")
        axes.tick_params(axis="y", rotation=0)
    figure.colorbar(all_axes[0].collections[0], ax=list(all_axes), label="value", extend="both", shrink=0.6)
    return figure


def bars(names: Sequence[str], panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Numbers of a few named things: one panel per y label, in it one bar per name and series."""
    figure = Figure(figsize=(max(4.6, 0.9 * len(names)) * len(panels), 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (ylabel, series) in zip(all_axes, panels.items(), strict=True):
        width = 0.8 / len(series)
        for number, (colour, (label, values)) in enumerate(zip(PALETTE, series.items(), strict=False)):
            places = np.arange(len(names)) + (number - (len(series) - 1) / 2) * width
            axes.bar(places, values, width, color=colour, label=label)
        axes.set_xticks(range(len(names)), names)
        axes.set(ylabel=ylabel)
        axes.grid(axis="y", alpha=0.3)
        if max(map(len, names)) > 8:
            for text in axes.get_xticklabels():
                text.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")
        if len(series) > 1:
            axes.legend(frameon=False)
    return figure


def _heat_map(axes: Axes, weights, query_tokens: Sequence[str], key_tokens: Sequence[str], mask, bar: bool) -> None:
    weights = np.asarray(weights, dtype=float)
    expected = (len(query_tokens), len(key_tokens))
    if weights.shape != expected:
        raise ValueError(
            f"weights have shape {weights.shape}, but there are {expected[0]} query tokens and {expected[1]} key "
            "tokens: give one head of one sentence, queries first"
        )
    forbidden = None if mask is None else ~np.broadcast_to(np.asarray(mask, dtype=bool), expected)
    sns.heatmap(
        weights,
        ax=axes,
        mask=forbidden,
        vmin=0,
        vmax=1,
        cmap=PROBABILITY,
        square=True,
        cbar=bar,
        cbar_kws={"label": "weight"} if bar else None,
        linewidths=0.5,
        linecolor="white",
        xticklabels=key_tokens,
        yticklabels=query_tokens,
    )
    axes.set_facecolor(FORBIDDEN)
    axes.tick_params(axis="y", rotation=0)
    if max(map(len, key_tokens)) > 2:
        for label in axes.get_xticklabels():
            label.set(rotation=60, horizontalalignment="right", rotation_mode="anchor")
