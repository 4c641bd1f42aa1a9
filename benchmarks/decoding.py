"""Decoding speed with the same weights: ours, `transformers` generate, CTranslate2 float32; beam 4, at batch 64 and 1.

All read the same ids of Multi30k's test_2016_flickr, sorted by length and cut into the same batches, and take turns.
Each has a process of its own with the same number of threads: in one process they would disturb each other, for each
brings a pool of threads along whose members keep a core busy while they wait. Ours takes a batch on each core, as the
translator does. CTranslate2 is shown with all threads on one batch, which is its default, and with one thread on each,
which is the faster way here: batches side by side, or single sentences one after the other. A sentence is done by the
same rule: four translations ended. Length penalties differ a little, ((5 + n) / 6)^0.6 here and n^0.6 there, so a few
outputs differ; their share is told.

Run: python benchmarks/decoding.py [--model FOLDER] [--data FOLDER] [--threads N]     (benchmarks/requirements.txt)
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch
from peers import in_turns, present, ratios, to_ctranslate2, to_transformers

from tinytransformer import Transformer
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import multi30k
from tinytransformer.text.tokenizer import END
from tinytransformer.training.checkpoints import find_model, load_model
from tinytransformer.translation.beam_search import beam_search
from tinytransformer.translation.greedy import EXTRA
from tinytransformer.translation.parallel import side_by_side
from tinytransformer.translation.translator import AT_ONCE

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "decoding.json"
BEAM, ALPHA = 4, 0.6
OURS = "tinytransformer"
SIDE_BY_SIDE, ONE_THREAD = "ctranslate2, batches side by side", "ctranslate2, one thread"
PEERS = {"transformers": "transformers", "ctranslate2": "ctranslate2"}
Ids = list[list[int]]
System = Callable[[list[Ids]], Ids]  # batches of source ids, each with its end token, to the ids of the translations


def ours(model: Transformer) -> System:
    def search(batch: Ids) -> list:
        return beam_search(model, pad(batch), BEAM, ALPHA)

    def translate(batches: list[Ids]) -> Ids:
        # Single sentences are waited for one by one; of many, the translator takes a batch on each core.
        found = side_by_side(model, search, batches) if len(batches[0]) > 1 else list(map(search, batches))
        return [list(hypotheses[0].ids) for batch in found for hypotheses in batch]

    return translate


def transformers_system(model: Transformer) -> System:
    theirs = to_transformers(model)
    settings = {"num_beams": BEAM, "length_penalty": ALPHA, "early_stopping": True, "do_sample": False}

    @torch.inference_mode()
    def translate(batches: list[Ids]) -> Ids:
        outputs = []
        for batch in batches:
            source = pad(batch)
            mask = (source != model.config.pad_id).long()
            longest = min(source.size(1) - 1 + EXTRA, model.config.max_length - 1)
            found = theirs.generate(input_ids=source, attention_mask=mask, max_new_tokens=longest, **settings)
            outputs += [ids[: ids.index(END)] if END in ids else ids for ids in found[:, 1:].tolist()]
        return outputs

    return translate


def ctranslate2_system(model: Transformer, inter: int, intra: int) -> System:
    """``inter`` batches at a time with ``intra`` threads each."""
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        place = str(to_ctranslate2(model, Path(folder)))
        theirs = ctranslate2.Translator(place, "cpu", compute_type="float32", inter_threads=inter, intra_threads=intra)

    def translate(batches: list[Ids]) -> Ids:
        # One call with all sentences: the library sorts and cuts them itself, into batches of the same size.
        size = len(batches[0])
        tokens = [[str(number) for number in ids] for batch in batches for ids in batch]
        longest = min(max(map(len, tokens)) - 1 + EXTRA, model.config.max_length - 1)
        found = theirs.translate_batch(
            tokens, beam_size=BEAM, length_penalty=ALPHA, max_batch_size=size, max_decoding_length=longest
        )
        return [[int(token) for token in result.hypotheses[0]] for result in found]

    return translate


# Each from the model and the number of threads.
SYSTEMS: dict[str, Callable[[Transformer, int], System]] = {
    OURS: lambda model, threads: ours(model),
    "transformers": lambda model, threads: transformers_system(model),
    "ctranslate2": lambda model, threads: ctranslate2_system(model, 1, threads),
    SIDE_BY_SIDE: lambda model, threads: ctranslate2_system(model, threads, 1),
    ONE_THREAD: lambda model, threads: ctranslate2_system(model, 1, 1),
}
AT_SIZE = {
    AT_ONCE: (OURS, "transformers", "ctranslate2", SIDE_BY_SIDE),
    1: (OURS, "transformers", "ctranslate2", ONE_THREAD),
}


def serve(connection: Connection, name: str, model: str, threads: int) -> None:
    """The process of one system: batches come in, translations go out, until there is nothing."""
    torch.set_num_threads(threads)
    system = SYSTEMS[name](load_model(find_model(model))[0], threads)
    connection.send("ready")
    while batches := connection.recv():
        connection.send(system(batches))


@contextmanager
def processes(names: list[str], model: str, threads: int) -> Iterator[dict[str, System]]:
    """The systems of these names, each in a process of its own, which waits without computing while others do."""
    context = multiprocessing.get_context("spawn")
    connections = {}
    for name in names:
        here, there = context.Pipe()
        context.Process(target=serve, args=(there, name, model, threads), daemon=True).start()
        there.close()  # so that the end of a process is the end of its answers
        here.recv()
        connections[name] = here

    def asked(connection: Connection) -> System:
        def translate(batches: list[Ids]) -> Ids:
            connection.send(batches)
            return connection.recv()

        return translate

    yield {name: asked(connection) for name, connection in connections.items()}
    for connection in connections.values():
        connection.send(None)


def measure(systems: dict[str, System], sentences: Ids, size: int, rounds: int) -> dict:
    """Sentences a second of each system, our ratios, and how many translations are the same as ours."""
    batches = [sentences[first : first + size] for first in range(0, len(sentences), size)]
    outputs: dict[str, Ids] = {}

    def run(name: str) -> Callable[[], None]:
        def turn() -> None:
            outputs[name] = systems[name](batches)

        return turn

    seconds = in_turns({name: run(name) for name in systems}, rounds)
    same = {
        name: sum(a == b for a, b in zip(outputs[OURS], found, strict=True)) / len(sentences)
        for name, found in outputs.items()
        if name != OURS
    }
    return {
        "batch": size,
        "sentences": len(sentences),
        "sentences_per_second": {name: len(sentences) / median(values) for name, values in seconds.items()},
        "ours_is_faster_by": ratios(seconds, OURS),
        "same_translations": same,
        "seconds": seconds,
    }


def table_rows(row: dict) -> list[str]:
    """The lines of the README's table."""
    lines = []
    for name, speed in row["sentences_per_second"].items():
        factor = f"{row['ours_is_faster_by'][name]:.2f} ×" if name != OURS else ""
        same = f"{row['same_translations'][name]:.1%}" if name != OURS else ""
        lines.append(f"| {row['batch']} | {name} | {speed:.1f} | {factor} | {same} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="multi30k-en-de", help="model folder, or the name of a shipped model")
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="threads of every system; default: all cores"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="at batch 64")
    parser.add_argument("--single", type=int, default=50, help="sentences at batch 1")
    options = parser.parse_args()
    _, tokenizer = load_model(find_model(options.model))
    source = multi30k("test_2016_flickr", "en", "de", options.data).source
    found = present(PEERS)
    rows = []
    print("| batch | system | sentences a second | ours is faster by | same translation as ours |")
    print("|--:|---|--:|--:|--:|")
    for size, count in ((AT_ONCE, options.sentences), (1, options.single)):
        step = max(1, len(source) // count)  # spread over the whole set
        encoded = [[*tokenizer.encode(text), END] for text in source[::step][:count]]
        ordered = sorted(encoded, key=len, reverse=True)
        names = [name for name in AT_SIZE[size] if name == OURS or name.split(",")[0] in found]
        with processes(names, options.model, options.threads) as systems:
            rows.append(measure(systems, ordered, size, options.rounds))
        print("\n".join(table_rows(rows[-1])), flush=True)
    about = {"command": "python benchmarks/decoding.py", "threads": options.threads, "rounds": options.rounds}
    about |= {"beam": BEAM, "alpha": ALPHA, "torch": torch.__version__.split("+")[0]}
    about |= {name: importlib.metadata.version(name) for name in sorted(found)}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
