"""What beam width and length penalty do to the Multi30k model; writes data/results/search.json for lesson 08.

One search per width is enough: the penalty only ranks what has ended. Validation sentences, since this is tuning:
models.py takes its second way to decode from here.

Run: python benchmarks/search.py --data FOLDER    (some minutes)
"""

import argparse
import json
from pathlib import Path

from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import multi30k
from tinytransformer.text.tokenizer import END
from tinytransformer.training.checkpoints import find_model
from tinytransformer.translation.beam_search import beam_search, length_penalty
from tinytransformer.translation.evaluation import score
from tinytransformer.translation.translator import Translator

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "search.json"
MODEL, SPLIT = "multi30k-en-de", "val"
WIDTHS, ALPHAS = (1, 2, 4, 5, 8, 16), (0.0, 0.6, 1.0, 2.0, 3.0)
AT_ONCE = 64


def searched(translator: Translator, texts: list[str], beam: int) -> list:
    """For each text all translations that ended."""
    ids = [[*translator.tokenizer.encode(text), END] for text in texts]
    found = []
    for first in range(0, len(ids), AT_ONCE):
        found += beam_search(translator.model, pad(ids[first : first + AT_ONCE]), beam)
    return found


def row(translator: Translator, found: list, references: list[str], beam: int, alpha: float) -> dict:
    def ranked_by(hypothesis) -> float:
        return hypothesis.log_probability / length_penalty(len(hypothesis.ids) + 1, alpha)

    best = [max(hypotheses, key=ranked_by) for hypotheses in found]
    texts = [translator.tokenizer.decode(one.ids) for one in best]
    scores = score(texts, references)
    return {
        "beam": beam,
        "alpha": alpha,
        "bleu": round(scores.bleu, 2),
        "words_per_reference_word": round(sum(map(_words, texts)) / sum(map(_words, references)), 4),
        "log_probability": round(sum(one.log_probability for one in best) / len(best), 3),
        "signature": scores.signature,
    }


def _words(text: str) -> int:
    return len(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    corpus = multi30k(SPLIT, "en", "de", parser.parse_args().data)
    translator = Translator.load(MODEL, device="cpu")
    rows = []
    for beam in WIDTHS:
        found = searched(translator, list(corpus.source), beam)
        for alpha in ALPHAS if beam > 1 else (0.0,):
            rows.append(row(translator, found, list(corpus.target), beam, alpha))
            print(rows[-1], flush=True)
    weights = json.loads((find_model(MODEL) / "checksums.json").read_text())["model.safetensors"]
    result = {
        "command": "python benchmarks/search.py",
        "model": MODEL,
        "weights": weights,  # the model that was measured: a retrained one has other weights
        "text": f"Multi30k {SPLIT} en–de",
        "sentences": len(corpus),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
