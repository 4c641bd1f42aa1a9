"""Our models in other engines: the same translations token for token? How large, how fast, and what do 8 bits cost?

Each shipped Transformer is exported to every format, and all engines translate the same batches of 64 with beam 4 and
α = 0.6, in turns, with one thread each. ONNX runs under our own search. The other two have their own, which divides by
length^α; ours is given that penalty to be compared with them, and CTranslate2 the right to an empty translation, which
ours has. Where a translation differs, both are scored by our model: a tie lies within rounding.

Run: python benchmarks/exchange.py [--data FOLDER] [--rounds N] [--note TEXT]    (some minutes)
"""

import argparse
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from peers import in_turns

from tinytransformer import Translator
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import CorpusError, ParallelCorpus, microworld, multi30k
from tinytransformer.training.checkpoints import find_model
from tinytransformer.translation.beam_search import beam_search, length_penalty
from tinytransformer.translation.evaluation import score
from tinytransformer.translation.exchange.ctranslate import export_ctranslate2
from tinytransformer.translation.exchange.marian import export_marian
from tinytransformer.translation.exchange.onnx_export import GRAPHS, export_onnx
from tinytransformer.translation.exchange.onnx_model import load_onnx
from tinytransformer.translation.translator import AT_ONCE

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "exchange.json"
BEAM, ALPHA, TIE = 4, 0.6, 1e-4
OURS, ONNX, INT8, MARIAN, CTRANSLATE2 = (
    "tinytransformer",
    "onnxruntime",
    "onnxruntime int8",
    "transformers",
    "ctranslate2",
)
FILES = {ONNX: GRAPHS, INT8: GRAPHS, MARIAN: ("model.safetensors",), CTRANSLATE2: ("model.bin",)}
PACKAGES = ("torch", "onnx", "onnxruntime", "transformers", "ctranslate2")
Ids = list[list[int]]
Penalty = Callable[[int, float], float]
System = Callable[[list[Ids]], Ids]  # batches of source ids, each with its end token, to the ids of the translations


def power(length: int, alpha: float) -> float:
    """The length penalty of most libraries."""
    return length**alpha


PENALTIES = {ONNX: length_penalty, INT8: length_penalty, MARIAN: power, CTRANSLATE2: power}


def our_search(model, penalty: Penalty = length_penalty) -> System:
    """Our beam search, with our model or with one that onnxruntime runs."""

    def translate(batches: list[Ids]) -> Ids:
        found = (beam_search(model, pad(batch), BEAM, ALPHA, penalty=penalty) for batch in batches)
        return [list(hypotheses[0].ids) for batch in found for hypotheses in batch]

    return translate


def transformers_search(folder: Path, end: int) -> System:
    """Hugging Face's ``generate`` with the settings that the folder brings along."""
    import transformers

    transformers.logging.disable_progress_bar()
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    @torch.inference_mode()
    def translate(batches: list[Ids]) -> Ids:
        rows = []
        for source in map(pad, batches):
            rows += theirs.generate(input_ids=source, attention_mask=(source != 0).long()).tolist()
        return [row[1 : row.index(end)] if end in row else row[1:] for row in rows]

    return translate


def ctranslate2_search(folder: Path, pieces: list[str], longest: int) -> System:
    import ctranslate2

    theirs = ctranslate2.Translator(str(folder), "cpu", compute_type="float32", inter_threads=1, intra_threads=1)
    ids = {piece: number for number, piece in enumerate(pieces)}
    settings = {"beam_size": BEAM, "length_penalty": ALPHA, "min_decoding_length": 0, "max_decoding_length": longest}

    def translate(batches: list[Ids]) -> Ids:
        tokens = [[pieces[number] for number in sentence] for batch in batches for sentence in batch]
        found = theirs.translate_batch(tokens, max_batch_size=AT_ONCE, **settings)
        return [[ids[piece] for piece in result.hypotheses[0]] for result in found]

    return translate


def exported(translator: Translator, folder: Path) -> dict[str, System]:
    """The model in every format, and what runs it."""
    model, tokenizer = translator.model, translator.tokenizer
    export_onnx(model, tokenizer, folder / ONNX)
    export_onnx(model, tokenizer, folder / INT8, int8=True)
    export_marian(model, tokenizer, folder / MARIAN)
    export_ctranslate2(model, tokenizer, folder / CTRANSLATE2)
    pieces = tokenizer.pieces(range(len(tokenizer)))
    return {
        OURS: our_search(model),
        ONNX: our_search(load_onnx(folder / ONNX)[0]),
        INT8: our_search(load_onnx(folder / INT8)[0]),
        MARIAN: transformers_search(folder / MARIAN, model.config.end_id),
        CTRANSLATE2: ctranslate2_search(folder / CTRANSLATE2, pieces, model.config.max_length - 1),
    }


