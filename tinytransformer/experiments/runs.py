"""Many small training runs, each done once: what it found is kept in its folder, so that a command can stop and go on.

All runs of a table share one text and one tokenizer, so that their perplexities can be compared; the seed of a run
decides its first weights, its dropout and the order of its batches.
"""

import argparse
import json
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from tinytransformer.model.baselines import Model
from tinytransformer.text.batching import TokenBatches
from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import average_of, checkpoints
from tinytransformer.training.loop import Progress, TrainingError, train
from tinytransformer.training.preparing import encode, training_corpus
from tinytransformer.training.recipe import Recipe
from tinytransformer.translation.evaluation import perplexity, score
from tinytransformer.translation.translator import Translator

RESULT = "result.json"


@dataclass(frozen=True, eq=False)
class Task:
    """What runs have in common: the pairs to train on, those to be judged by, and the tokenizer."""

    train: ParallelCorpus
    judged: ParallelCorpus
    tokenizer: Tokenizer

    @classmethod
    def of(cls, recipe: Recipe, judged: ParallelCorpus) -> "Task":
        """The task of a recipe: its corpus, with a tokenizer learned from it."""
        corpus = training_corpus(recipe)
        return cls(corpus, judged, Tokenizer.train([*corpus.source, *corpus.target], recipe.vocab_size))


def result_of(folder: Path, settings: dict, run: Callable[[], dict]) -> dict:
    """What a run found, kept in its folder: read if it was done under these settings, else done now."""
    path = folder / RESULT
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["settings"] == json.loads(json.dumps(settings)):
            return found["result"]
        raise ValueError(
            f"{folder} holds a run with other settings than the ones asked for: delete it, or choose another folder"
        )
    result = run()
    write(path, {"settings": settings, "result": result})
    return result


def trained(model: Model, recipe: Recipe, task: Task, folder: Path) -> dict[str, float]:
    """Train a model on a task, average its last checkpoints, and score it; the checkpoints are deleted afterwards.

    A run whose loss is no longer finite is a result too: then there is ``failed_after``, the steps that it took, and
    no score.
    """
    try:
        found = trained_until(model, recipe, task, folder)
    except TrainingError:
        return {"failed_after": json.loads(_log(folder)[-1])["step"]}
    forget_checkpoints(folder)
    return found


def trained_until(model: Model, recipe: Recipe, task: Task, folder: Path) -> dict[str, float]:
    """Train a model, or go on with it, until the recipe's last step; score the average of its last checkpoints.

    The model holds that average afterwards; to go on, the loop takes its weights from the last checkpoint.
    """
    progress = training(model, recipe, task, folder)
    model.load_state_dict(average_of(checkpoints(folder)[-recipe.keep :]))
    return {**scores(model.eval(), task), **_told(progress, folder)}


def training(model: Model, recipe: Recipe, task: Task, folder: Path) -> Progress:
    """Train a model, or go on with it, until the recipe's last step."""
    batches = TokenBatches(encode(task.tokenizer, task.train), recipe.tokens)
    return train(model, batches, recipe.settings(), folder)


def forget_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of a run that is done."""
    for checkpoint in checkpoints(folder):
        shutil.rmtree(checkpoint)


def scores(model: Model, task: Task) -> dict[str, float]:
    """Perplexity per piece, and BLEU and chrF of beam 4 with α = 0.6."""
    translations = Translator(model, task.tokenizer)(task.judged.source, split=False)
    found = score([one.text for one in translations], task.judged.target)
    return {
        "perplexity": round(perplexity(model, encode(task.tokenizer, task.judged)), 4),
        "bleu": round(found.bleu, 2),
        "chrf": round(found.chrf, 2),
    }


def _told(progress: Progress, folder: Path) -> dict[str, float]:
    last = [json.loads(line)["loss"] for line in _log(folder)[-20:]]
    return {
        "training_loss": round(sum(last) / len(last), 4),
        "epochs": progress.epoch,
        "seconds": round(progress.seconds, 1),
    }


def _log(folder: Path) -> list[str]:
    return (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()


def command_options(command: str, about: str, results: Path) -> argparse.ArgumentParser:
    """What the command of every table asks: where its runs are kept, and where its results go."""
    parser = argparse.ArgumentParser(prog=command, description=about.splitlines()[0])
    folder = Path("runs") / results.stem
    parser.add_argument("--folder", type=Path, default=folder, help="of the runs; default: %(default)s")
    parser.add_argument("--output", type=Path, default=results, help="the results file; default: %(default)s")
    return parser


def said(recipe: Recipe) -> dict:
    """What a recipe says, as plain values; what all recipes say is left out."""
    default = asdict(Recipe())
    return {name: value for name, value in asdict(recipe).items() if value != default[name]}


def parameters(model: torch.nn.Module) -> int:
    """How many numbers a model learns."""
    return sum(parameter.numel() for parameter in model.parameters())


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    named = {name: version(name) for name in ("sacrebleu", "sentencepiece")}
    return {"python": platform.python_version(), "torch": torch.__version__.split("+")[0], **named}


def in_sections(path: Path, head: dict, sections: Mapping[str, Callable[[dict], list | dict]], seed: int = 0) -> dict:
    """Measure what the results file at ``path`` lacks, a section after the other, each from the results so far.

    A section is written as soon as it is there. Those that were made under another head are made anew.
    """
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    head = plain(head)
    if any(results.get(key) != value for key, value in head.items()):
        results = head
    for name, measure in sections.items():
        if name not in results:
            torch.manual_seed(seed)
            results[name] = plain(measure(results))
            write(path, results)
            print(f"{name}: {len(results[name])} rows", flush=True)
    return results


def plain(value):
    """As JSON gives it back: lists instead of tuples, and numbers with four digits, which is more than they deserve."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def begun(path: Path, head: dict) -> dict:
    """The results so far, if they were made under the same head; else the head and no rows."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    same = all(results.get(key) == value for key, value in head.items())
    return results if same else {**head, "rows": []}


def write(path: Path, results: dict) -> None:
    """Write a results file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
