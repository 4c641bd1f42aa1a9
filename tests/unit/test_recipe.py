"""A recipe is the whole run: it builds what it says, is stored with the run, and is not changed on the way."""

import os
import shlex
from dataclasses import asdict, replace

import pytest

from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.training import preparing as module
from tinytransformer.training.checkpoints import Checkpoint
from tinytransformer.training.preparing import (
    encode,
    fitting,
    own_text,
    tokenizer_for,
    training_batches,
    training_corpus,
    validation_corpus,
)
from tinytransformer.training.processes import can_share
from tinytransformer.training.recipe import Recipe, RecipeError
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.card import command_of, model_card, with_score
from tinytransformer.translation.evaluation import score

SMALL = Recipe(
    pairs=400, vocab_size=300, d_model=16, num_heads=2, d_ff=32, num_layers=1, tokens=400, steps=20, warmup=5
)


def test_the_model_and_the_settings_follow_the_recipe():
    config, settings = SMALL.config(), SMALL.settings(minutes=3.0)
    assert (config.vocab_size, config.d_model, config.num_layers, config.norm) == (300, 16, 1, "pre")
    assert (settings.steps, settings.warmup, settings.minutes, settings.falls_to_zero) == (20, 5, 3.0, True)
    assert not replace(SMALL, falls="root").settings().falls_to_zero


def test_a_recipe_comes_back_the_same_and_is_not_changed_on_the_way(tmp_path):
    SMALL.save(tmp_path)
    assert Recipe.load(tmp_path) == SMALL
    SMALL.save(tmp_path)
    replace(SMALL, validate_every=7).save(tmp_path)
    with pytest.raises(RecipeError, match=r"another recipe: dropout was 0\.1 and is now 0\.3\. Go on with the old"):
        replace(SMALL, dropout=0.3).save(tmp_path)
    with pytest.raises(RecipeError, match="steps was 20 and is now 30"):
        replace(SMALL, steps=30).save(tmp_path)


