"""Every static figure of the course, in one palette. Each function returns a Figure and shows nothing by itself.

Heat maps have queries down and keys across. Probabilities use one sequential map fixed at 0 to 1; what a mask forbids
is grey, so that "not allowed" never looks like "allowed and zero".
"""

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PALETTE = sns.color_palette("colorblind")
PROBABILITY = "Blues"
FORBIDDEN = "0.85"


def attention_matrix(
    weights, query_tokens: Sequence[str], key_tokens: Sequence[str], mask=None, title: str = ""
) -> Figure:
    """One head's weights (queries, keys) as a heat map; ``mask`` is True where attending is allowed."""
    rows, columns = len(query_tokens), len(key_tokens)
    figure = Figure(figsize=(2.2 + 0.5 * columns, 1.4 + 0.42 * rows), layout="constrained")
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
    size = (0.8 + len(weights) * (0.5 + 0.34 * columns), 1.3 + 0.34 * rows)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(1, len(weights), sharey=True, squeeze=False)[0]
    for head, axes in enumerate(all_axes):
        _heat_map(axes, weights[head], query_tokens, key_tokens, mask, bar=False)
        axes.set(title=f"head {head}", xlabel="key", ylabel="query" if head == 0 else "")
    figure.suptitle(title)
    return figure


def growth(
    lengths: Sequence[int], panels: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str = "sequence length n"
) -> Figure:
    """How costs grow: one log-log panel per y label, one line per name, over the same lengths."""
    figure = Figure(figsize=(4.6 * len(panels), 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (ylabel, lines) in zip(all_axes, panels.items(), strict=True):
        for colour, marker, (name, values) in zip(PALETTE, "os^Dv", lines.items(), strict=False):
            axes.plot(lengths, values, marker=marker, color=colour, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.grid(alpha=0.3)
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
        cbar_kws={"label": "attention weight"} if bar else None,
        linewidths=0.5,
        linecolor="white",
        xticklabels=key_tokens,
        yticklabels=query_tokens,
    )
    axes.set_facecolor(FORBIDDEN)
    axes.tick_params(axis="x", rotation=60 if max(map(len, key_tokens)) > 2 else 0)
    axes.tick_params(axis="y", rotation=0)
