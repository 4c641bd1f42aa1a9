"""Drawn trees have words in their order, labels above their words, and wrong brackets marked."""

import pytest

from tinytransformer.inspection import tree_plots
from tinytransformer.text.trees import tree_of

GOLD = tree_of("(S (NP (DT the) (NN dog)) (VP (VBZ runs)))").nested()
OTHER = tree_of("(S (DT the) (NP (NN dog)) (VP (VBZ runs)))").nested()


def labels(axes) -> dict[str, tuple[float, float]]:
    return {text.get_text(): text.get_position() for text in axes.texts}


def test_words_stand_on_one_line_and_constituents_above_their_children():
    (axes,) = tree_plots.trees({"gold": (GOLD, ())}).axes
    places = labels(axes)
    assert axes.get_title() == "gold"
    assert [places[word][1] for word in ("the", "dog", "runs")] == [0, 0, 0]
    assert places["the"][0] < places["dog"][0] < places["runs"][0]
    assert places["NP"] == ((places["the"][0] + places["dog"][0]) / 2, 1)
    assert places["VP"] == (places["runs"][0], 1)
    assert places["S"][1] == 2
    assert "DT" not in places, "tags are not drawn"
    assert len(axes.lines) == 5, "one line from each constituent to each of its children"


def test_both_trees_have_their_words_in_the_same_columns_and_the_wrong_ones_are_marked():
    figure = tree_plots.trees({"gold": (GOLD, {1}), "predicted": (OTHER, {1})})
    first, second = map(labels, (axes for axes in figure.axes))
    assert all(first[word] == second[word] for word in ("the", "dog", "runs"))
    for axes in figure.axes:
        bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        assert bold == ["NP"]
        colours = {text.get_text(): text.get_color() for text in axes.texts}
        assert colours["NP"] == tree_plots.WRONG != colours["VP"]


def test_trees_of_different_sentences_are_refused():
    with pytest.raises(ValueError, match=r"the trees have different words: .* draw one sentence"):
        tree_plots.trees({"gold": (GOLD, ()), "other": (tree_of("(S (NN cat))").nested(), ())})
