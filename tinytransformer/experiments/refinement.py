"""Less sequential decoding, measured: mask-predict beside our sequential model, of equal size and equal steps.

The sequential model is the shipped one of the microworld. The refining one follows the same recipe, with the same
tokenizer, batches, steps and averaging; only its loss differs, and a small layer guesses the length. BLEU by
sentence length; sentences a second on one thread, one sentence at a time and many; and passes of the decoder.

Made in pieces: the run in ``runs/refinement`` goes on where it stopped, and rows that the results file has are kept.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from tinytransformer.experiments.lengths import LENGTHS
from tinytransformer.experiments.measuring import one_thread
from tinytransformer.experiments.runs import begun, parameters, said, versions, write
from tinytransformer.model.baselines import Model
from tinytransformer.text.batching import pad
from tinytransformer.text.microworld import Example, generate
from tinytransformer.text.tokenizer import END, Tokenizer
from tinytransformer.training import preparing
from tinytransformer.training.checkpoints import Checkpoint, average_of, checkpoints, find_model, load_model
from tinytransformer.training.loop import train
from tinytransformer.training.recipe import Recipe
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.evaluation import score
from tinytransformer.translation.greedy import Hypothesis
from tinytransformer.translation.refinement import RefiningTransformer, drafts, left, refine, refinement_loss
from tinytransformer.translation.translator import Decoding

COMMAND = "python -m tinytransformer.experiments refinement"
NOTE = (
    "Both models have the same recipe. Sentences a second: processor time of one thread, all ways in turns, one "
    "sentence at a time and many of similar length together; compare them with each other, not with another machine's: "
    "other work ran beside. "
    "Passes are runs of the decoder for a sentence; the end token costs a sequential model one of them."
)
FOLDER = Path("runs/refinement")
SEQUENTIAL = "microworld-en-de"
ITERATIONS = (1, 2, 4, 10)
SPLITS = ("test", "test_long")
SENTENCES, SEED, TOGETHER = 1000, 1, 64
TIMED, ROUNDS = 128, 3
Decode = Callable[[Tensor], list[Hypothesis]]


def refining_model(folder: Path, recipe: Recipe) -> tuple[RefiningTransformer, Tokenizer]:
    """The trained model of a run; what is not trained yet is trained now."""
    recipe.save(folder)
    torch.manual_seed(recipe.seed)
    model = RefiningTransformer(recipe.config())
    done = checkpoints(folder)
    if not done or Checkpoint.load(done[-1]).step < recipe.steps:
        corpus = preparing.training_corpus(recipe)
        tokenizer = preparing.tokenizer_for(recipe, corpus, folder)
        batches = preparing.training_batches(recipe, tokenizer, preparing.fitting(recipe, tokenizer, corpus))
        train(model, batches, recipe.settings(), folder, report=_report, loss=refinement_loss)
    model.load_state_dict(average_of(checkpoints(folder)[-recipe.keep :]))
    return model.eval(), Tokenizer.load(folder)


def ways(sequential: Model, refining: RefiningTransformer) -> dict[str, Decode]:
    """Every way to decode that is compared, by name."""
    found: dict[str, Decode] = {
        "sequential, greedy": partial(Decoding(beam=1), sequential),
        "sequential, beam 4": partial(Decoding(beam=4), sequential),
    }
    for number in ITERATIONS:
        found[f"refining, {number}"] = partial(refine, refining, iterations=number)
    found["refining, 4, three lengths"] = partial(refine, refining, iterations=4, candidates=3)
    found["refining, 10, three lengths"] = partial(refine, refining, iterations=10, candidates=3)
    return found


def in_batches(rows: Sequence[Sequence[int]], together: int) -> list[tuple[list[int], Tensor]]:
    """Sentences of similar length together: which ones, and their padded ids."""
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
    groups = [order[first : first + together] for first in range(0, len(order), together)]
    return [(group, pad([[*rows[row], END] for row in group])) for group in groups]


def translated(decode: Decode, rows: Sequence[Sequence[int]], together: int = TOGETHER) -> list[Hypothesis]:
    """A translation of each sentence, in their order."""
    found: dict[int, Hypothesis] = {}
    for group, source in in_batches(rows, together):
        found.update(zip(group, decode(source), strict=True))
    return [found[row] for row in range(len(rows))]


def quality(name: str, decode: Decode, tokenizer: Tokenizer, examples: Sequence[Example]) -> dict:
    """BLEU of all sentences and by length, the share of perfect ones, of right lengths, and passes a sentence."""
    hypotheses = translated(decode, [tokenizer.encode(example.source) for example in examples])
    texts = [tokenizer.decode(one.ids) for one in hypotheses]
    targets = [example.target for example in examples]
    right = [len(one.ids) == len(tokenizer.encode(target)) for one, target in zip(hypotheses, targets, strict=True)]
    repeated = [any(a == b for a, b in zip(one.ids, one.ids[1:], strict=False)) for one in hypotheses]
    row = {
        "way": name,
        "bleu": round(score(texts, targets).bleu, 2),
        "exact_percent": _percent([text == target for text, target in zip(texts, targets, strict=True)]),
        "right_length_percent": _percent(right),
        "repeated_token_percent": _percent(repeated),
        "passes": round(passes(name, hypotheses), 2),
        "by_length": [],
    }
    for low, high in LENGTHS:
        rows = [i for i, example in enumerate(examples) if low <= len(example.source_words) <= high]
        if rows:
            found = score([texts[i] for i in rows], [targets[i] for i in rows])
            row["by_length"].append({"words": [low, high], "sentences": len(rows), "bleu": round(found.bleu, 2)})
    return row


def passes(name: str, hypotheses: Sequence[Hypothesis]) -> float:
    """Decoder passes for a mean sentence: one a token and one for the end, or as many as there were refinements."""
    if name.startswith("sequential"):
        return sum(len(one.ids) + 1 for one in hypotheses) / len(hypotheses)
    iterations = int(name.split(", ")[1])
    needed = [next(t for t in range(1, iterations + 1) if not left(len(one.ids), iterations, t)) for one in hypotheses]
    return sum(needed) / len(needed)


def _percent(found: Sequence[bool]) -> float:
    return round(100 * sum(found) / len(found), 1)


def speeds(decoders: dict[str, Decode], rows: dict[str, list[list[int]]], rounds: int) -> list[dict]:
    """Sentences a second of every way, alone and together, in interleaved rounds."""
    taken: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds + 1):  # the first round warms up
        for together in (1, TOGETHER):
            for name, decode in decoders.items():
                start = time.process_time()
                translated(decode, rows[name], together)
                if number:
                    taken.setdefault((name, together), []).append(len(rows[name]) / (time.process_time() - start))
    return [
        {"way": name, "together": together, "sentences_per_second": round(median(found), 1)}
        for (name, together), found in taken.items()
    ]


def shown(model: RefiningTransformer, tokenizer: Tokenizer, examples: Sequence[Example], iterations: int) -> list[dict]:
    """Of the first sentences whose first draft is wrong: every draft, and which of its tokens were written when."""
    found = []
    for example in examples:
        memory = model.encode(pad([[*tokenizer.encode(example.source), END]]))
        steps = list(drafts(model, memory, model.likely_lengths(memory)[:, 0], iterations))
        texts = [tokenizer.decode(step.ids[0].tolist()) for step in steps]
        if texts[0] != texts[-1] == example.target:
            written = [step.written[0].nonzero()[:, 0].tolist() for step in steps]
            pieces = [tokenizer.pieces(step.ids[0].tolist()) for step in steps]
            found.append({"source": example.source, "target": example.target, "pieces": pieces, "written": written})
        if len(found) == 3:
            break
    return found


def run(path: Path, folder: Path = FOLDER, recipe: Recipe = RECIPES["microworld"], sentences: int = SENTENCES) -> dict:
    """Train the refining model unless ``folder`` holds it, measure what the file at ``path`` lacks; returns all."""
    with one_thread():
        refining, tokenizer = refining_model(folder, recipe)
        sequential, theirs = load_model(find_model(SEQUENTIAL))
        results = begun(path, _head(folder, recipe, sequential, refining, sentences))
        own = ways(sequential.eval(), refining)
        for split in SPLITS:
            examples = list(generate(split, sentences, SEED))
            for name, decode in own.items():
                if not any((row["split"], row["way"]) == (split, name) for row in results["rows"]):
                    pieces = theirs if name.startswith("sequential") else tokenizer
                    results["rows"].append({"split": split, **quality(name, decode, pieces, examples)})
                    write(path, results)
                    print({key: value for key, value in results["rows"][-1].items() if key != "by_length"}, flush=True)
        examples = list(generate(SPLITS[0], sentences, SEED))
        if "speed" not in results:
            timed = {name: theirs if name.startswith("sequential") else tokenizer for name in own}
            rows = {
                name: [pieces.encode(example.source) for example in examples[:TIMED]] for name, pieces in timed.items()
            }
            results["speed"] = speeds(own, rows, ROUNDS)
            results["examples"] = shown(refining, tokenizer, examples, 4)
            write(path, results)
    return results


def _head(folder: Path, recipe: Recipe, sequential: Model, refining: Model, sentences: int) -> dict:
    """What the rows depend on; rows made under another head are not kept."""
    last = Checkpoint.load(checkpoints(folder)[-1])
    return {
        "command": COMMAND,
        "versions": versions(),
        "note": NOTE,
        "recipe": said(recipe),
        "sequential": SEQUENTIAL,
        "parameters": {"sequential": parameters(sequential), "refining": parameters(refining)},
        "training": {"seconds": round(last.state["seconds"], 1), "hardware": last.state["hardware"]},
        "sentences": sentences,
        "seed": SEED,
    }


def _report(entry: dict) -> None:
    if entry["step"] % 100 == 0:
        print(f"step {entry['step']}: loss {entry['loss']:.3f}", flush=True)
