"""What a recipe becomes: sentence pairs, a tokenizer, batches of ids, and the model before its first step."""

from array import array
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from tinytransformer.model.baselines import Model, architecture_of, build_model
from tinytransformer.text.batching import Encoded, ResampledBatches, TokenBatches
from tinytransformer.text.corpus import (
    ParallelCorpus,
    from_files,
    from_table,
    microworld,
    microworld_trees,
    multi30k,
    parsing_pairs,
    penn_trees,
)
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import find_model, load_model
from tinytransformer.training.recipe import TREES, Recipe, RecipeError


def training_corpus(recipe: Recipe, data: str | Path | None = None) -> ParallelCorpus:
    """The sentence pairs to train on, each also the other way round if so asked; ``data`` is Multi30k's folder."""
    corpus = _one_way(recipe, data)
    if not recipe.both_ways:
        return corpus
    source, target = corpus.source + corpus.target, corpus.target + corpus.source
    return replace(corpus, name=f"{corpus.name}, both ways", source=source, target=target)


def _one_way(recipe: Recipe, data: str | Path | None) -> ParallelCorpus:
    if recipe.corpus == "microworld":
        return microworld("train", recipe.pairs, recipe.seed, reverse=recipe.source == "de")
    if recipe.corpus == "multi30k":
        return multi30k("train", recipe.source, recipe.target, data)
    if recipe.corpus == "trees":
        return parsing_pairs(microworld_trees("train", recipe.pairs, recipe.seed), "microworld train trees")
    if recipe.corpus == "treebank":
        return parsing_pairs(penn_trees(recipe.train), recipe.train)
    return own_text(recipe.train)


def validation_corpus(recipe: Recipe, data: str | Path | None = None, count: int = 500) -> ParallelCorpus:
    """The sentence pairs to watch while training; ``count`` of them in the microworld."""
    if recipe.corpus == "microworld":
        return microworld("valid", count, recipe.seed, reverse=recipe.source == "de")
    if recipe.corpus == "multi30k":
        return multi30k("val", recipe.source, recipe.target, data)
    if recipe.corpus == "trees":
        return parsing_pairs(microworld_trees("valid", count, recipe.seed), "microworld valid trees")
    if recipe.corpus == "treebank":
        return parsing_pairs(penn_trees(recipe.valid), recipe.valid)
    return own_text(recipe.valid)


def own_text(names: str) -> ParallelCorpus:
    """A user's text: ``pairs.tsv``, ``pairs.jsonl`` or ``source.txt,target.txt``."""
    parts = [name.strip() for name in names.split(",")]
    if len(parts) > 2:
        raise RecipeError(
            f"{names!r} names {len(parts)} files: give one .tsv or .jsonl file, or two with a comma between"
        )
    return from_table(parts[0]) if len(parts) == 1 else from_files(*parts)


def tokenizer_for(recipe: Recipe, corpus: ParallelCorpus, folder: Path) -> Tokenizer:
    """The run's tokenizer, kept in its folder: learned from the training text, or that of the model it starts from."""
    try:
        return Tokenizer.load(folder)
    except ValueError:
        tokenizer = _learned(recipe)[1] if recipe.start else None
        whole = sorted({symbol for tree in corpus.target for symbol in tree.split()}) if recipe.corpus in TREES else ()
        tokenizer = tokenizer or Tokenizer.train([*corpus.source, *corpus.target], recipe.vocab_size, whole)
        tokenizer.save(folder)
        return tokenizer


def initial_model(recipe: Recipe) -> Model:
    """The model before the first step: random weights, or those of the model that the recipe starts from."""
    torch.manual_seed(recipe.seed)
    model = build_model(recipe.config())
    if recipe.start:
        model.load_state_dict(_learned(recipe)[0].state_dict())
    return model


def _learned(recipe: Recipe) -> tuple[Model, Tokenizer]:
    """The model to start from; its weights must fit. Dropout may differ: it has none."""
    model, tokenizer = load_model(find_model(recipe.start))
    before, now = ({"architecture": architecture_of(c), **asdict(c)} for c in (model.config, recipe.config()))
    # Another architecture has other fields, and is reason enough.
    names = now if now["architecture"] == before["architecture"] else ["architecture"]
    other = [name for name in names if now[name] != before[name] and "dropout" not in name]
    if other:
        what = "; ".join(f"{name} is {before[name]!r} there and {now[name]!r} here" for name in other)
        raise RecipeError(f"start={recipe.start!r} is another model: {what}. Say the same, or start without it")
    return model, tokenizer


def encode(tokenizer: Tokenizer, corpus: ParallelCorpus) -> list[Encoded]:
    """The ids of all pairs, as arrays: an id takes 4 bytes in one, and 36 in a list."""
    sides = ((array("i", tokenizer.encode(text)) for text in side) for side in (corpus.source, corpus.target))
    return list(zip(*sides, strict=True))


def fitting(recipe: Recipe, tokenizer: Tokenizer, corpus: ParallelCorpus) -> ParallelCorpus:
    """The pairs of a corpus that are not longer than the model takes."""
    rows = [row for row, pair in enumerate(encode(tokenizer, corpus)) if _fits(recipe, pair)]
    if not rows:
        raise RecipeError(f"{corpus.name}: every pair is longer than max_length={recipe.max_length} or a batch")
    source, target = ([side[row] for row in rows] for side in (corpus.source, corpus.target))
    return replace(corpus, source=tuple(source), target=tuple(target))


def training_batches(recipe: Recipe, tokenizer: Tokenizer, corpus: ParallelCorpus) -> TokenBatches:
    """The batches of a corpus whose pairs fit. With BPE-dropout they are encoded anew for each epoch."""
    if not recipe.bpe_dropout:
        return TokenBatches(encode(tokenizer, corpus), recipe.tokens)

    def resample(seed: int) -> Sequence[Encoded]:
        sides = (tokenizer.encode_at_random(side, recipe.bpe_dropout, seed) for side in (corpus.source, corpus.target))
        return [pair for pair in zip(*sides, strict=True) if _fits(recipe, pair)]

    return ResampledBatches(resample, recipe.tokens)


def _fits(recipe: Recipe, pair: Encoded) -> bool:
    return max(map(len, pair)) < min(recipe.max_length, recipe.tokens)  # the end token needs a place
