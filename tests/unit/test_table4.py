"""Table 4 small: trained and scored in pieces that go on, from Python and the command line; its file is consistent."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tinytransformer.cli import main
from tinytransformer.experiments import table4
from tinytransformer.resources import data_folder
from tinytransformer.text.corpus import microworld_trees
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.text.trees import delinearise, linearise, tree_of
from tinytransformer.training.preparing import training_corpus, validation_corpus
from tinytransformer.training.recipe import Recipe, RecipeError
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.bracketing import mismatches
from tinytransformer.translation.translator import Translator

SIZES = {
    "pairs": 300, "vocab_size": 200, "d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 90,
    "tokens": 400, "steps": 12, "warmup": 3, "save_every": 4, "keep": 2, "validate_every": 12,
}  # fmt: skip
TINY = replace(RECIPES["trees"], **SIZES)
OPTIONS = [part for name, value in SIZES.items() for part in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path, dict]:
    folder = tmp_path_factory.mktemp("table4")
    path = folder / "table4.json"
    return path, folder / "run", table4.run(path, folder / "run", TINY, sentences=3)


def test_every_split_is_scored_with_the_papers_search_and_greedily(made):
    path, _, results = made
    assert json.loads(path.read_text(encoding="utf-8")) == results
    assert results["command"] == "python -m tinytransformer.experiments table4"
    assert {"torch", "sentencepiece"} <= set(results["versions"])
    assert results["training"]["hardware"]
    rows = {(row["split"], row["beam"]): row for row in results["rows"]}
    assert list(rows) == [(split, beam) for split in ("test", "test_novel", "test_long") for beam in (21, 1)]
    for row in rows.values():
        assert (row["sentences"], row["errors"], row["alpha"], row["extra"]) == (3, 0, 0.3, 300)
        assert row["malformed"] <= sum(row["repairs"].values())
        assert row["f1"] == pytest.approx(200 * row["matched"] / (row["gold"] + row["predicted"]), abs=0.01)


def test_the_first_mistakes_are_kept_and_nothing_else(monkeypatch):
    trees = microworld_trees("test", 8, seed=1)
    wrong = {1, 2, 4, 6}
    written = ["" if place in wrong else linearise(tree) for place, tree in enumerate(trees)]
    parses = [delinearise(text, tree.words()) for text, tree in zip(written, trees, strict=True)]
    monkeypatch.setattr(table4, "parse", lambda translator, sentences, decoding: parses)
    row = table4.scored(None, trees, table4.WAYS[0])
    assert [mistake["gold"] for mistake in row["mistakes"]] == [str(trees[place]) for place in (1, 2, 4)]
    for mistake in row["mistakes"]:
        assert any(mismatches(tree_of(mistake["gold"]), tree_of(mistake["predicted"])))
    assert (row["complete"], row["malformed"]) == (4, 4)
    assert row["repairs"]["not one outermost constituent"] == 4


def test_what_is_done_is_not_done_again_and_what_is_missing_is(made, monkeypatch):
    path, run, results = made
    monkeypatch.setattr(table4, "train", None)  # a second training would fail
    cut = {**results, "rows": results["rows"][:4]}
    path.write_text(json.dumps(cut), encoding="utf-8")
    done = []
    scored = table4.scored
    monkeypatch.setattr(table4, "scored", lambda *arguments: done.append(arguments) or scored(*arguments))
    again = table4.run(path, run, TINY, sentences=3)
    assert len(done) == 2
    assert again["rows"][:4] == results["rows"][:4]
    for one, other in zip(again["rows"], results["rows"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    with pytest.raises(RecipeError, match="holds a run with another recipe: seed was 1 and is now 2"):
        table4.run(path, run, replace(TINY, seed=2))
    fewer = table4.run(path, run, TINY, sentences=2)
    assert [row["sentences"] for row in fewer["rows"]] == [2] * 6, "rows of other sentences are not kept"


def test_the_corpora_of_a_parser(tmp_path):
    train, valid = training_corpus(TINY), validation_corpus(TINY, count=40)
    assert set(train.source).isdisjoint(valid.source)
    assert train.target[0] == linearise(microworld_trees("train", 1, TINY.seed)[0])
    (tmp_path / "a.mrg").write_text("( (S (NP-SBJ (NN rain)) (VP (VBZ falls))))\n", encoding="utf-8")
    own = replace(TINY, corpus="treebank", train=str(tmp_path / "a.mrg"), valid=str(tmp_path / "a.mrg"))
    for corpus in (training_corpus(own), validation_corpus(own)):
        assert (corpus.source, corpus.target) == (("rain falls",), ("(S (NP XX )NP (VP XX )VP )S",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "treebank"}, "corpus=treebank needs trees: give train and valid, each a file in Penn format"),
        ({"corpus": "treebank", "train": "a.mrg"}, "corpus=treebank needs trees"),
        ({"both_ways": True}, "both_ways is not for trees: a linearised tree has lost its words"),
    ],
)
def test_recipes_that_make_no_parser(changes, message):
    with pytest.raises(RecipeError, match=message):
        replace(TINY, **changes)


def test_every_symbol_of_a_tree_is_one_piece(made):
    _, run, _ = made
    tokenizer = Tokenizer.load(run)
    corpus = validation_corpus(TINY, count=50)
    for source, target in zip(corpus.source, corpus.target, strict=True):
        assert tokenizer.pieces(tokenizer.encode(target)) == [f"▁{symbol}" for symbol in target.split()]
        assert tokenizer.decode(tokenizer.encode(target)) == target
        assert tokenizer.decode(tokenizer.encode(source)) == source


def test_from_the_command_line(tmp_path, capsys, monkeypatch):
    run = tmp_path / "parser"
    short = ["--max-length", "60"]
    main(["train", "--recipe", "trees", "--folder", str(run), "--device", "cpu", "--json", *OPTIONS, *short])
    assert Recipe.load(run) == replace(TINY, max_length=60)
    assert 400 < json.loads(capsys.readouterr().out)["sentences"] <= 500
    card = (run / "model" / "card.md").read_text(encoding="utf-8")
    assert card.startswith("# trees, sentence–tree\n")
    assert "MIT licence" in card
    model = ["--model", str(run / "model"), "--device", "cpu"]
    main(["evaluate", *model, "--corpus", "trees", "--count", "5", "--beam", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["sentences"], found["errors"]) == ("microworld test trees", 5, 0)
    trees, output = tmp_path / "gold.mrg", tmp_path / "parsed.mrg"
    trees.write_text("".join(f"( {tree})\n" for tree in microworld_trees("test", 5, seed=1)), encoding="utf-8")
    arguments = ["--corpus", "treebank", "--reference", str(trees), "--beam", "2", "--output", str(output)]
    main(["evaluate", *model, *arguments, "--json"])
    same = json.loads(capsys.readouterr().out)
    assert {**same, "text": 0, "seconds": 0} == {**found, "text": 0, "seconds": 0}
    parsed = [tree_of(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [tree.words() for tree in parsed] == [tree.words() for tree in microworld_trees("test", 5, seed=1)]
    seen = []
    monkeypatch.setattr(Translator, "__call__", lambda self, texts, decoding: seen.append(decoding.extra) or [])
    main(["translate", *model, "--extra", "300", "The dog sleeps ."])
    main(["translate", *model, "The dog sleeps ."])
    assert seen == [300, 50]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "treebank"], "--corpus treebank needs --reference, a file in Penn format"),
        (["--corpus", "trees", "--add-to-card"], "--add-to-card is for translations"),
    ],
)
def test_what_cannot_be_evaluated(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", *arguments])
    assert message in capsys.readouterr().err


def test_the_results_file_holds_what_the_recipe_gives():
    results = json.loads((data_folder("results") / "table4.json").read_text(encoding="utf-8"))
    assert Recipe(**results["recipe"]) == RECIPES["trees"], "the recipe has changed: run table4 again"
    rows = {(row["split"], row["beam"]): row for row in results["rows"]}
    assert len(rows) == 6
    for row in rows.values():
        assert row["precision"] == pytest.approx(100 * row["matched"] / row["predicted"], abs=0.01)
        assert row["recall"] == pytest.approx(100 * row["matched"] / row["gold"], abs=0.01)
        assert row["sentences"] == results["sentences"]
    assert rows["test", 21]["f1"] >= 98
