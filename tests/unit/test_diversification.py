"""Versions of the training text by models: what is made, what it is made from, and that it is made once."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tinytransformer.cli import main
from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.training.checkpoints import Checkpoint
from tinytransformer.training.recipe import Recipe, RecipeError
from tinytransformer.translation.card import model_card
from tinytransformer.translation.diversification import (
    TEMPERATURE,
    DiversificationError,
    diversified,
    make,
    seconds_of,
    versions,
)
from tinytransformer.translation.translator import Decoding, Translator

CORPUS = ParallelCorpus(("a dog", "a cat"), ("ein Hund", "eine Katze"), "pets", {"spaces": 3})


class Parrot:
    """A translator that says what it was asked, and how."""

    device = torch.device("cpu")

    def __init__(self, name, heard):
        self.name, self.heard = name, heard

    def takes(self, text):
        return text != "too long"

    def __call__(self, texts, split, decoding):
        self.heard.append((self.name, tuple(texts), split, decoding))
        return [SimpleNamespace(text=text and f"{self.name} of {text}") for text in texts]


def test_each_version_is_made_from_its_side_and_in_its_way(tmp_path):
    heard = []
    made = versions("home", "away", 3, seed=7)
    for version in made:
        make(version, CORPUS, tmp_path, lambda name: Parrot(name, heard))
    assert [(name, texts) for name, texts, _, _ in heard] == [("home", CORPUS.target)] * 3 + [("away", CORPUS.source)]
    ways = [decoding for *_, decoding in heard]
    assert ways[0] == ways[3] == Decoding()
    assert [way.temperature for way in ways[1:3]] == [TEMPERATURE] * 2
    assert ways[1].generator.initial_seed() != ways[2].generator.initial_seed()
    assert not any(split for _, _, split, _ in heard)
    for version in made:  # they are there: nobody is asked again
        make(version, CORPUS, tmp_path, None)
    assert not list(tmp_path.glob("*.part"))


def test_sources_are_made_for_human_targets_and_targets_for_human_sources(tmp_path):
    made = versions("home", "away", 2, seed=1)
    for version in made:
        make(version, CORPUS, tmp_path, lambda name: Parrot(name, []))
    corpus = diversified(CORPUS, made, tmp_path)
    assert list(zip(corpus.source, corpus.target, strict=True)) == [
        ("a dog", "ein Hund"),
        ("a cat", "eine Katze"),
        ("home of ein Hund", "ein Hund"),  # twice the same, so once
        ("home of eine Katze", "eine Katze"),
        ("a dog", "away of a dog"),
        ("a cat", "away of a cat"),
    ]
    assert seconds_of(made, tmp_path) > 0


def test_what_is_too_long_and_what_is_there_already_is_left_out(tmp_path):
    (version,) = versions("", "home", 1, seed=1)
    corpus = replace(CORPUS, source=("too long", "a cat"), target=("ein Hund", "home of a cat"))
    make(version, corpus, tmp_path, lambda name: Parrot(name, []))
    found = diversified(corpus, [version], tmp_path)
    assert (found.source, found.target) == (corpus.source, corpus.target)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text[:-10],
            r"made-forth\.json is not readable .*: delete it, if it is there, and run the training",
        ),
        (lambda text: "[]", "is not readable"),
        (lambda text: text.replace("seconds", "minutes"), "is not readable .'seconds'"),
        (lambda text: json.dumps({**json.loads(text), "texts": ["a"]}), "was made from another text: delete it"),
    ],
)
def test_damaged_versions_are_refused(tmp_path, change, message):
    (version,) = versions("", "away", 3, seed=1)
    with pytest.raises(DiversificationError, match="is not readable"):
        seconds_of([version], tmp_path)
    make(version, CORPUS, tmp_path, lambda name: Parrot(name, []))
    path = version.path(tmp_path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DiversificationError, match=message):
        diversified(CORPUS, [version], tmp_path)


def test_a_version_of_another_text_with_as_many_lines_is_refused(tmp_path):
    (version,) = versions("", "away", 3, seed=1)
    make(version, CORPUS, tmp_path, lambda name: Parrot(name, []))
    diversified(replace(CORPUS, target=("x", "y")), [version], tmp_path)  # it was not made from the targets
    with pytest.raises(DiversificationError, match="was made from another text"):
        diversified(replace(CORPUS, source=("a dog", "a horse")), [version], tmp_path)


def test_recipes_that_cannot_be_diversified():
    with pytest.raises(RecipeError, match="back and forth go with one way between two languages"):
        Recipe(corpus="trees", back="home")
    with pytest.raises(RecipeError, match="back and forth go with one way between two languages"):
        Recipe(both_ways=True, forth="away")
    with pytest.raises(RecipeError, match="copies=0 must be at least 1"):
        Recipe(copies=0)


def test_drawn_sentences_are_the_models_own_and_repeat_with_the_seed(tmp_path):
    texts = ParallelCorpus(("The dog sleeps.",) * 5, ("Der Hund schläft.",) * 5, "five dogs")
    drawn = versions("microworld-en-de", "", 3, seed=1)[1:]
    found = {}
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        for version in drawn:
            make(version, texts, folder, lambda name: Translator.load(name, "cpu"))
            found[folder.name, version.name] = json.loads(version.path(folder).read_text(encoding="utf-8"))["texts"]
    assert found["one", "back-1"] == found["other", "back-1"]
    assert found["one", "back-2"] == found["other", "back-2"]
    assert found["one", "back-1"] != found["one", "back-2"]


def test_the_command_trains_on_what_models_made_of_its_text(tmp_path, capsys):
    tiny = (
        "--corpus files --vocab-size 60 --d-model 16 --num-heads 2 --d-ff 32 --num-layers 1 --tokens 500 --warmup 2 "
        "--steps 4 --keep 2 --save-every 2 --validate-every 4 --max-length 60 --device cpu"
    ).split()
    pairs = [("the dog runs fast .", "der Hund rennt schnell ."), ("the cat sleeps .", "die Katze schläft .")] * 30
    text = tmp_path / "text.tsv"
    text.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    run, command = tmp_path / "run", ["train", *tiny, "--train", str(text), "--valid", str(text)]
    command += ["--folder", str(run), "--forth", "microworld-en-de", "--back", "microworld-en-de", "--copies", "2"]
    assert main(command) == 0
    assert sorted(path.name for path in run.glob("made-*")) == [
        "made-back-0.json",
        "made-back-1.json",
        "made-forth.json",
    ]
    assert "3 versions" in capsys.readouterr().err
    card = (run / "model" / "card.md").read_text(encoding="utf-8")
    assert "models made 3 versions of the training text in" in card
    assert card.count("### Before that, `microworld-en-de` was made by") == 1
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*command[:-6], "--folder", str(tmp_path / "none"), "--back", "microworld-en-de", "--forth", "nowhere"])
    assert "there is no model 'nowhere'" in capsys.readouterr().err
    assert not list((tmp_path / "none").glob("made-*"))
    before = {path.name: path.read_bytes() for path in run.glob("made-*")}
    assert main(command) == 0
    assert before == {path.name: path.read_bytes() for path in run.glob("made-*")}


def test_a_card_without_versions_does_not_speak_of_them():
    last = Checkpoint(1, {}, {}, None, {"seconds": 60.0})
    assert "versions" not in model_card(Recipe(), last, 1)
