"""The page of results: tables from data/results/*.json, each with the command that measures it again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from bookmaking import results_after as after
from bookmaking.lessons import ROOT
from bookmaking.tables import folded, number, table
from tinytransformer.experiments.paper import TABLE2

RESULTS = ROOT / "data" / "results"
FRONT = """\
# Results

What was measured, with the command that measures it again. The numbers come from the files in `data/results/`,
which those commands write; `.venv/bin/python` stands where a command says `python`. BLEU is sacreBLEU's
default, cased and detokenised, with its signature. Times are those of two CPU cores without a GPU: compare them
inside a table, not between machines.
"""


def _models(found: Mapping[str, Any]) -> str:
    rows = [
        (f"`{row['model']}`", row["text"], f"{row['sentences']:,}", f"**{row['bleu']:.2f}**",
         number(row["bleu_lowercase_tokenised"]), number(row["chrf"]), number(row["perplexity"]),
         f"{row['pronoun_accuracy']:.1%}" if row.get("pronoun_accuracy") is not None else "",
         number(row.get("alignment_error"), 3))
        for row in found["rows"]
    ]  # fmt: skip
    head = [
        "model",
        "text",
        "sentences",
        "BLEU",
        "lower-cased",
        "chrF",
        "perplexity",
        "pronouns right",
        "alignment error",
    ]
    sizes = ", ".join(f"`{name}` {count:,}" for name, count in found["parameters"].items())
    return (
        "Beam 4 and α = 0.6 where nothing else is said. Scores on Multi30k need its test set, which is not part of the "
        f"course.\n\nParameters: {sizes}. Signature of BLEU: `{found['rows'][0]['signature']}`.\n\n"
        + table(head, rows, "llrrrrrrr")
    )


def _budget(found: Mapping[str, Any]) -> str:
    sets = ("test", "test_novel", "test_pronoun")
    rows = [(run["seed"], f"{row['steps']:,}", number(row["minutes"], 1), *(number(row[name]) for name in sets),
             f"{row['pronouns']:.1%}") for run in found["runs"] for row in run["curve"]]  # fmt: skip
    head = ["seed", "steps", "minutes", *(f"BLEU {name}" for name in sets), "pronouns right"]
    return f"The mean of the last {found['averaged']} checkpoints.\n\n" + table(head, rows, "rrrrrrr")


def _search(found: Mapping[str, Any]) -> str:
    rows = [(row["beam"], row["alpha"], number(row["bleu"]), number(row["words_per_reference_word"], 3),
             number(row["log_probability"])) for row in found["rows"]]  # fmt: skip
    head = ["beam", "α", "BLEU", "words per reference word", "mean log p"]
    return f"`{found['model']}` on {found['text']}, {found['sentences']:,} sentences.\n\n" + table(head, rows, "rrrrr")


def _lengths(found: Mapping[str, Any]) -> str:
    spans = [f"{first}–{last} words" if last < 99 else f"over {first - 1}" for first, last in found["lengths"]]
    rows = []
    for row in found["rows"]:
        means = [mean(run["bleu"][place] for run in row["runs"]) for place in range(len(spans))]
        rows.append((row["name"], len(row["runs"]), *(number(value, 1) for value in means)))
    return "BLEU by the length of the source, means over seeds.\n\n" + table(["model", "seeds", *spans], rows, "lrrrrr")


def _table1(found: Mapping[str, Any]) -> str:
    rows = [(row["kind"], row["n"], row["d"], f"{row['paper']:,.0f}", f"{row['all']:,.0f}") for row in found["claim"]]
    head = ["layer", "n", "d", "products by the table's terms", "all products"]
    return f"{found['note']}\n\n" + table(head, rows, "lrrrr")


def _costs(found: Mapping[str, Any]) -> str:
    columns = ("operations_printed", "operations_from_hours", "operations_from_model")
    rows = [
        (row["model"], *(f"{row[column]:.1e}" for column in columns), f"{row['model_share_of_hours']:.0%}")
        for row in found["rows"]
    ]
    head = ["model", "operations in the paper", "hours × GPUs × TFLOPS", "the model's arithmetic", "its share"]
    return table(head, rows, "lrrrr")


def _table2(found: Mapping[str, Any]) -> str:
    sizes = list(found["rows"][0]["runs"])
    head = ["architecture", "parameters", *(f"{int(size):,} pairs" for size in sizes)]
    rows = [(row["name"], f"{row['parameters']:,}",
             *(number(mean(run["equal_updates"]["bleu"] for run in row["runs"][size]), 1) for size in sizes))
            for row in found["rows"]]  # fmt: skip
    theirs = [(one.name, number(one.bleu_german, 2), number(one.bleu_french, 2)) for one in TABLE2]
    paper = folded("The paper's Table 2: BLEU on newstest2014", table(["system", "German", "French"], theirs, "lrr"))
    text = f"{found['note']}. BLEU after {found['updates']:,} updates, means over seeds."
    return f"{text}\n\n{table(head, rows, 'lrrrr')}\n{paper}"


def _table3(found: Mapping[str, Any]) -> str:
    rows = {row["name"]: row for row in found["rows"]}
    base = mean(run["bleu"] for run in rows["base"]["runs"])
    lines = []
    for name, row in rows.items():
        scores = [run["bleu"] for run in row["runs"]]
        lines.append((row["group"], name, " · ".join(number(score) for score in scores), number(mean(scores)),
                      f"{mean(scores) - base:+.2f}", number(mean(run["perplexity"] for run in row["runs"])),
                      f"{row['runs'][0]['parameters']:,}"))  # fmt: skip
    head = ["group", "row", "BLEU by seed", "mean", "to the base", "perplexity", "parameters"]
    return f"{found['task']}.\n\n" + table(head, lines, "llrrrrr")


def _table4(found: Mapping[str, Any]) -> str:
    rows = [(row["split"], row["beam"], number(row["precision"]), number(row["recall"]), f"**{row['f1']:.2f}**",
             number(row["exact"], 1), row["malformed"]) for row in found["rows"]]  # fmt: skip
    head = ["split", "beam", "precision", "recall", "labelled F1", "exact, %", "outputs repaired"]
    return f"{found['sentences']:,} sentences each; {found['parameters']:,} parameters.\n\n" + table(
        head, rows, "lrrrrrr"
    )


def _variants(found: Mapping[str, Any], about: str) -> str:
    base = found["rows"]["base"]["mean"]
    rows = [
        (name, " · ".join(map(number, row["bleu"])), number(row["mean"]), f"{row['mean'] - base:+.2f}")
        for name, row in found["rows"].items()
    ]
    return f"{about}, BLEU on the validation split.\n\n" + table(
        ["recipe", "BLEU by seed", "mean", "to the base"], rows, "lrrr"
    )


def _recipes(found: Mapping[str, Any]) -> str:
    return _variants(found, "A shortened Multi30k recipe and what each change does to it")


def _diversification(found: Mapping[str, Any]) -> str:
    return _variants(found, "Going on from one model, with and without what models made of its training text")


def _decoding(found: Mapping[str, Any]) -> str:
    rows = [(row["batch"], name, number(speed, 1), _times(row["ours_is_faster_by"].get(name)),
             f"{row['same_translations'][name]:.1%}" if name in row["same_translations"] else "")
            for row in found["rows"] for name, speed in row["sentences_per_second"].items()]  # fmt: skip
    head = ["batch", "library", "sentences a second", "ours is faster by", "same translation"]
    return f"Beam {found['beam']}, α = {found['alpha']}.\n\n" + table(head, rows, "rlrrr")


def _training(found: Mapping[str, Any]) -> str:
    rows = [(row["size"], name, number(speed), f"{row['target_tokens_per_second'][name]:,.0f}",
             _times(row["ours_is_faster_by"].get(name)))
            for row in found["rows"] for name, speed in row["steps_per_second"].items()]  # fmt: skip
    return table(["size", "library", "steps a second", "target tokens a second", "ours is faster by"], rows, "llrrr")


def _processes(found: Mapping[str, Any]) -> str:
    rows = [(name, f"{mean(speeds):,.0f}") for name, speeds in found["target_tokens_per_second"].items()]
    return table(["training with", "target tokens a second"], rows, "lr")


def _attention(found: Mapping[str, Any]) -> str:
    kinds = list(found["rows"][0]["milliseconds"])
    rows = [(row["length"], *(number(row["milliseconds"][kind], 1) for kind in kinds),
             *(number(row["peak_megabytes"][kind], 1) for kind in kinds)) for row in found["rows"]]  # fmt: skip
    head = ["n", *(f"{kind}, ms" for kind in kinds), *(f"{kind}, MB" for kind in kinds)]
    return f"Forward and backward, {found['heads']} heads of {found['head_size']}.\n\n" + table(
        head, rows, "r" * len(head)
    )


def _command(path: Path) -> str:
    return json.loads(path.read_text(encoding="utf-8")).get("command", "see the lesson that draws from it")


def _times(factor: float | None) -> str:
    return "" if factor is None else f"{factor:.2f} ×"


# In the order of the page: file, heading, the lesson that draws from it, and what writes the table.
SECTIONS: tuple[tuple[str, str, str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("models", "Shipped models: BLEU and more", "10", _models),
    ("budget", "The microworld, minute by minute", "07", _budget),
    ("search", "Beam search and the length penalty", "08", _search),
    ("lengths", "What attention repaired", "01", _lengths),
    ("table1", "Table 1: costs of layers at n = 50, d = 512", "11", _table1),
    ("costs", "Table 2: what training cost", "11", _costs),
    ("table2", "Table 2, our own: four architectures at equal effort", "11", _table2),
    ("table3", "Table 3, re-run small", "11", _table3),
    ("table4", "Table 4: parsing", "11", _table4),
    ("recipes", "Recipes for Multi30k", "10", _recipes),
    ("diversification", "More text out of the same text", "10", _diversification),
    ("decoding", "Speed of translating, beside other libraries", "08", _decoding),
    ("training_speed", "Speed of training, beside other libraries", "07", _training),
    ("processes", "Two processes or two threads", "07", _processes),
    ("attention", "Attention: time and memory", "02", _attention),
    ("families", "Decoder only and encoder only", "12", after.families),
    ("long", "Long sequences", "12", after.long),
    ("practice", "Training, as it is done in practice", "12", after.practice),
    ("refinement", "All positions at once, then refined", "12", after.refinement),
    ("exchange", "The same weights in other engines", "12", after.exchange),
)


def page(folder: Path = RESULTS) -> str:
    """All results that there are; one whose file is missing is left out."""
    lines = [FRONT]
    for name, heading, lesson, write in SECTIONS:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        lines += [f"## {heading}\n", write(found), f"Measured by `{found['command']}`; lesson {{lesson {lesson}}}.\n"]
    named = {name for name, *_ in SECTIONS}
    others = [path for path in sorted(folder.glob("*.json")) if path.stem not in named]
    if others:
        lines += ["## More measurements\n", "Lessons draw from these files, too:\n"]
        lines += [f"- `{path.name}`: `{_command(path)}`" for path in others]
    return "\n".join(lines)
