"""Table 4 small: constituency parsing as translation, with the same model, the same loop and the same search.

The source is a sentence's words, the target its linearised tree; decoding is the paper's (section 6.3): beam 21,
α = 0.3, an output at most 300 tokens longer than its input. Greedy decoding stands beside it.
**Departure**: the paper trains 4 layers with d_model 1024 on the Wall Street Journal's 40,000 sentences. Ours is tiny
and reads the trees of the microworld, whose grammar is small: its F1 cannot be compared with the paper's.

Made in pieces: the run in ``runs/table4`` goes on where it stopped, and rows that the results file has are kept.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from tinytransformer.experiments.runs import begun, parameters, said, versions, write
from tinytransformer.text.corpus import microworld_trees
from tinytransformer.text.trees import Parse, Tree
from tinytransformer.training import preparing
from tinytransformer.training.checkpoints import Checkpoint, checkpoints
from tinytransformer.training.loop import train
from tinytransformer.training.recipe import Recipe
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.bracketing import PARSING, bracketing, mismatches, parse
from tinytransformer.translation.card import finished_model
from tinytransformer.translation.translator import Decoding, Translator

COMMAND = "python -m tinytransformer.experiments table4"
FOLDER = Path("runs/table4")
SPLITS = ("test", "test_novel", "test_long")
WAYS = (PARSING, replace(PARSING, beam=1))
SENTENCES, SEED = 1000, 1
MISTAKES = 3  # kept of each row, to be drawn


def run(path: Path, folder: Path = FOLDER, recipe: Recipe = RECIPES["trees"], sentences: int = SENTENCES) -> dict:
    """Train the parser unless ``folder`` holds it, score what the file at ``path`` does not have yet; returns all."""
    translator = parser(folder, recipe)
    results = begun(path, _head(translator, folder, recipe, sentences))
    done = {(row["split"], row["beam"]) for row in results["rows"]}
    for split in SPLITS:
        trees = microworld_trees(split, sentences, SEED)
        for decoding in WAYS:
            if (split, decoding.beam) not in done:
                results["rows"].append({"split": split, **scored(translator, trees, decoding)})
                write(path, results)
                print(_line(results["rows"][-1]), flush=True)
    return results


def parser(folder: Path, recipe: Recipe) -> Translator:
    """The trained parser of a run; what is not trained yet is trained now."""
    recipe.save(folder)
    done = checkpoints(folder)
    if not done or Checkpoint.load(done[-1]).step < recipe.steps:
        corpus = preparing.training_corpus(recipe)
        tokenizer = preparing.tokenizer_for(recipe, corpus, folder)
        batches = preparing.training_batches(recipe, tokenizer, preparing.fitting(recipe, tokenizer, corpus))
        valid = microworld_trees("valid", 200, recipe.seed)

        def validate(model: torch.nn.Module) -> dict[str, float]:
            found = bracketing(valid, parse(Translator(model, tokenizer), [tree.words() for tree in valid], WAYS[-1]))
            return {"score": found.f1, "valid_exact": found.exact}

        train(preparing.initial_model(recipe), batches, recipe.settings(), folder, validate, _report)
    return finished_model(recipe, folder, recipe.keep, folder / "model")[0]


def scored(translator: Translator, trees: Sequence[Tree], decoding: Decoding) -> dict:
    """One row: the scores of a way to decode, what had to be repaired, the seconds, and the first mistakes."""
    start = time.perf_counter()
    parses = parse(translator, [tree.words() for tree in trees], decoding)
    seconds = time.perf_counter() - start
    scores = bracketing(trees, parses)
    percent = {name: round(getattr(scores, name), 2) for name in ("precision", "recall", "f1", "exact")}
    return {
        **{name: getattr(decoding, name) for name in ("beam", "alpha", "extra")},
        **percent,
        **asdict(scores),
        "repairs": dict(sum((Counter(one.repairs) for one in parses), Counter())),
        "seconds": round(seconds, 1),
        "mistakes": list(_mistakes(trees, parses)),
    }


def _mistakes(trees: Sequence[Tree], parses: Sequence[Parse]) -> Iterator[dict]:
    pairs = [(tree, one) for tree, one in zip(trees, parses, strict=True) if any(mismatches(tree, one.tree))]
    for tree, one in pairs[:MISTAKES]:
        yield {"gold": str(tree), "predicted": str(one.tree), "repairs": dict(one.repairs)}


def _head(translator: Translator, folder: Path, recipe: Recipe, sentences: int) -> dict:
    """What the rows depend on; rows made under another head are not kept."""
    last = Checkpoint.load(checkpoints(folder)[-1])
    return {
        "command": COMMAND,
        "versions": versions(),
        "recipe": said(recipe),
        "parameters": parameters(translator.model),
        "training": {"seconds": round(last.state["seconds"], 1), "hardware": last.state["hardware"]},
        "sentences": sentences,
        "seed": SEED,
    }


def _report(entry: dict) -> None:
    if "score" in entry:
        print(f"step {entry['step']}: valid F1 {entry['score']:.2f}, exact {entry['valid_exact']:.1f} %", flush=True)
    elif entry["step"] % 100 == 0:
        print(f"step {entry['step']}: loss {entry['loss']:.3f}", flush=True)


def _line(row: dict) -> str:
    scores = ", ".join(f"{name} {row[name]:.2f}" for name in ("precision", "recall", "f1", "exact"))
    return f"{row['split']}, beam {row['beam']}: {scores}; {row['malformed']} malformed, {row['seconds']:.0f} seconds"
