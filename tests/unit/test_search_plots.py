"""Figures of decoding show what was kept, what ended and which way won."""

from tinytransformer.inspection import search_plots

KEPT = [[("a",), ("the",)], [("the", "dog"), ("a", "dog")]]
ENDED = [[("<end>",)], [("a", "<end>")]]


def test_every_beginning_stands_at_its_step_and_rank():
    (axes,) = search_plots.beam_steps(KEPT, ENDED, ("a", "<end>")).axes
    places = {text.get_text(): (text.get_position()) for text in axes.texts if text.get_text() != "<end>"}
    assert places["a"] == (0, 0)
    assert places["the"] == (0, 1)
    ends = [text.get_position() for text in axes.texts if text.get_text() == "<end>"]
    assert ends == [(0, 2), (1, 2)], "what has ended stands below the two ranks"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "ended"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "rank")
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the first rank stands at the top"


def test_lines_lead_from_a_beginning_to_what_grew_from_it():
    (axes,) = search_plots.beam_steps(KEPT, ENDED, ("a", "<end>")).axes
    lines = {(tuple(line.get_xdata()), tuple(line.get_ydata())): line.get_linewidth() for line in axes.lines[:-1]}
    assert set(lines) == {((0, 1), (1, 0)), ((0, 1), (0, 1)), ((0, 1), (0, 2))}
    assert lines[(0, 1), (0, 2)] > lines[(0, 1), (1, 0)], "the way to the best one is bold"
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == ["a", "<end>"]


def test_rankings_have_the_best_at_the_top_and_coloured():
    figure = search_plots.ranking({"α = 0": {"short": -1.0, "longer": -2.0}, "α = 1": {"longer": -0.5, "short": -0.9}})
    assert [axes.get_title() for axes in figure.axes] == ["α = 0", "α = 1"]
    for axes, best in zip(figure.axes, ("short", "longer"), strict=True):
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names[0] == best
        assert axes.get_ylim()[0] > axes.get_ylim()[1]
        colours = [bar.get_facecolor() for bar in axes.patches]
        assert colours[0] != colours[1]
        first, second = (bar.get_width() for bar in axes.patches)
        assert first > second
