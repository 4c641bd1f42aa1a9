"""The two families measured: baselines, hidden tokens, what is known of the world, and a run that goes on."""

import json
import math
import signal

import pytest
import torch

from tinytransformer.experiments import families
from tinytransformer.inspection import practice_plots
from tinytransformer.resources import data_folder
from tinytransformer.text.microworld import generate
from tinytransformer.text.tokenizer import END, PAD
from tinytransformer.text.trees import tree_of
from tinytransformer.training import loop

TINY = families.Settings(
    sentences=300, unseen=20, known=400, vocab_size=250, d_model=16, num_heads=2, d_ff=16, num_layers=1, tokens=256,
    steps=4, sampled=5, shown=2,
)  # fmt: skip
BLANK = 99


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "families.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def world() -> families.World:
    return families.World.of(400, 1)


# Baselines and questions


def test_a_token_is_as_likely_as_it_was_frequent():
    """Three sevens and one end in the text; five tokens to choose from, each counted once more: 4/9 and 2/9."""
    found = families.unigram_perplexity([[7, 7, 7]], [[7]], vocab_size=5)
    assert found == pytest.approx(math.exp(-(math.log(4 / 9) + math.log(2 / 9)) / 2))


def test_hidden_tokens_are_asked_for_and_nothing_else():
    rows = [[5, 6, 7, 8, 9, 10], [11], [12, 13, 14]]
    shown, asked = families.hidden(rows, BLANK, 0.5, seed=0)
    assert [(row != PAD).sum().item() for row in asked] == [3, 1, 2]
    for row, see, ask in zip(rows, shown.tolist(), asked.tolist(), strict=True):
        whole = [a if s == BLANK else s for s, a in zip(see, ask, strict=True)]
        assert whole[: len(row) + 1] == [*row, END]
        assert all((s == BLANK) == (a != PAD) for s, a in zip(see, ask, strict=True))
    again = families.hidden(rows, BLANK, 0.5, seed=0)
    assert torch.equal(again[0], shown)
    assert not torch.equal(families.hidden(rows, BLANK, 0.5, seed=1)[0], shown)


def test_guesses_count_only_where_something_is_asked():
    asked = torch.tensor([[PAD, 5, 6, PAD]])
    assert families.guessed_percent(torch.tensor([[9, 5, 7, 9]]), asked) == 50


def test_a_thinned_curve_keeps_the_mean_and_the_last_step():
    curve = families.thinned([float(n) for n in range(1, 8)], points=3)
    assert curve == {"steps": [3, 6, 7], "loss": [2.0, 5.0, 7.0]}


# What is known of the world


def test_words_are_those_of_the_trees():
    for example in generate("test", 200, 3):
        leaves = [leaf.word.lower() for leaf in tree_of(example.tree).leaves()]
        assert families.words_of(example.source) == leaves


def test_what_the_world_has_said_is_known_and_what_breaks_it_is_not(world):
    text = next(generate("train", 1, 1)).source
    words = families.words_of(text)
    assert world.shares([text]) == dict.fromkeys(("words", "pairs", "shape", "all"), 100)
    assert world.shares([text.replace(words[1], "gryphon")]) == dict.fromkeys(("words", "pairs", "shape", "all"), 0)
    backwards = world.shares([" ".join(reversed(words))])
    assert backwards == {"words": 100, "pairs": 0, "shape": 0, "all": 0}
    assert world.shares([text, "gryphon"])["all"] == 50


def test_a_shape_tells_singular_from_plural(world):
    """Known words in known pairs; only the whole shows that subject and verb do not agree."""
    singular = next(words for words in map(_words, generate("train", 400, 1)) if world.tags.get(words[2]) == "VBZ")
    plural = [word for word, tag in world.tags.items() if tag == "NNS"]
    broken = [" ".join([singular[0], noun, *singular[2:]]) for noun in plural]
    assert world.shares([" ".join(singular)])["shape"] == 100
    assert world.shares(broken)["words"] == 100
    assert world.shares(broken)["shape"] == 0


def _words(example) -> list[str]:
    return families.words_of(example.source)


def test_shuffling_keeps_the_words():
    text = "The dog sees the cat, and it runs."
    assert sorted(families.words_of(families.shuffled(text))) == sorted(families.words_of(text))
    assert families.shuffled(text) == families.shuffled(text) != text


# The run


def test_a_run_trains_measures_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    path, folder = tmp_path / "families.json", tmp_path / "runs"
    first = families.run(path, folder, TINY)
    assert json.loads(path.read_text(encoding="utf-8")) == first
    assert not folder.exists()
    for name in families.KINDS:
        assert first[name]["curve"]["steps"] == [1, 2, 3, 4]
        assert 1 < first[name]["perplexity"] < 2 * (TINY.vocab_size + 1)
    assert first["writer"]["parameters"] == first["reader"]["parameters"]
    assert len(first["writer"]["samples"]) == len(first["reader"]["fillings"]) == 2
    assert all("…" in filling["shown"] for filling in first["reader"]["fillings"])
    capsys.readouterr()
    path.write_text(json.dumps({key: value for key, value in first.items() if key != "reader"}), encoding="utf-8")
    monkeypatch.setattr(families, "writer_section", lambda *_: pytest.fail("the writer was trained already"))
    again = families.run(path, folder, TINY)
    assert again["reader"]["curve"] == first["reader"]["curve"]
    assert capsys.readouterr().out == "reader: 9 rows\n"


@pytest.mark.usefixtures("with_ctrl_c")
def test_an_interrupted_training_keeps_its_curve(tmp_path, monkeypatch):
    texts = families.Texts(TINY)
    _, whole = families.trained("writer", texts, TINY, tmp_path / "whole")
    steps, real = [], loop.one_step

    def interrupted(*arguments) -> float:
        steps.append(arguments)
        if len(steps) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(loop, "one_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        families.trained("writer", texts, TINY, tmp_path / "cut")
    _, cut = families.trained("writer", texts, TINY, tmp_path / "cut")
    assert len(steps) == TINY.steps
    assert cut["curve"] == whole["curve"]


def test_the_stored_results_are_of_these_settings_and_beat_their_baselines(stored):
    assert stored["settings"] == vars(families.FULL)
    assert (stored["command"], stored["note"]) == (families.COMMAND, families.NOTE)
    writer, reader = stored["writer"], stored["reader"]
    assert writer["perplexity"] < writer["unigram_perplexity"] / 10
    assert reader["guessed_percent"] > writer["guessed_percent"] > 3 * reader["most_frequent_percent"]
    known = writer["known"]
    assert known["shuffled"]["all"] < 1 < known["sampled"]["all"] < known["real"]["all"]


def test_losses_are_drawn(stored):
    (axes,) = practice_plots.family_losses(stored).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [
        stored[name]["curve"]["loss"] for name in ("writer", "reader")
    ]
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == ["writer", "reader"]
