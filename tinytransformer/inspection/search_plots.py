"""Figures of decoding, for lesson 08: the beginnings that a beam keeps, and how translations that ended are ranked."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from tinytransformer.inspection.plots import PALETTE, Figure

Tokens = tuple[str, ...]
COLUMN, ROW = 1.0, 0.46  # inches a step and a rank take
GONE, KEPT, ENDED = "0.6", PALETTE[0], PALETTE[2]


def beam_steps(kept: Sequence[Sequence[Tokens]], ended: Sequence[Sequence[Tokens]], best: Tokens) -> Figure:
    """The beam step by step: at each step the beginnings that go on, best first, and below them those that ended.

    A line joins each to the beginning that it grew from. The way to ``best``, an ended one, is drawn bold.
    """
    ranks = max(map(len, kept))
    lanes = max(1, *map(len, ended))
    figure = Figure(figsize=(1.2 + COLUMN * len(kept), 0.9 + ROW * (ranks + lanes)), layout="constrained")
    axes = figure.subplots()
    for step, (going_on, stopped) in enumerate(zip(kept, ended, strict=True)):
        before = list(kept[step - 1]) if step else []
        for place, tokens in [*enumerate(going_on), *enumerate(stopped, start=ranks)]:
            chosen = best[: len(tokens)] == tokens and (place < ranks or tokens == best)
            colour = ENDED if place >= ranks else (KEPT if chosen else GONE)
            if tokens[:-1] in before:
                origin = before.index(tokens[:-1])
                axes.plot([step - 1, step], [origin, place], color=colour, lw=2.5 if chosen else 0.8, zorder=1)
            _token(axes, step, place, tokens[-1], colour, bold=chosen)
    axes.axhline(ranks - 0.5, color="0.3", lw=0.8, ls=":")
    axes.set(xlim=(-0.6, len(kept) - 0.4), ylim=(ranks + lanes - 0.5, -0.6), xlabel="step", ylabel="rank")
    axes.set_xticks(range(len(kept)), [str(step + 1) for step in range(len(kept))])
    axes.set_yticks(range(ranks + 1), [*(str(rank + 1) for rank in range(ranks)), "ended"])
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _token(axes: Axes, step: int, place: int, token: str, colour, bold: bool) -> None:
    axes.text(
        step, place, token, ha="center", va="center", fontsize=9, fontweight="bold" if bold else "normal",
        bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 2 if bold else 0.8},
    )  # fmt: skip


def ranking(panels: Mapping[str, Mapping[str, float]]) -> Figure:
    """Translations and the scores they are ranked by, one panel per title; the best of each panel is coloured."""
    rows = max(map(len, panels.values()))
    figure = Figure(figsize=(8.2, 0.5 + len(panels) * (0.55 + 0.27 * rows)), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, scores) in zip(all_axes, panels.items(), strict=True):
        best = max(scores, key=scores.__getitem__)
        axes.barh(list(scores), list(scores.values()), color=[ENDED if text == best else GONE for text in scores])
        axes.invert_yaxis()
        axes.set(title=title, xlabel="score" if axes is all_axes[-1] else "")
        axes.grid(axis="x", alpha=0.3)
    return figure
