"""Recipes: everything that a training run depends on, as one value that is stored with the run.

A recipe names the corpus, the tokenizer, the model and the settings of the loop; from it and the seed the whole run
follows. `RECIPES` holds those that made the shipped models. The command line offers every field as an option.
"""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType

import torch

from tinytransformer.model.baselines import ARCHITECTURES, Config, Model, architecture_of, build_model, config_class
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
from tinytransformer.training.loop import Settings

FILE_NAME = "recipe.json"
FREE = (
    "processes",
    "save_every",
    "keep",
    "validate_every",
)  # may change in the middle of a run: they do not change its weights
CORPORA = ("microworld", "multi30k", "files", "trees", "treebank")
TREES = ("trees", "treebank")  # what a sentence is translated into is its linearised tree


class RecipeError(ValueError):
    """A recipe cannot be followed; the message says why and what to do."""


def _choice(default, help: str):
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Recipe:
    """What to train on, what to train, and how."""

    corpus: str = _choice(
        "microworld",
        "microworld, multi30k, or files (then give --train and --valid); for a parser: trees (the microworld's), or "
        "treebank (then give --train and --valid, each a file in Penn format)",
    )
    source: str = _choice("en", "source language: en, or de or fr for the way back")
    target: str = _choice("de", "target language: de, or fr (Multi30k only), or en")
    pairs: int = _choice(120_000, "how many sentence pairs the microworld makes for training")
    train: str = _choice("", "own text: one .tsv or .jsonl file, or two files with a comma between them")
    valid: str = _choice("", "own text for validation, likewise")
    both_ways: bool = _choice(False, "train in both directions at once: each pair also the other way round")
    start: str = _choice("", "a trained model to go on from, by its folder or shipped name; its tokenizer is kept")
    back: str = _choice("", "a model for the way back: train on what it makes of the targets, too; the paper has none")
    forth: str = _choice("", "a model for the same way: train on what it makes of the sources, too; the paper has none")
    copies: int = _choice(3, "how often the model for the way back translates each target, at random but for the first")

    vocab_size: int = _choice(1500, "pieces of the joint BPE vocabulary")
    bpe_dropout: float = _choice(0.0, "share of BPE merges skipped at random in training; the paper has none")

    architecture: str = _choice("transformer", f"what to train: {', '.join(ARCHITECTURES)}")
    d_model: int = _choice(128, "features of a token")
    num_heads: int = _choice(4, "attention heads; transformer only")
    d_ff: int = _choice(512, "features inside the feed-forward network; transformer only")
    num_layers: int = _choice(3, "layers of the encoder, and as many of the decoder")
    kernel: int = _choice(3, "positions that a convolution sees at once; convs2s and bytenet only")
    dropout: float = _choice(0.1, "dropout on sub-layer outputs and embeddings")
    attention_dropout: float = _choice(0.0, "dropout on attention weights; the paper names none; transformer only")
    norm: str = _choice("pre", "where LayerNorm stands: post (the paper) or pre; transformer only")
    positions: str = _choice("sinusoidal", "sinusoidal (the paper), learned, rotary or none; transformer only")
    max_length: int = _choice(256, "tokens a sentence may have; longer ones are left out of training")

    tokens: int = _choice(4096, "tokens of a batch, the source's or the target's, whichever are more")
    accumulate: int = _choice(1, "batches of one step; under torchrun, of each process")
    processes: int = _choice(1, "processes that share the batches of a step, if there is no GPU and a core for each")
    steps: int = _choice(1500, "steps to train; with a falling rate also where it reaches zero")
    peak: float = _choice(3e-3, "highest learning rate")
    warmup: int = _choice(300, "steps until the highest rate")
    falls: str = _choice("line", "the rate after the warm-up: root (the paper's inverse square root) or line (to zero)")
    smoothing: float = _choice(0.1, "label smoothing")
    clip: float = _choice(1.0, "longest gradient; the paper names none")
    agreement: float = _choice(0.0, "weight of R-Drop, which asks two passes to agree; the paper has none")
    agreement_after: int = _choice(0, "steps before R-Drop begins; it doubles the work of a step")
    bf16: bool = _choice(False, "matrix products in bfloat16 (autocast)")
    seed: int = _choice(1, "start of all random numbers")

    save_every: int = _choice(500, "steps between checkpoints")
    keep: int = _choice(5, "checkpoints kept; the last so many are averaged at the end")
    validate_every: int = _choice(500, "steps between validations")

    def __post_init__(self):
        choices = {"corpus": CORPORA, "falls": ("root", "line"), "architecture": ARCHITECTURES}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise RecipeError(f"{name}={getattr(self, name)!r} is unknown: choose one of {', '.join(known)}")
        if self.corpus == "microworld" and {self.source, self.target} != {"en", "de"}:
            raise RecipeError(f"the microworld has no pair {self.source}–{self.target}: choose en–de or de–en")
        if self.corpus == "files" and not (self.train and self.valid):
            raise RecipeError(
                "corpus=files needs texts: give train and valid, each one .tsv or .jsonl file or two files"
            )
        if self.corpus == "treebank" and not (self.train and self.valid):
            raise RecipeError("corpus=treebank needs trees: give train and valid, each a file in Penn format")
        if self.corpus in TREES and self.both_ways:
            raise RecipeError("both_ways is not for trees: a linearised tree has lost its words, so no way leads back")
        if (self.back or self.forth) and (self.corpus in TREES or self.both_ways):
            raise RecipeError(
                "back and forth go with one way between two languages: leave them out for trees and with both_ways"
            )
        if self.copies < 1:
            raise RecipeError(f"copies={self.copies} must be at least 1; without back there are none")
        if self.processes < 1 or self.accumulate % self.processes:
            raise RecipeError(
                f"processes={self.processes} cannot share accumulate={self.accumulate} batches of a step evenly: "
                "choose 1 process, or a multiple of it as batches"
            )
        if not 0.0 <= self.bpe_dropout < 1.0:
            raise RecipeError(f"bpe_dropout={self.bpe_dropout} is outside [0, 1): 0.1 is usual, 0 switches it off")
        self.config()
        self.settings()

    def config(self) -> Config:
        """The model's configuration."""
        kind = config_class(self.architecture)
        return kind(**_shared(self, kind))

    def settings(self, **more) -> Settings:
        """The loop's settings; ``more`` are those that change nothing about the result, such as minutes."""
        return Settings(**_shared(self, Settings), falls_to_zero=self.falls == "line", **more)

    def save(self, folder: Path) -> None:
        """Write it into a run's folder; a run that was begun with another recipe is refused."""
        if has_recipe(folder):
            before, now = asdict(self.load(folder)), asdict(self)
            free = FREE if self.falls == "line" else (*FREE, "steps")
            changed = [name for name in now if now[name] != before[name] and name not in free]
            if changed:
                what = "; ".join(f"{name} was {before[name]!r} and is now {now[name]!r}" for name in changed)
                raise RecipeError(
                    f"{folder} holds a run with another recipe: {what}. Go on with the old recipe (say only --folder), "
                    "or choose another folder"
                )
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE_NAME}.part"
        part.write_text(self.to_json() + "\n", encoding="utf-8")
        part.replace(folder / FILE_NAME)

    def to_json(self) -> str:
        """All fields, one a line."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def load(cls, folder: Path) -> "Recipe":
        """The recipe of a run."""
        path = folder / FILE_NAME
        if not has_recipe(folder):
            raise RecipeError(f"{folder} holds no run: there is no {FILE_NAME}")
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (TypeError, ValueError) as error:
            raise RecipeError(f"{path} is not a recipe: {error}") from None


def has_recipe(folder: Path) -> bool:
    """Whether a run was begun in this folder."""
    return (folder / FILE_NAME).is_file()


def _shared(recipe: Recipe, other: type) -> dict:
    """The fields of the recipe that another dataclass has too."""
    return {f.name: getattr(recipe, f.name) for f in fields(other) if hasattr(recipe, f.name)}


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


_MICROWORLD = Recipe(
    pairs=310_000,
    vocab_size=3500,  # almost every word is one piece
    num_layers=2,
    dropout=0.0,  # no sentence comes twice, so there is nothing to learn by heart
    smoothing=0.0,  # and each has one translation
    tokens=1024,
    steps=3400,
    warmup=150,
    save_every=40,
    validate_every=1700,
)
# Sizes, pieces, dropout and the way the rate falls after Wu et al. 2021, whose model has post-norm.
_MULTI30K = Recipe(
    corpus="multi30k",
    vocab_size=10_000,
    d_ff=256,
    num_layers=4,
    dropout=0.3,
    tokens=2048,
    accumulate=2,
    processes=2,
    steps=6900,
    peak=4e-3,
    warmup=1200,
    falls="root",
    save_every=250,
    keep=10,
    validate_every=1000,
)
# Two more stages: the same sizes the other way round, then on with what the first two models make of the training text.
_BACK = replace(
    _MULTI30K,
    source="de",
    target="en",
    start="runs/multi30k/model",
    steps=2500,
    peak=3e-3,
    warmup=300,
    save_every=125,
    keep=8,
    validate_every=500,
)
_DIVERSE = replace(
    _MULTI30K,
    start="runs/multi30k/model",
    back="runs/multi30k-back/model",
    forth="runs/multi30k/model",
    steps=7000,
    peak=2e-3,
    warmup=100,
    falls="line",
    save_every=100,
    validate_every=500,
)
_TREES = Recipe(
    corpus="trees",
    pairs=75_000,
    vocab_size=1500,  # almost every word is one piece, and so is every bracket with its label
    num_heads=8,
    num_layers=2,
    dropout=0.0,
    smoothing=0.0,  # each sentence has one tree
    max_length=512,  # a tree may have 300 tokens more than its sentence
    tokens=384,
    accumulate=4,  # a batch holds sentences of one length; to count words, it helps to see several lengths in a step
    steps=1500,
    peak=2e-3,
    warmup=150,
    save_every=40,
    validate_every=500,
)
# The first four are those of the shipped models, for two processor cores; the Multi30k model takes three of them, one
# after the other. The next is for a GPU: Multi30k's model, trained for longer on larger batches, with BPE-dropout and
# R-Drop; we have not run it. Then a parser. The last is the paper's base model on WMT 2014 (sections 5.1 to 5.4), text
# not included; clipping and bfloat16 are ours, and we have run no more of it than `--dry-run` does.
RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "microworld": _MICROWORLD,
        "multi30k": _MULTI30K,
        "multi30k-back": _BACK,
        "multi30k-diverse": _DIVERSE,
        "multi30k-gpu": replace(
            _MULTI30K,
            bpe_dropout=0.1,
            dropout=0.3,
            tokens=8192,
            accumulate=1,
            processes=1,
            steps=30_000,
            peak=4e-3,
            warmup=2000,
            agreement=4.0,
            bf16=True,
            save_every=500,
        ),
        "trees": _TREES,
        "wmt14-base": Recipe(
            corpus="files",
            train="wmt14/train.en,wmt14/train.de",
            valid="wmt14/newstest2013.en,wmt14/newstest2013.de",
            vocab_size=37_000,
            d_model=512,
            num_heads=8,
            d_ff=2048,
            num_layers=6,
            norm="post",
            tokens=12_500,
            accumulate=2,  # 25,000 tokens in a step; on eight GPUs: --tokens 3125 --accumulate 1
            steps=100_000,
            peak=(512 * 4000) ** -0.5,
            warmup=4000,
            falls="root",
            bf16=True,
            save_every=1000,
            validate_every=5000,
        ),
    }
)
