"""What each part of the Multi30k recipe gives: a shortened recipe, changed in one place at a time, three seeds each.

Shortened means: two layers instead of four, and 800 small steps, so that 21 runs fit into two hours on one core. What
helps a long run by holding it back (dropout, R-Drop, BPE-dropout) can only look worse here than it is.

Every variant is trained with the same three seeds and scored on the validation split (beam 4, the last checkpoints
averaged); sacreBLEU's paired bootstrap compares it with the base, seed by seed. Finished runs are kept in --runs and
not trained again, so the command can be stopped and goes on, and two of them with different --only can share the work
before one without it puts everything together in data/results/recipes.json.

Run: python benchmarks/recipes.py --data FOLDER [--only "post-norm;dropout 0.3"]
"""

import argparse
import json
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.training.checkpoints import Checkpoint, average, checkpoints
from tinytransformer.training.loop import train
from tinytransformer.training.preparing import (
    initial_model,
    tokenizer_for,
    training_batches,
    training_corpus,
    validation_corpus,
)
from tinytransformer.training.recipe import Recipe
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.evaluation import score
from tinytransformer.translation.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "data" / "results" / "recipes.json"
SEEDS = (1, 2, 3)
BASE = replace(
    RECIPES["multi30k"],
    vocab_size=5000,
    d_ff=512,
    num_layers=2,
    dropout=0.25,
    tokens=1024,
    steps=800,
    peak=3e-3,
    warmup=200,
    falls="line",
    save_every=40,
    keep=5,
    validate_every=10**6,
)
VARIANTS = {
    "base": {},
    "R-Drop, from the middle on": {"agreement": 4.0, "agreement_after": 400},
    "BPE-dropout 0.1": {"bpe_dropout": 0.1},
    "post-norm": {"norm": "post"},
    "inverse square root": {"falls": "root"},
    "dropout 0.1": {"dropout": 0.1},
    "8,000 pieces": {"vocab_size": 8000},
}


def trained(recipe: Recipe, run: Path, data: str | None, corpus: ParallelCorpus | None = None) -> dict:
    """Train, on the recipe's own text or another, and translate the validation split, unless that was done before."""
    result = run / "result.json"
    if result.exists():
        return json.loads(result.read_text(encoding="utf-8"))
    recipe.save(run)
    corpus, valid = corpus or training_corpus(recipe, data), validation_corpus(recipe, data)
    tokenizer = tokenizer_for(recipe, corpus, run)
    batches = training_batches(recipe, tokenizer, corpus)
    model = initial_model(recipe)
    progress = train(model, batches, recipe.settings(), run)
    found = {"seconds": progress.seconds}
    for name, paths in (("last", checkpoints(run)[-1:]), ("averaged", checkpoints(run))):
        model.load_state_dict(average([Checkpoint.load(path).weights for path in paths]))
        for beam in (1, 4):
            translations = Translator(model, tokenizer)(valid.source, beam=beam, split=False)
            found[f"{name}, beam {beam}"] = [one.text for one in translations]
    result.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return found


def compare(base: list[dict], other: list[dict], references: list[str], key: str, base_key: str) -> dict:
    """BLEU of each seed, and the paired bootstrap's p-value against the base with the same seed."""
    bleu = [score(one[key], references).bleu for one in other]
    p_values = []
    for ours, theirs in zip(base, other, strict=True):
        systems = [("base", ours[base_key]), ("variant", theirs[key])]
        test = PairedTest(systems, {"BLEU": BLEU()}, [references], test_type="bs", n_samples=1000)
        p_values.append(test()[1]["BLEU"][1].p_value)
    return {"bleu": bleu, "mean": statistics.mean(bleu), "p_values": p_values}


def table_row(name: str, row: dict, base: float) -> str:
    """One line of the README's table."""
    scores = " · ".join(f"{value:.2f}" for value in row["bleu"])
    if name == "base":
        return f"| base | {scores} | {row['mean']:.2f} | | | {row['seconds'] / 60:.1f} |"
    p_values = " · ".join(f"{value:.3f}" for value in row["p_values"])
    minutes = f"{row['seconds'] / 60:.1f}" if "seconds" in row else ""
    return f"| {name} | {scores} | {row['mean']:.2f} | {row['mean'] - base:+.2f} | {p_values} | {minutes} |"


def print_table(rows: dict[str, dict]) -> None:
    """The README's table."""
    print("| variant | BLEU, seeds 1 · 2 · 3 | mean | against base | p, seed by seed | minutes |")
    print("|---|---|--:|--:|---|--:|")
    for name, row in rows.items():
        print(table_row(name, row, rows["base"]["mean"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--runs", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--only", help="train only these variants, with semicolons between them, and compare nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    references = list(validation_corpus(BASE, options.data).target)
    found: dict[str, list[dict]] = {}
    for name in options.only.split(";") if options.only else VARIANTS:
        slug = name.lower().replace(" ", "-").replace(",", "")
        found[name] = []
        for seed in SEEDS:
            print(f"{name}, seed {seed}", file=sys.stderr, flush=True)
            recipe = replace(BASE, **VARIANTS[name], seed=seed)
            found[name].append(trained(recipe, options.runs / f"{slug}-{seed}", options.data))
    if options.only:
        return
    rows = {
        name: {"seconds": statistics.mean(run["seconds"] for run in runs)}
        | compare(found["base"], runs, references, "averaged, beam 4", "averaged, beam 4")
        for name, runs in found.items()
    }
    for name in ("last, beam 1", "last, beam 4", "averaged, beam 1"):
        rows[f"base: {name}"] = compare(found["base"], found["base"], references, name, "averaged, beam 4")
    about = {"command": "python benchmarks/recipes.py", "base": asdict(BASE), "variants": VARIANTS, "seeds": SEEDS}
    RESULTS.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print_table(rows)


if __name__ == "__main__":
    main()
