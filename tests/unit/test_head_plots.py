"""Figures about many heads show every head in its place."""

import numpy as np
import pytest

from tinytransformer.inspection import head_plots


def test_every_head_has_its_thumbnail():
    layers = [np.full((2, 3, 4), 0.1), np.full((2, 3, 4), 0.9)]
    figure = head_plots.model_view(layers, "encoder")
    assert [axes.get_title() for axes in figure.axes] == ["head 0", "head 1", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["layer 0", "", "layer 1", ""]
    assert [float(axes.images[0].get_array().max()) for axes in figure.axes] == [0.1, 0.1, 0.9, 0.9]
    assert all(axes.images[0].get_clim() == (0, 1) for axes in figure.axes)


def test_scores_stand_at_their_layer_and_head_on_one_scale():
    figure = head_plots.head_scores({"a": [[0.1, 0.2], [0.3, 0.4]], "b": [[0.8, 0.0], [0.0, 0.0]]})
    first, second = figure.axes
    assert [text.get_text() for text in first.texts] == ["0.10", "0.20", "0.30", "0.40"]
    assert first.collections[0].get_clim() == second.collections[0].get_clim() == (0, 0.8)
    assert (first.get_xlabel(), first.get_ylabel(), second.get_ylabel()) == ("head", "layer", "")


def test_parts_of_scores_are_signed_and_named():
    figure = head_plots.neurons([[0.5, -2.0], [1.0, 0.0]], ["dog", "it"])
    axes = figure.axes[0]
    assert axes.collections[0].get_clim() == (-2, 2)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["dog", "it"]
    with pytest.raises(ValueError, match="2 rows of parts but 1 keys"):
        head_plots.neurons([[0.5, -2.0], [1.0, 0.0]], ["dog"])


def test_points_are_where_they_belong_and_the_named_are_named():
    figure = head_plots.against({"0.1": (0.5, -1.0), "0.2": (0.1, 0.0)}, "looks", "matters", named=["0.1"])
    (axes,) = figure.axes
    places = [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in axes.lines[:2]]
    assert places == [(0.5, -1.0), (0.1, 0.0)]
    assert [text.get_text() for text in axes.texts] == ["0.1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("looks", "matters")
