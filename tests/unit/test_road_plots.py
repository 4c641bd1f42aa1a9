"""Figures of the road to attention show every step, every distance and every seed."""

from collections import Counter

import numpy as np
import pytest

from tinytransformer.inspection import road_plots


def test_a_net_is_drawn_step_by_step():
    figure = road_plots.unrolled({"to one": [(True, False), (True, False), (True, True)], "from one": [(True, True)]})
    assert [axes.get_title() for axes in figure.axes] == ["to one", "from one"]
    kinds = [Counter(patch.get_gid() for patch in axes.patches) for axes in figure.axes]
    assert kinds == [{"input": 3, "state": 3, "output": 1}, {"input": 1, "state": 1, "output": 1}]
    arrows = [len(axes.texts) for axes in figure.axes]
    assert arrows == [3 + 2 + 1, 1 + 0 + 1], "one for each input, each step to the next, each output"
    output = next(patch for patch in figure.axes[0].patches if patch.get_gid() == "output")
    assert output.get_x() == pytest.approx(2 - 0.2), "the output belongs to the last step"
    rows = {text.get_text(): text.get_position()[1] for text in figure.axes[0].get_yticklabels()}
    assert rows["input"] < rows["state"] < rows["output"]


def test_slopes_begin_at_distance_one_and_end_on_the_floor():
    figure = road_plots.fading({"plain": {"0.5": [0.5, 1e-20], "2": [2.0, 4.0]}, "gates": {"lstm": [0.2]}}, "slope")
    first, second = figure.axes
    drawn = {line.get_label(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in first.lines[:2]}
    assert drawn == {"0.5": ([1, 2], [0.5, 1e-8]), "2": ([1, 2], [2.0, 4.0])}
    assert (first.get_yscale(), first.get_ylabel(), second.get_title()) == ("log", "slope", "gates")
    assert first.get_ylim() == second.get_ylim(), "panels can be compared"
    assert [text.get_text() for text in second.get_legend().get_texts()] == ["lstm"]


def test_scores_are_shown_with_every_seed():
    rows = [[90.0, 50.0], [80.0, 40.0], [70.0, 30.0]]
    (axes,) = road_plots.by_length(["1–9", "10+"], {"lstm": rows, "additive": np.add(rows, 5)}).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1–9", "10+"]
    mean, *seeds = [line.get_ydata().tolist() for line in axes.lines[:4]]
    assert mean == [80.0, 40.0]
    assert seeds == rows
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (30, 90), "the band reaches from the worst seed to the best"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["lstm", "additive"]
    with pytest.raises(ValueError, match="lstm: scores have shape \\(3, 2\\), but there are 1 lengths: one row a seed"):
        road_plots.by_length(["1–9"], {"lstm": rows})
