"""The figures of runs show the numbers they are given, each where it belongs."""

import pytest

from tinytransformer.inspection import run_plots

GROUPS = {"A": {"h = 1": [57.0, 59.0], "h = 8": [61.0, 63.0]}, "quoted": {"no residual": []}}


def test_variations_are_differences_to_the_base():
    (axes,) = run_plots.variations([59.0, 61.0], GROUPS, {"h = 1": -0.9}, noise=1.5).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "h = 1  (A)",
        "h = 8  (A)",
        "no residual  (quoted)",
    ]
    bars = [bar.get_width() for bar in axes.patches if hasattr(bar, "get_width") and bar.get_height() == 0.5]
    assert bars == [-2.0, 2.0], "a row without a finished run has no bar"
    points = [line.get_xdata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert points == [[-3.0, -1.0], [1.0, 3.0]]
    (diamond,) = [line for line in axes.lines if line.get_marker() == "D"]
    assert (diamond.get_xdata()[0], diamond.get_ydata()[0]) == (-0.9, 0)
    (band,) = [patch for patch in axes.patches if patch.get_label() == "noise"]
    assert (band.get_x(), band.get_width()) == (-1.5, 3.0)
    assert axes.yaxis_inverted()
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"noise", "the paper"}


def test_a_row_of_the_paper_needs_ours():
    with pytest.raises(ValueError, match="the paper's h = 3 has no row of ours"):
        run_plots.variations([1.0], GROUPS, {"h = 3": 0.1}, noise=1.0)


def test_scores_over_data():
    panels = {
        "equal updates": {"lstm": {1000: [1.0, 3.0], 10_000: [5.0, 7.0]}, "transformer": {1000: [2.0], 10_000: [9.0]}},
        "equal seconds": {"lstm": {1000: [1.0], 10_000: [2.0]}},
    }
    left, right = run_plots.by_data(panels).axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[2.0, 6.0], [2.0, 9.0]]
    assert [line.get_xdata().tolist() for line in right.lines] == [[1000, 10_000]]
    assert [label.get_text() for label in left.get_xticklabels()] == ["1,000", "10,000"]
    assert left.get_title() == "equal updates"