def compared(translator: Translator, sources: Ids, ours: Ids, theirs: Ids, penalty: Penalty) -> dict:
    """How many translations are the same, and by how much our model prefers ours where they are not."""
    preferences = []
    for source, one, other in zip(sources, ours, theirs, strict=True):
        if one != other:
            totals = (translator.log_probability(source[:-1], ids) for ids in (one, other))
            scores = [total / penalty(len(ids) + 1, ALPHA) for total, ids in zip(totals, (one, other), strict=True)]
            preferences.append(scores[0] - scores[1])
    return {
        "identical": len(ours) - len(preferences),
        "differing": len(preferences),
        "of_these": {
            f"ties within {TIE}": sum(abs(value) <= TIE for value in preferences),
            "ours is better by our model": sum(value > TIE for value in preferences),
            "theirs is better by our model": sum(value < -TIE for value in preferences),
        },
        "largest_difference_of_scores": max(map(abs, preferences), default=0.0),
    }


@dataclass(frozen=True)
class Run:
    """One model and one text: what was translated, by whom into what, and how fast."""

    translator: Translator
    sources: Ids  # sorted by length
    references: list[str]
    outputs: dict[str, Ids]
    seconds: dict[str, list[float]]

    def speed(self, name: str) -> float:
        return len(self.sources) / median(self.seconds[name])

    def bleu(self, ids: Ids) -> float:
        return score([self.translator.tokenizer.decode(one) for one in ids], self.references).bleu

    @property
    def float32(self) -> int:
        """The bytes of all parameters, the tied matrix once."""
        return sum(parameter.numel() * 4 for parameter in self.translator.model.parameters())


def measure(name: str, corpus: ParallelCorpus, rounds: int, folder: Path) -> dict:
    """All engines on one text."""
    translator = Translator.load(name, "cpu")
    encoded = [[*translator.tokenizer.encode(text), translator.model.config.end_id] for text in corpus.source]
    order = sorted(range(len(encoded)), key=lambda number: -len(encoded[number]))
    sources, references = [encoded[number] for number in order], [corpus.target[number] for number in order]
    batches = [sources[first : first + AT_ONCE] for first in range(0, len(sources), AT_ONCE)]
    outputs: dict[str, Ids] = {}

    def turn(name: str, system: System) -> Callable[[], None]:
        return lambda: outputs.__setitem__(name, system(batches))

    systems = {name: turn(name, system) for name, system in exported(translator, folder).items()}
    run = Run(translator, sources, references, outputs, in_turns(systems, rounds))
    expected = {length_penalty: outputs[OURS], power: our_search(translator.model, power)(batches)}
    return {
        "model": name,
        "weights": json.loads((find_model(name) / "checksums.json").read_text())["model.safetensors"],
        "text": corpus.name,
        "bytes_in_float32": run.float32,
        "sentences_per_second": run.speed(OURS),
        "int8_is_faster_than_float32_onnx_by": run.speed(INT8) / run.speed(ONNX),
        "engines": [engine_row(run, engine, expected[PENALTIES[engine]], folder) for engine in FILES],
        "seconds": run.seconds,
    }


def engine_row(run: Run, engine: str, expected: Ids, folder: Path) -> dict:
    """What one engine made of a model, beside what we make of it with the same penalty."""
    penalty, found = PENALTIES[engine], run.outputs[engine]
    size = sum((folder / engine / name).stat().st_size for name in FILES[engine])
    return {
        "engine": engine,
        "length_penalty": "length^α" if penalty is power else "((5 + length) / 6)^α",
        "sentences": len(found),
        **compared(run.translator, run.sources, expected, found, penalty),
        "bleu_ours": run.bleu(expected),
        "bleu": run.bleu(found),
        "sentences_per_second": run.speed(engine),
        "faster_than_ours_by": run.speed(engine) / run.speed(OURS),
        "bytes_of_weights": size,
        "smaller_than_float32_by": run.float32 / size,
    }


def table_rows(row: Mapping) -> list[str]:
    """The lines of the README's table."""
    return [
        f"| {row['model']} | {one['engine']} | {one['identical']} of {one['sentences']} | {one['bleu']:.2f} "
        f"({one['bleu'] - one['bleu_ours']:+.2f}) | {one['faster_than_ours_by']:.2f} × | "
        f"{one['bytes_of_weights'] / 1e6:.2f} MB | {one['smaller_than_float32_by']:.2f} × |"
        for one in row["engines"]
    ]


def texts(data: str | None) -> dict[str, ParallelCorpus]:
    """Which model translates what. Multi30k is left out where it is not."""
    found = {"microworld-en-de": microworld("test", 200)}
    try:
        found["multi30k-en-de"] = multi30k("test_2016_flickr", "en", "de", data)
    except CorpusError as error:
        print(f"left out: multi30k-en-de ({error})", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each engine translates; default: 3")
    parser.add_argument("--note", default="", help="what a reader of the numbers should know about the machine")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print("| model | engine | same translation as ours | BLEU | faster than ours by | weights | smaller by |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, corpus in texts(options.data).items():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, corpus, options.rounds, Path(folder)))
        print("\n".join(table_rows(rows[-1])), flush=True)
    about = {"command": "python benchmarks/exchange.py", "note": options.note, "threads": 1, "rounds": options.rounds}
    about |= {"batch": AT_ONCE, "beam": BEAM, "alpha": ALPHA}
    about |= {name: importlib.metadata.version(name).split("+")[0] for name in PACKAGES}
    if len(rows) < 2:
        print(f"{RESULTS.name} is left as it is: a part does not replace the whole", file=sys.stderr)
        return
    RESULTS.write_text(json.dumps({**about, "rows": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
