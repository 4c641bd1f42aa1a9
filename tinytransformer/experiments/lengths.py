"""What attention repaired: BLEU by the length of the sentence, for an LSTM with and without it.

Every architecture is trained three times on the microworld and translates test sentences of four lengths, equally
many of each. How sure the gap is says a bootstrap: sentences are drawn anew, with all seeds' translations of them.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU

from tinytransformer.experiments.runs import (
    Task,
    command_options,
    forget_checkpoints,
    parameters,
    result_of,
    said,
    training,
    versions,
    write,
)
from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.text.microworld import Example, generate
from tinytransformer.training.preparing import initial_model, tokenizer_for, training_corpus
from tinytransformer.training.recipe import Recipe
from tinytransformer.translation.card import finished_model
from tinytransformer.translation.evaluation import alignment_errors
from tinytransformer.translation.translator import Translator

COMMAND = "python -m tinytransformer.experiments lengths"
ARCHITECTURES = ("lstm", "lstm-dot", "lstm-additive")
SEEDS = (1, 2, 3)
LENGTHS = ((1, 9), (10, 14), (15, 20), (21, 99))  # words of the source, full stop included
SENTENCES = 300  # of each length
BASE = Recipe(
    pairs=100_000,
    vocab_size=3500,
    d_model=128,
    num_layers=2,
    dropout=0.0,
    smoothing=0.0,
    tokens=1024,
    steps=2000,
    peak=3e-3,
    warmup=200,
    save_every=40,
    validate_every=10**6,
)
Counts = tuple[int, ...]  # of one sentence: n-grams that are right, n-grams, length, length of the reference


@cache
def examples(sentences: int) -> Mapping[tuple[int, int], list[Example]]:
    """Test sentences by length, the first so many of each."""
    found: dict[tuple[int, int], list[Example]] = {span: [] for span in LENGTHS}
    for example in generate("test", 100 * sentences, seed=1):
        span = next(span for span in LENGTHS if len(example.source_words) <= span[1])
        if len(found[span]) < sentences:
            found[span].append(example)
    return found


def counts(hypothesis: str, reference: str) -> Counts:
    """What a sentence adds to BLEU."""
    found = BLEU(effective_order=True).sentence_score(hypothesis, [reference])
    return (*found.counts, *found.totals, found.sys_len, found.ref_len)


def bleu(rows: Sequence[Counts]) -> float:
    """BLEU of a corpus from the counts of its sentences."""
    sums = [sum(column) for column in zip(*rows, strict=True)]
    return BLEU.compute_bleu(sums[:4], sums[4:8], *sums[8:], smooth_method="exp").score


def gap(
    ours: Sequence[Sequence[Counts]], theirs: Sequence[Sequence[Counts]], draws: int = 1000, seed: int = 1
) -> dict[str, float]:
    """How much better ours is, each a list of seeds with the counts of the same sentences; with a 95 % interval.

    Each draw takes the sentences anew, the same for all, and compares the seeds' mean BLEU.
    """

    def difference(rows: Sequence[int]) -> float:
        one, other = (sum(bleu([run[row] for row in rows]) for run in side) / len(side) for side in (ours, theirs))
        return one - other

    number, generator = len(ours[0]), random.Random(seed)
    drawn = sorted(difference(generator.choices(range(number), k=number)) for _ in range(draws))
    low, high = drawn[int(0.025 * draws)], drawn[min(draws - 1, int(0.975 * draws))]
    return {"bleu": difference(range(number)), "low": low, "high": high}


def recipe_of(architecture: str, seed: int) -> Recipe:
    return replace(BASE, architecture=architecture, seed=seed)


def run_one(architecture: str, seed: int, folder: Path) -> dict:
    """Train one model, keep it in its folder, and translate the test sentences: counts by length, alignment error."""
    recipe = recipe_of(architecture, seed)
    place = folder / f"{architecture}-{seed}"

    def run() -> dict:
        translator, seconds = _trained(recipe, place)
        found = {"seed": seed, "seconds": seconds, "parameters": parameters(translator.model), "counts": []}
        for chosen in examples(SENTENCES).values():
            translations = translator([one.source for one in chosen], split=False)
            pairs = zip(translations, chosen, strict=True)
            found["counts"].append([counts(translation.text, example.target) for translation, example in pairs])
        if any(translator.model.attentions()):
            some = [example for chosen in examples(SENTENCES).values() for example in chosen[: SENTENCES // 3]]
            found["alignment_error"] = alignment_errors(translator, some)[0, None]
        return found

    return result_of(place, {**said(recipe), "sentences": SENTENCES}, run)


def _trained(recipe: Recipe, place: Path) -> tuple[Translator, float]:
    recipe.save(place)
    corpus = training_corpus(recipe)
    tokenizer = tokenizer_for(recipe, corpus, place)
    nothing = ParallelCorpus((), (), "nothing to be judged by")
    progress = training(initial_model(recipe), recipe, Task(corpus, nothing, tokenizer), place)
    translator, _ = finished_model(recipe, place, recipe.keep, place / "model")
    forget_checkpoints(place)
    return translator, round(progress.seconds, 1)


def summary(found: Mapping[str, Sequence[Mapping]]) -> dict:
    """The results file: BLEU of every run by length, and the gaps to the model without attention."""
    rows = []
    for name, done in found.items():
        kept = [{key: value for key, value in run.items() if key != "counts"} for run in done]
        for run, short in zip(done, kept, strict=True):
            short["bleu"] = [round(bleu(rows), 2) for rows in run["counts"]]
        rows.append({"name": name, "runs": kept})
    plain = found[ARCHITECTURES[0]]
    for row in rows[1:]:
        row["gap"] = []
        for place in range(len(LENGTHS)):
            sides = ([run["counts"][place] for run in side] for side in (found[row["name"]], plain))
            row["gap"].append({key: round(value, 2) for key, value in gap(*sides).items()})
    about = {"command": COMMAND, "versions": versions(), "lengths": LENGTHS, "sentences": SENTENCES}
    return {**about, "recipe": asdict(BASE), "rows": rows}


def main(arguments: Sequence[str], results: Path) -> None:
    """Train what is missing, and write the results when all is there."""
    options = command_options(COMMAND, __doc__, results).parse_args(arguments)
    torch.set_num_threads(1)
    found: dict[str, list[dict]] = {name: [] for name in ARCHITECTURES}
    for seed in SEEDS:
        for name in ARCHITECTURES:
            found[name].append(run_one(name, seed, options.folder))
            print(name, seed, [round(bleu(rows), 2) for rows in found[name][-1]["counts"]], flush=True)
    write(options.output, summary(found))
