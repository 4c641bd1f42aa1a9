"""What data diversification gives: going on from one trained model with and without what models made of its text.

The last stage of the Multi30k recipe, shortened: every variant starts from the same model, takes the same number of
steps, and differs from the base in nothing but the text. Three seeds each, scored as in recipes.py. The stages before
it must be there: `train --recipe multi30k` and `train --recipe multi30k-back` in runs/, as in the shipped model's card.
Finished runs are kept, so the command can be stopped and goes on; two with different --only can share the work.

Run: python benchmarks/diversification.py --data FOLDER [--only "versions back;versions forth"]
"""

import argparse
import json
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path

import torch
from recipes import SEEDS, compare, print_table, trained

from tinytransformer.training.preparing import training_corpus, validation_corpus
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.card import versions_of
from tinytransformer.translation.diversification import diversified, make
from tinytransformer.translation.translator import Translator

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "diversification.json"
WHOLE = replace(RECIPES["multi30k-diverse"], seed=1)
BASE = replace(
    WHOLE,
    back="",
    forth="",
    processes=1,
    bf16=True,
    steps=600,
    peak=2e-3,
    save_every=30,
    keep=5,
    validate_every=10**6,
)
# Which of the versions are added to the text.
VARIANTS = {"base": (), "versions back": ("back",), "versions back and forth": ("back", "forth")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--runs", type=Path, default=Path("runs/diversification"))
    parser.add_argument("--only", help="train only these variants, with semicolons between them, and compare nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus, made = training_corpus(BASE, options.data), options.runs / "made"
    made.mkdir(parents=True, exist_ok=True)
    versions = versions_of(WHOLE)
    for version in versions:
        make(version, corpus, made, Translator.load)
    references = list(validation_corpus(BASE, options.data).target)
    found: dict[str, list[dict]] = {}
    for name in options.only.split(";") if options.only else VARIANTS:
        wanted = [version for version in versions if version.name.startswith(VARIANTS[name])] if VARIANTS[name] else []
        text = diversified(corpus, wanted, made)
        found[name] = []
        for seed in SEEDS:
            print(f"{name}, seed {seed}: {len(text):,} pairs", file=sys.stderr, flush=True)
            run = options.runs / f"{name.replace(' ', '-')}-{seed}"
            found[name].append(trained(replace(BASE, seed=seed), run, options.data, text))
    if options.only:
        return
    way = "averaged, beam 4"
    rows = {
        name: {"seconds": statistics.mean(run["seconds"] for run in runs)}
        | compare(found["base"], runs, references, way, way)
        for name, runs in found.items()
    }
    about = {
        "command": "python benchmarks/diversification.py",
        "base": asdict(BASE),
        "variants": VARIANTS,
        "seeds": SEEDS,
    }
    RESULTS.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print_table(rows)


if __name__ == "__main__":
    main()
