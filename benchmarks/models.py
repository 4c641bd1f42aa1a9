"""Score the shipped models on every test set there is; writes data/results/models.json.

Papers on Multi30k lower-case and tokenise with Moses' scripts. With sacremoses (benchmarks/requirements.txt) that score
is printed beside sacreBLEU's lower-cased one, to see how far the two can be compared.

Run: python benchmarks/models.py --data FOLDER [--add-to-cards]    (a minute or two)
"""

import argparse
import contextlib
import io
import itertools
import json
from pathlib import Path

from sacrebleu.metrics import BLEU

from tinytransformer.cli import main as command
from tinytransformer.text.corpus import ParallelCorpus, multi30k
from tinytransformer.training.checkpoints import find_model, shipped_models
from tinytransformer.translation.translator import Translator

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "models.json"
SETS = {
    "microworld-en-de": [("microworld", split) for split in ("test", "test_novel", "test_pronoun", "test_long")],
    "microworld-lstm": [("microworld", "test")],
    "microworld-lstm-additive": [("microworld", "test")],
    "multi30k-en-de": [("multi30k", split) for split in ("val", "test_2016_flickr")],
}
# The beams that papers on Multi30k use; the one of them, and the α, that benchmarks/search.py found best on validation.
BEAMS = {"multi30k-en-de": (4, 5)}


def tuned(model: str) -> list[str]:
    """The options for a second way to decode, chosen on the validation split with these very weights."""
    found = json.loads((RESULTS.parent / "search.json").read_text(encoding="utf-8"))
    weights = json.loads((find_model(model) / "checksums.json").read_text(encoding="utf-8"))["model.safetensors"]
    if found["weights"] != weights:
        raise SystemExit(
            f"data/results/search.json was measured with other weights of {model}: run benchmarks/search.py first"
        )
    best = max((row for row in found["rows"] if row["beam"] in BEAMS[model]), key=lambda row: row["bleu"])
    return ["--beam", str(best["beam"]), "--alpha", f"{best['alpha']:g}"]


def evaluated(*arguments: str) -> dict:
    """What the evaluate command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        command(["evaluate", "--json", *arguments])
    return json.loads(printed.getvalue())


def table_row(row: dict) -> str:
    """One line of the README's table."""
    pronouns = "" if row.get("pronoun_accuracy") is None else f"{row['pronoun_accuracy']:.1%}"
    aligned = "" if row.get("alignment_error") is None else f"{row['alignment_error']:.3f}"
    return (
        f"| `{row['model']}` | {row['text']} | {row['sentences']:,} | **{row['bleu']:.2f}** "
        f"| {row['bleu_lowercase_tokenised']:.2f} | {row['chrf']:.2f} | {pronouns} | {aligned} |"
    )


def moses_bleu(model: str, corpus: ParallelCorpus, beam: int, alpha: float) -> float | None:
    """BLEU on text that Moses' tokenizer and lower-casing have prepared; None without sacremoses."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        return None
    tokenizer, normalizer = MosesTokenizer("de"), MosesPunctNormalizer("de")

    def prepared(text: str) -> str:
        return tokenizer.tokenize(normalizer.normalize(text), return_str=True).lower()

    translations = [one.text for one in Translator.load(model)(corpus.source, beam, alpha, split=False)]
    sides = [[prepared(text) for text in side] for side in (translations, corpus.target)]
    return BLEU(tokenize="none", force=True).corpus_score(sides[0], [sides[1]]).score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--add-to-cards", action="store_true", help="also write the scores into the models' cards")
    options = parser.parse_args()
    more = ["--data", options.data] if options.data else []
    more += ["--add-to-card"] if options.add_to_cards else []
    rows = []
    for model in shipped_models():
        ways = [[], tuned(model)] if model in BEAMS else [[]]
        for way, (corpus, split) in itertools.product(ways, SETS[model]):
            row = evaluated("--model", model, "--corpus", corpus, "--split", split, *way, *more)
            print(table_row(row), flush=True)
            if corpus == "multi30k":
                text = multi30k(split, "en", "de", options.data)
                row["bleu_lowercase_moses"] = moses_bleu(model, text, row["beam"], row["alpha"])
                print(f"lower-cased, tokenised by Moses: {row['bleu_lowercase_moses']}", flush=True)
            rows.append(row)
    sizes = {name: sum(p.numel() for p in Translator.load(name).model.parameters()) for name in shipped_models()}
    found = {"command": "python benchmarks/models.py", "parameters": sizes, "rows": rows}
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
