"""Recipes with a name: those that made the shipped models, and some to go on with."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tinytransformer.training.recipe import Recipe

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
    steps=4500,
    peak=3e-3,
    warmup=100,
    falls="line",
    seed=2,  # what models make of the text is drawn from it, too
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
