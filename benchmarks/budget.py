"""What the microworld recipe reaches in how many minutes; writes data/results/budget.json.

Trains as `train --recipe microworld` does, on all cores, then scores checkpoints on the way and the averaged model at
the end. The minutes are the run's own, with its checkpoints and validations, without what is scored here. Time it on a
machine that does nothing else.

Run: python benchmarks/budget.py [--seeds 1 2 3] [any option of train]    (about eight minutes a seed)
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from models import evaluated

from tinytransformer.model.baselines import build_model
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import Checkpoint, average_of, checkpoints, save_model
from tinytransformer.training.recipe import Recipe

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "budget.json"
SPLITS = ("test", "test_novel", "test_pronoun")
POINTS = 6  # of the curve
KEPT = 1000  # all checkpoints, for the curve


def trained(folder: Path, seed: int, more: list[str]) -> Recipe:
    """Follow the recipe, but keep every checkpoint."""
    command = [sys.executable, "-m", "tinytransformer", "train", "--recipe", "microworld", "--folder", str(folder)]
    subprocess.run([*command, "--seed", str(seed), "--keep", str(KEPT), "--json", *more], check=True)
    return Recipe.load(folder)


def scores(model: Path) -> dict[str, float]:
    """BLEU on the test sets, and the share of right pronouns on the last."""
    text = ["--model", str(model), "--corpus", "microworld", "--split"]
    found = {split: evaluated(*text, split) for split in SPLITS}
    return {**{split: found[split]["bleu"] for split in SPLITS}, "pronouns": found["test_pronoun"]["pronoun_accuracy"]}


def table_row(row: dict) -> str:
    """One line of the README's table."""
    bleus = " | ".join(f"{row[split]:.2f}" for split in SPLITS)
    return f"| {row['steps']:,} | {row['minutes']:.1f} | {bleus} | {row['pronouns']:.1%} |"


def measured(seed: int, more: list[str], last: int) -> dict:
    """One run: its curve, and where it ends."""
    with tempfile.TemporaryDirectory() as name:
        run, goal = Path(name) / "run", Path(name) / "model"
        model = build_model(trained(run, seed, more).config())
        kept = checkpoints(run)
        curve = []
        for number in range(1, POINTS + 1):
            so_far = kept[: round(number * len(kept) / POINTS)]
            model.load_state_dict(average_of(so_far[-last:]))
            save_model(goal, model, Tokenizer.load(run), "A model on the way, for a curve.\n")
            end = Checkpoint.load(so_far[-1])
            row = {"steps": end.step, "minutes": end.state["seconds"] / 60, **scores(goal)}
            print(table_row(row), flush=True)
            curve.append(row)
    return {"seed": seed, "curve": curve, "hardware": end.state["hardware"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--last", type=int, default=5, help="checkpoints that are averaged, as the recipe has it")
    options, more = parser.parse_known_args()
    print("| steps | minutes | BLEU test | test_novel | test_pronoun | pronouns right |\n|--:|--:|--:|--:|--:|--:|")
    runs = [measured(seed, more, options.last) for seed in options.seeds]
    about = {
        "command": " ".join(["python benchmarks/budget.py", *sys.argv[1:]]),
        "averaged": options.last,
        "runs": runs,
    }
    RESULTS.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
