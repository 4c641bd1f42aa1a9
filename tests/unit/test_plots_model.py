"""Figures of layers and training: vectors of tokens, bars, curves without markers."""

import numpy as np
import pytest
import torch

from tinytransformer.inspection import plots

VECTORS = torch.tensor([[0.5, -1.0, 2.0, 0.0], [-3.0, 0.1, 0.2, 0.3]])  # two tokens, four features


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_tensors_stand_below_each_other_with_their_tokens():
    first, second, bar = plots.tensors({"in": (VECTORS, ["A", "dog"]), "out": (VECTORS[:1], ["A"])}).axes
    assert labels(first.yaxis) == ["A", "dog"]
    assert (first.get_title(), second.get_title(), bar.get_ylabel()) == ("in", "out", "value")
    np.testing.assert_allclose(np.asarray(first.collections[0].get_array()).reshape(2, 4), VECTORS)
    assert first.get_ylim()[1] < first.get_ylim()[0], "the first token stands at the top"
    assert first.get_xlabel() == "4 features"


def test_zero_is_white_and_the_limits_are_the_same_in_every_panel():
    figure = plots.tensors({"in": (VECTORS, "ab"), "out": (10 * VECTORS, "ab")}, limit=2.0)
    meshes = [axes.collections[0] for axes in figure.axes[:2]]
    assert [mesh.get_clim() for mesh in meshes] == [(-2.0, 2.0)] * 2
    red, green, blue, _ = meshes[0].cmap(0.5)
    assert min(red, green, blue) > 0.95
    low, high = meshes[0].cmap(0.0), meshes[0].cmap(1.0)
    assert low[2] > low[0], "negative is blue"
    assert high[0] > high[2], "positive is red"


@pytest.mark.parametrize("values", [VECTORS, VECTORS[None]])
def test_tensors_that_do_not_fit_their_tokens(values):
    with pytest.raises(ValueError, match=r"in: values have shape .* but there are 3 tokens"):
        plots.tensors({"in": (values, "abc")})


def test_bars_have_names_heights_and_a_legend_where_it_is_needed():
    figure = plots.bars(["x", "y"], {"loss": {"one": [1.0, 2.0], "two": [3.0, 4.0]}, "share": {"one": [0.5, 0.25]}})
    first, second = figure.axes
    assert labels(first.xaxis) == ["x", "y"]
    assert [bar.get_height() for bar in first.patches] == [1.0, 2.0, 3.0, 4.0]
    assert first.patches[0].get_x() < first.patches[2].get_x() < first.patches[1].get_x()
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["one", "two"]
    assert second.get_legend() is None
    assert (first.get_ylabel(), second.get_ylabel()) == ("loss", "share")


def test_long_names_are_turned():
    turned = plots.bars(["encoder attention", "norms"], {"n": {"base": [1, 2]}}).axes[0].get_xticklabels()
    assert {text.get_rotation() for text in turned} == {30.0}


def test_curves_with_a_logarithmic_axis_and_without_markers():
    axes = plots.curves(range(3), {"rate": {"a": [1, 10, 100]}}, "step", yscale="log", markers=False).axes[0]
    assert (axes.get_yscale(), axes.get_xscale(), axes.lines[0].get_marker()) == ("log", "linear", "None")
    assert plots.curves(range(3), {"rate": {"a": [1, 2, 3]}}, "step").axes[0].lines[0].get_marker() == "o"
