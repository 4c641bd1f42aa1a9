"""Figures about many heads at once, for lesson 09: all of them small, their scores, and one taken apart by features."""

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns

from tinytransformer.inspection.plots import CELL, PALETTE, PROBABILITY, Figure

SIGNED = "vlag"  # blue below zero, red above; white is zero


def model_view(layers: Sequence, title: str = "") -> Figure:
    """Every head of every layer as a thumbnail: weights (heads, queries, keys) per layer, layers down, heads across."""
    layers = [np.asarray(weights, dtype=float) for weights in layers]
    heads = max(map(len, layers))
    figure = Figure(figsize=(0.6 + 1.6 * heads, 0.7 + 1.6 * len(layers)), layout="constrained")
    grid = figure.subplots(len(layers), heads, squeeze=False)
    for number, (weights, row) in enumerate(zip(layers, grid, strict=True)):
        for head, axes in enumerate(row):
            if head < len(weights):
                axes.imshow(weights[head], cmap=PROBABILITY, vmin=0, vmax=1, aspect="auto")
            axes.set(xticks=[], yticks=[], title=f"head {head}" if number == 0 else "")
        row[0].set_ylabel(f"layer {number}")
    figure.suptitle(title)
    return figure


def head_scores(panels: Mapping[str, Sequence], most: float | None = None) -> Figure:
    """One number for every head, (layers, heads) per title: shares of weight, all panels on one scale from 0."""
    tables = {title: np.asarray(scores, dtype=float) for title, scores in panels.items()}
    top = most if most is not None else max(float(np.nanmax(table)) for table in tables.values())
    widths = [table.shape[1] for table in tables.values()]
    height = 1.1 + 0.5 * max(len(table) for table in tables.values())
    figure = Figure(figsize=(0.6 + 0.62 * sum(widths), height), layout="constrained")
    all_axes = figure.subplots(1, len(tables), squeeze=False, width_ratios=widths)[0]
    for axes, (title, table) in zip(all_axes, tables.items(), strict=True):
        sns.heatmap(table, ax=axes, vmin=0, vmax=top, cmap=PROBABILITY, annot=True, fmt=".2f", cbar=False,
                    linewidths=0.5, annot_kws={"size": 8})  # fmt: skip
        axes.set(title=title, xlabel="head", ylabel="layer" if axes is all_axes[0] else "")
        axes.tick_params(axis="y", rotation=0)
    return figure


def neurons(parts, keys: Sequence[str], title: str = "") -> Figure:
    """What each feature adds to the score of each key: (keys, features), signed, keys down."""
    parts = np.asarray(parts, dtype=float)
    if len(parts) != len(keys):
        raise ValueError(f"there are {len(parts)} rows of parts but {len(keys)} keys: give one row for each key")
    reach = float(np.abs(parts).max())
    figure = Figure(figsize=(2.6 + 0.26 * parts.shape[1], 1.2 + CELL * len(keys)), layout="constrained")
    axes = figure.subplots()
    sns.heatmap(parts, ax=axes, cmap=SIGNED, vmin=-reach, vmax=reach, yticklabels=keys, linewidths=0.3,
                cbar_kws={"label": "part of the score"})  # fmt: skip
    axes.set(title=title, xlabel="feature", ylabel="key")
    axes.tick_params(axis="y", rotation=0)
    return figure


def against(points: Mapping[str, tuple[float, float]], xlabel: str, ylabel: str, named: Sequence[str] = ()) -> Figure:
    """Heads as points, two numbers each; those that are ``named`` get their name and a colour."""
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, (x, y) in points.items():
        chosen = name in named
        axes.plot(x, y, "o", color=PALETTE[3] if chosen else PALETTE[0], ms=8 if chosen else 5, alpha=0.9)
        if chosen:
            axes.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points")
    axes.axhline(0, color="0.5", lw=0.8)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.margins(0.12)
    axes.grid(alpha=0.3)
    return figure
