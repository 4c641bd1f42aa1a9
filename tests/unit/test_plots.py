"""Figures show the right numbers at the right tokens, the right way round."""

import numpy as np
import pytest
import torch

from tinytransformer.inspection import plots

WEIGHTS = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])  # two queries, three keys


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def cells(axes, shape):
    return np.asarray(axes.collections[0].get_array()).reshape(shape)


def test_queries_down_keys_across():
    figure = plots.attention_matrix(WEIGHTS, ["Hund", "läuft"], ["A", "dog", "runs"], title="cross")
    axes, bar = figure.axes
    assert labels(axes.yaxis) == ["Hund", "läuft"]
    assert labels(axes.xaxis) == ["A", "dog", "runs"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("key", "query", "cross")
    np.testing.assert_allclose(cells(axes, (2, 3)), WEIGHTS)
    top, bottom = axes.get_ylim()[1], axes.get_ylim()[0]
    assert top < bottom, "the first query stands at the top"
    assert axes.collections[0].get_clim() == (0, 1)
    assert bar.get_ylabel() == "weight"


def test_what_is_masked_is_not_drawn_as_a_weight():
    mask = np.array([[True, False, True], [True, True, True]])
    axes = plots.attention_matrix(WEIGHTS, "ab", "xyz", mask=mask).axes[0]
    drawn = axes.collections[0].get_array()
    assert np.ma.getmaskarray(drawn).reshape(2, 3).tolist() == (~mask).tolist()


def test_every_head_gets_its_panel():
    weights = torch.stack([WEIGHTS, WEIGHTS.flip(1), WEIGHTS.flip(0)])
    figure = plots.attention_heads(weights, ["a", "b"], ["x", "y", "z"], title="layer 0")
    assert [axes.get_title() for axes in figure.axes] == ["head 0", "head 1", "head 2"]
    for axes, expected in zip(figure.axes, weights, strict=True):
        np.testing.assert_allclose(cells(axes, (2, 3)), expected)
    assert labels(figure.axes[0].yaxis) == ["a", "b"]


def test_panels_of_different_shapes_stand_side_by_side():
    mask = np.array([[True, False], [True, True]])
    figure = plots.attention_panels(
        {"self": (np.eye(2), "ab", "ab", mask), "cross": (WEIGHTS, ["Hund", "läuft"], ["A", "dog", "runs"], None)}
    )
    first, second = figure.axes
    assert (first.get_title(), second.get_title()) == ("self", "cross")
    assert (first.get_ylabel(), second.get_ylabel(), second.get_xlabel()) == ("query", "", "key")
    assert np.ma.getmaskarray(first.collections[0].get_array()).reshape(2, 2).tolist() == (~mask).tolist()
    np.testing.assert_allclose(cells(second, (2, 3)), WEIGHTS)
    assert labels(second.yaxis) == ["Hund", "läuft"]
    assert labels(second.xaxis) == ["A", "dog", "runs"]
    assert second.collections[0].get_clim() == (0, 1)


@pytest.mark.parametrize(("xscale", "ticks"), [("log", ["1", "4", "16"]), ("linear", None)])
def test_curves_draw_a_line_per_name_in_each_panel(xscale, ticks):
    panels = {"entropy": {"scaled": [2.0, 2.0, 2.0], "raw": [2.0, 1.0, 0.0]}, "slope": {"scaled": [1, 1, 1]}}
    first, second = plots.curves([1, 4, 16], panels, "d_k", xscale).axes
    assert [line.get_label() for line in first.lines] == ["scaled", "raw"]
    assert first.lines[1].get_ydata().tolist() == [2.0, 1.0, 0.0]
    assert (first.get_xlabel(), first.get_ylabel(), second.get_ylabel()) == ("d_k", "entropy", "slope")
    assert first.get_xscale() == xscale
    assert ticks is None or labels(first.xaxis) == ticks
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["scaled", "raw"]


def test_growth_draws_a_line_per_name():
    figure = plots.growth(
        [128, 256], {"seconds": {"fused": [1.0, 2.0], "explicit": [1.0, 4.0]}, "MB": {"fused": [1, 2]}}
    )
    first, second = figure.axes
    assert [line.get_label() for line in first.lines] == ["fused", "explicit"]
    assert first.lines[1].get_ydata().tolist() == [1.0, 4.0]
    assert (second.get_ylabel(), second.get_xscale(), second.get_yscale()) == ("MB", "log", "log")


def test_a_notebook_shows_a_figure_by_itself_and_the_same_one_each_time():
    def png():
        return plots.attention_matrix(WEIGHTS, "ab", "xyz")._repr_png_()

    assert png().startswith(b"\x89PNG")
    assert png() == png()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.attention_matrix(WEIGHTS.T, "ab", "xyz"), r"shape \(3, 2\), but there are 2 query tokens and 3"),
        (
            lambda: plots.attention_matrix(WEIGHTS[None], "ab", "xyz"),
            r"shape \(1, 2, 3\).*give one head of one sentence",
        ),
        (lambda: plots.attention_heads(WEIGHTS, "ab", "xyz"), r"needs \(heads, queries, keys\), got shape \(2, 3\)"),
    ],
)
def test_weights_that_do_not_fit_their_tokens(call, message):
    with pytest.raises(ValueError, match=message):
        call()