def test_with_the_papers_schedule_a_run_may_become_longer(tmp_path):
    replace(SMALL, falls="root").save(tmp_path)
    replace(SMALL, falls="root", steps=30).save(tmp_path)
    assert Recipe.load(tmp_path).steps == 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "wmt"}, "corpus='wmt' is unknown: choose one of microworld, multi30k, files"),
        ({"falls": "cosine"}, "falls='cosine' is unknown"),
        ({"target": "fr"}, "the microworld has no pair en–fr: choose en–de or de–en"),
        ({"corpus": "files"}, "corpus=files needs texts"),
        ({"bpe_dropout": 1.0}, r"bpe_dropout=1.0 is outside \[0, 1\)"),
        ({"num_heads": 3}, "not divisible by num_heads=3"),
        ({"steps": 0}, "steps=0 must be at least 1"),
    ],
)
def test_bad_recipes(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


def test_folders_without_a_recipe(tmp_path):
    with pytest.raises(RecipeError, match=r"holds no run: there is no recipe\.json"):
        Recipe.load(tmp_path)
    (tmp_path / "recipe.json").write_text('{"heads": 3}')
    with pytest.raises(RecipeError, match="is not a recipe"):
        Recipe.load(tmp_path)


def test_the_microworld_both_ways_and_own_text(tmp_path):
    there, back = training_corpus(SMALL), training_corpus(replace(SMALL, source="de", target="en"))
    assert there.source == back.target
    assert set(validation_corpus(SMALL, count=50).source).isdisjoint(there.source)
    (tmp_path / "pairs.tsv").write_text("a dog\tein Hund\na cat\teine Katze\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("a dog\na cat\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("ein Hund\neine Katze\n", encoding="utf-8")
    table, files = own_text(str(tmp_path / "pairs.tsv")), own_text(f"{tmp_path / 'a.txt'}, {tmp_path / 'b.txt'}")
    assert table.target == files.target == ("ein Hund", "eine Katze")
    with pytest.raises(RecipeError, match="names 3 files"):
        own_text("a,b,c")


def test_both_ways_each_pair_comes_the_other_way_round_too():
    there, both = training_corpus(SMALL), training_corpus(replace(SMALL, both_ways=True))
    assert both.source == there.source + there.target
    assert both.target == there.target + there.source
    assert validation_corpus(replace(SMALL, both_ways=True)).source == validation_corpus(SMALL).source


def test_the_tokenizer_is_learned_once(tmp_path, monkeypatch):
    corpus = training_corpus(SMALL)
    first = tokenizer_for(SMALL, corpus, tmp_path)
    monkeypatch.setattr(module.Tokenizer, "train", None)  # a second training would fail
    assert tokenizer_for(SMALL, corpus, tmp_path).model == first.model


def test_pairs_that_are_too_long_are_left_out(tmp_path):
    corpus = training_corpus(SMALL)
    tokenizer = tokenizer_for(SMALL, corpus, tmp_path)
    lengths = [max(map(len, pair)) for pair in encode(tokenizer, corpus)]
    short = replace(SMALL, max_length=sorted(lengths)[200] + 1)
    kept = fitting(short, tokenizer, corpus)
    assert len(kept) == sum(length < short.max_length for length in lengths)
    assert 200 < len(kept) < 400
    with pytest.raises(RecipeError, match="every pair is longer than max_length=3"):
        fitting(replace(SMALL, max_length=3), tokenizer, corpus)
    resampled = training_batches(replace(short, bpe_dropout=0.3), tokenizer, kept)
    assert int(resampled.lengths.max()) <= short.max_length


def test_bpe_dropout_differs_by_epoch_and_repeats_with_the_seed(tmp_path):
    corpus = training_corpus(SMALL)
    recipe = replace(SMALL, bpe_dropout=0.2)
    tokenizer = tokenizer_for(recipe, corpus, tmp_path)

    def texts(epoch, seed):
        batches = training_batches(recipe, tokenizer, corpus)
        batches.plan(epoch, seed)
        return batches.pairs

    assert texts(0, 1) == texts(0, 1)
    assert texts(0, 1) != texts(1, 1)
    assert texts(0, 1) != texts(0, 2)
    plain = {tokenizer.decode(target) for _, target in encode(tokenizer, corpus)}
    assert {tokenizer.decode(target) for _, target in texts(0, 1)} <= plain


def test_the_card_names_a_command_that_gives_the_recipe_again():
    from tinytransformer.cli import build_parser
    from tinytransformer.commands.train import chosen_recipe

    changed = replace(RECIPES["multi30k"], dropout=0.3, bf16=True, norm="post", seed=4)
    without = replace(RECIPES["multi30k-diverse"], forth="", start="my models/first")
    for recipe in (*RECIPES.values(), changed, without, SMALL):
        words = shlex.split(command_of(recipe))
        options = build_parser("train").parse_args(words[words.index("train") :])
        assert asdict(chosen_recipe(options)) == asdict(recipe)
    assert command_of(RECIPES["multi30k"]) == "python -m tinytransformer train --recipe multi30k --folder runs/multi30k"


def test_the_cards_table_takes_one_row_per_text():
    last = Checkpoint(1234, {}, {}, None, {"seconds": 600.0, "hardware": "an abacus"})
    card = model_card(SMALL, last, 5)
    assert "1,234 steps in 10.0 minutes on an abacus" in card
    assert "MIT licence" in card
    one, other = score(["ein Hund läuft schnell"], ["ein Hund läuft schnell"]), score(["x"], ["y"])
    card = with_score(with_score(card, "test", other), "valid", one)
    assert card.count("| test |") == card.count("| valid | 1 | 100.00 |") == 1
    again = with_score(card, "test", one)
    assert again.count("| test |") == again.count("| test | 1 | 100.00 |") == 1
    assert again.endswith(card[card.index("## Terms") :])
    with pytest.raises(ValueError, match="no table of scores"):
        with_score("# by hand", "test", one)


def test_unequal_sides_cannot_be_a_corpus():
    with pytest.raises(ValueError, match="1 source lines but 2 target lines"):
        ParallelCorpus(("a",), ("b", "c"), "mine")


def test_processes_share_batches_evenly():
    assert replace(SMALL, accumulate=6, processes=3).settings().accumulate == 6
    with pytest.raises(RecipeError, match="processes=2 cannot share accumulate=3 batches of a step evenly: choose 1"):
        replace(SMALL, accumulate=3, processes=2)


def test_processes_are_started_only_where_they_help(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert can_share(2, "cpu")
    assert not can_share(1, "cpu")
    assert not can_share(3, "cpu")
    assert not can_share(2, "meta")
    monkeypatch.setenv("RANK", "0")
    assert not can_share(2, "cpu")


def test_encoded_pairs_are_the_tokenizers_ids_at_four_bytes_each(tmp_path):
    corpus = training_corpus(SMALL)
    tokenizer = tokenizer_for(SMALL, corpus, tmp_path)
    pairs = encode(tokenizer, corpus)
    assert [list(source) for source, _ in pairs] == [tokenizer.encode(text) for text in corpus.source]
    assert [list(target) for _, target in pairs] == [tokenizer.encode(text) for text in corpus.target]
    assert {side.itemsize for pair in pairs for side in pair} == {4}
