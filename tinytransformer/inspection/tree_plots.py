"""Constituency trees, for lesson 11: a gold tree above a predicted one, word over word, with the wrong brackets marked.

A tree is given as plain nested values: a constituent is (label, [children]), a word is (tag, word). Tags are not drawn:
the parser writes none, and no score counts them.
"""

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes

from tinytransformer.inspection.plots import PALETTE, Figure

Nested = tuple[str, "str | list"]
LEVEL, LETTER, NARROWEST = 0.42, 0.095, 0.62  # inches: a level's height, a letter's width, the least width of a word
RIGHT, WRONG = "0.35", PALETTE[3]


def trees(panels: Mapping[str, tuple[Nested, Collection[int]]]) -> Figure:
    """Trees of one sentence below each other: title to (tree, wrong constituents), the latter framed and coloured.

    Constituents are numbered in the order in which they open, from 0, as `mismatches` numbers them.
    """
    sentences = [words_of(tree) for tree, _ in panels.values()]
    if any(words != sentences[0] for words in sentences):
        raise ValueError(f"the trees have different words: {sentences[0]} and {sentences[1]}; draw one sentence")
    ends, columns = 0.0, []
    for word in sentences[0]:
        width = max(NARROWEST, LETTER * len(word) + 0.18)
        columns.append(ends + width / 2)
        ends += width
    heights = [LEVEL * (height_of(tree) + 1) for tree, _ in panels.values()]
    figure = Figure(figsize=(ends + 0.3, sum(heights) + 0.4 * len(panels)), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, height, (title, (tree, wrong)) in zip(all_axes, heights, panels.items(), strict=True):
        _draw(axes, tree, columns, wrong)
        axes.set(title=title, xlim=(0, ends), ylim=(-0.5, height / LEVEL - 0.5))
        axes.axis("off")
    return figure


def words_of(tree: Nested) -> list[str]:
    """The words of a nested tree."""
    _, inside = tree
    return [inside] if isinstance(inside, str) else [word for child in inside for word in words_of(child)]


def height_of(tree: Nested) -> int:
    """How many constituents stand above each other; a word has none."""
    _, inside = tree
    return 0 if isinstance(inside, str) else 1 + max(map(height_of, inside))


def _draw(axes: Axes, tree: Nested, columns: list[float], wrong: Collection[int]) -> None:
    places, numbers = iter(columns), iter(range(10**9))

    def drawn(node: Nested) -> tuple[float, int]:
        """Draw a node and all below it; returns where it stands: words at the bottom, the rest above its children."""
        label, inside = node
        if isinstance(inside, str):
            x = next(places)
            axes.text(x, 0, inside, ha="center", va="center", fontsize=10)
            return x, 0
        is_wrong = next(numbers) in wrong
        below = [drawn(child) for child in inside]
        x, y = (below[0][0] + below[-1][0]) / 2, 1 + max(height for _, height in below)
        colour = WRONG if is_wrong else RIGHT
        for child_x, child_y in below:  # with corners: a slanted line would cross what lies between
            corners = [y - 0.2, y - 0.45, y - 0.45, child_y + 0.25]
            axes.plot([x, x, child_x, child_x], corners, color=colour, lw=1.6 if is_wrong else 0.8, zorder=1)
        frame = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": WRONG if is_wrong else "none"}
        axes.text(x, y, label, ha="center", va="center", fontsize=9, color=colour, bbox=frame, zorder=2,
                  fontweight="bold" if is_wrong else "normal")  # fmt: skip
        return x, y

    drawn(tree)
