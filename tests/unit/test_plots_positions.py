"""Figures of position vectors: the right numbers, the right way round."""

import numpy as np

from tinytransformer.inspection import plots


def test_positions_go_down_and_dimensions_across():
    table = np.linspace(-1, 1, 12).reshape(3, 4)
    axes, bar = plots.position_table(table, title="waves").axes
    np.testing.assert_allclose(np.asarray(axes.collections[0].get_array()).reshape(3, 4), table)
    assert axes.collections[0].get_clim() == (-1, 1)
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("waves", "dimension", "position")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0", "1", "2"]
    assert axes.get_ylim()[1] < axes.get_ylim()[0], "position 0 stands at the top"
    assert bar.get_ylabel() == "value"


def test_lines_have_a_name_each_and_a_border_where_it_was_asked_for():
    axes = plots.lines(
        [0, 1, 2], {"a": [1, 2, 3], "b": [3, 2, 1]}, "position", "share", (1, "trained up to here")
    ).axes[0]
    first, second, border = axes.lines
    assert (first.get_label(), second.get_label()) == ("a", "b")
    assert second.get_ydata().tolist() == [3, 2, 1]
    assert list(border.get_xdata()) == [1, 1]
    assert axes.texts[0].get_text() == "trained up to here"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("position", "share")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert len(plots.lines([0, 1], {"a": [1, 2]}, "x", "y").axes[0].lines) == 1
