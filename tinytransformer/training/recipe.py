"""Recipes: everything that a training run depends on, as one value that is stored with the run.

A recipe names the corpus, the tokenizer, the model and the settings of the loop; from it and the seed the whole run
follows. The command line offers every field as an option; recipes with a name stand in recipes.py.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from tinytransformer.model.baselines import ARCHITECTURES, Config, config_class
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
