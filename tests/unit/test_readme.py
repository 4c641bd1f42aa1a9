"""The README tells the truth: its code runs, its links lead somewhere, its numbers are those of the results."""

import importlib.util
import json
import re
import statistics
from pathlib import Path

import pytest

from tinytransformer.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_code_runs_and_its_shapes_are_true(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    if "explorer" in names:
        assert names["explorer"].groups[0].layers[-1].weights.ndim == 3
        assert ("save_html" in code) == (tmp_path / "attention.html").exists()
        return
    if "translator" in names:
        assert names["translation"].records.find("cross", layer=3).weights.dim() == 4
        return
    shape = re.search(r"\.weights\.shape\s+# (\(.*?\))", code).group(1)
    assert str(tuple(names["records"].find("cross", layer=1).weights.shape)) == shape
    assert tuple(names["logits"].shape) == (2, 7, 1000)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_make_targets_and_test_files_named_in_the_text_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    texts = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", texts):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for file in re.findall(r"\b((?:tests|benchmarks|notebooks|tools)/[\w/.]*\w)", texts):
        assert (ROOT / file).exists(), file


def test_the_contrastive_pair_is_what_the_command_prints(capsys):
    command, printed = re.search(
        r"-m tinytransformer (corpus [^\n]+)\n```\n\n```text\n(.*?)\n```", README, re.DOTALL
    ).groups()
    main(command.split())
    assert capsys.readouterr().out.strip() == printed


def benchmark(name: str):
    """A benchmark as a module, for the function that writes its table."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(name: str) -> dict:
    return json.loads((ROOT / "data" / "results" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["attention", "models"])
def test_the_tables_are_those_of_the_results_files(name):
    for row in results(name)["rows"]:
        assert benchmark(name).table_row(row) in README


def test_the_second_way_to_decode_is_the_best_on_validation():
    ways = {(row["beam"], row["alpha"]) for row in results("models")["rows"] if row["model"] == "multi30k-en-de"}
    _, beam, _, alpha = benchmark("models").tuned("multi30k-en-de")
    assert ways == {(4, 0.6), (int(beam), float(alpha))}


def test_the_score_by_moses_rules_and_the_size_are_those_of_the_results():
    found, text = results("models"), " ".join(README.split())
    plain, tuned = (row for row in found["rows"] if row["text"].startswith("Multi30k test_2016_flickr"))
    way = f"α = {tuned['alpha']:g}"
    assert f"ours has {plain['bleu_lowercase_moses']:.2f}, and {tuned['bleu_lowercase_moses']:.2f} with {way}" in text
    assert f"has {found['parameters']['multi30k-en-de'] / 1e6:.2f} M parameters" in text


@pytest.mark.parametrize("name", ["decoding", "training", "exchange"])
def test_the_tables_of_speeds_too(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    found = results("training_speed" if name == "training" else name)
    for row in found["rows"]:
        for line in benchmark(name).table_rows(row):
            assert line in README
    if name == "training":
        assert f"at most {found['peak_megabytes']:,.0f} MB" in README


def test_the_microworld_is_learned_in_five_minutes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for run in results("budget")["runs"]:
        for row in run["curve"]:
            assert benchmark("budget").table_row(row) in README
        assert run["curve"][-1]["minutes"] <= 5
        shipped = {row["text"]: row for row in results("models")["rows"] if row["model"] == "microworld-en-de"}
        assert shipped["microworld test_pronoun"]["pronoun_accuracy"] == run["curve"][-1]["pronouns"], "the same model"


def test_fused_attention_needs_a_fraction_of_the_memory():
    last = results("attention")["rows"][-1]
    assert last["length"] == 4096
    assert last["peak_megabytes"]["fused"] <= last["peak_megabytes"]["explicit"] / 5


def test_every_lesson_stands_on_the_map_with_a_picture():
    pictures = {path.stem for path in (ROOT / "docs" / "figures" / "lessons").glob("*.png")}
    lessons = {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    rows = re.findall(r'<img src="docs/figures/lessons/(\w+)\.png".*\(notebooks/(\w+)\.ipynb\)', README)
    assert sorted(rows) == sorted((name, name) for name in lessons)
    assert pictures == lessons


@pytest.mark.parametrize("name", ["recipes", "diversification"])
def test_the_tables_of_recipes_are_those_of_the_results(name):
    rows, write = results(name)["rows"], benchmark("recipes").table_row
    for name, row in rows.items():
        assert write(name, row, rows["base"]["mean"]) in README


def test_what_the_tables_found_is_what_their_files_say():
    def mean(row: dict) -> float:
        return statistics.mean(run["bleu"][-1] for run in row["runs"])

    lengths, claim = results("lengths"), {row["kind"]: row for row in results("table1")["claim"]}
    plain, _, additive = lengths["rows"]
    gap, over = additive["gap"][-1], lengths["lengths"][-1][0] - 1
    attention, recurrent = claim["self-attention"], claim["recurrent"]
    cheaper, dearer = recurrent["paper"] / attention["paper"], attention["all"] / recurrent["all"]
    base = next(row for row in results("costs")["rows"] if row["model"] == "base")
    parsed = next(row for row in results("table4")["rows"] if row["split"] == "test" and row["beam"] == 21)
    rows = {row["name"]: statistics.mean(run["bleu"] for run in row["runs"]) for row in results("table3")["rows"]}
    own = {
        row["name"]: {
            pairs: statistics.mean(run["equal_updates"]["bleu"] for run in runs) for pairs, runs in row["runs"].items()
        }
        for row in results("table2")["rows"]
    }
    lstm, attending, convolutional, transformer = own.values()
    gap_to_base = {name: bleu - rows["base"] for name, bleu in rows.items()}
    for found in (
        f"100,000 pairs: BLEU {lstm['100000']:.1f} for an LSTM, {attending['100000']:.1f} with attention",
        f"{convolutional['100000']:.1f} convolutional, {transformer['100000']:.1f} Transformer; on 1,000 pairs",
        f"LSTM with attention, too ({transformer['1000']:.1f} to {attending['1000']:.1f})",
        f"of the base's BLEU of {rows['base']:.1f}, one head loses {-gap_to_base['h = 1']:.1f}",
        f"and sixteen {-gap_to_base['h = 16']:.1f}; a doubled d_model gains {gap_to_base['d_model = 128']:.1f}",
        f"learning rate ({rows['N = 4']:.1f}) and gain with pre-norm ({rows['N = 4, pre-norm']:.1f})",
        f"{len(rows)} rows with three seeds each",
        f"over {over} words: BLEU {mean(plain):.1f} without attention, {mean(additive):.1f} with additive attention",
        f"the gap of {gap['bleu']:.1f} lies between {gap['low']:.1f} and {gap['high']:.1f} (95 %)",
        f"at n = {attention['n']} and d = {attention['d']} self-attention is {cheaper:.0f} × cheaper",
        f"{dearer:.1f} × dearer with its projections counted",
        f"base: {base['operations_from_hours']:.1e} operations by hours",
        f"{base['operations_from_model']:.1e} by arithmetic, {base['model_share_of_hours']:.0%} of the former",
        f"labelled F1 {parsed['f1']:.2f} on {parsed['sentences']:,} test sentences",
        f"{parsed['malformed']} outputs repaired",
    ):
        assert found in README, found


def test_what_came_after_the_paper_is_what_its_files_say():
    families, refinement = results("families"), results("refinement")
    ways = {row["way"]: row for row in results("practice")["training"]}
    bleu = {row["way"]: row["bleu"] for row in refinement["rows"] if row["split"] == "test"}
    speed = {row["way"]: row["sentences_per_second"] for row in refinement["speed"] if row["together"] == 1}
    forward = [row for row in results("long")["times"] if (row["n"], row["pass"]) == (4096, "forward")]
    ms = {row["way"]: 1000 * statistics.median(row["seconds"]) for row in forward}

    def times(way: str) -> float:
        return statistics.median(ways[way]["seconds"]) / statistics.median(ways["plain"]["seconds"])

    for found in (
        f"the reader guesses {families['reader']['guessed_percent']:.0f} % and the writer",
        f"left side alone, {families['writer']['guessed_percent']:.0f} %; always the most frequent one: "
        f"{families['reader']['most_frequent_percent']:.0f} %",
        f"a window of 64 takes {ms['window']:.0f} ms where fused attention takes {ms['fused']:.0f} and a mask "
        f"{ms['window, by a mask']:.0f};",
        f"bfloat16 {times('bfloat16'):.2f} × the time; recomputing keeps "
        f"{100 * ways['recomputed']['kept_bytes'] / ways['plain']['kept_bytes']:.0f} % for {times('recomputed'):.2f} ×",
        f"compiling {times('compiled'):.2f} ×",
        f"one pass: BLEU {bleu['refining, 1']:.1f} at {speed['refining, 1'] / speed['sequential, greedy']:.1f} × the",
        f"ten: {bleu['refining, 10']:.1f}; sequential: {bleu['sequential, greedy']:.1f}",
    ):
        assert found in README, found
    assert ways["recomputed"]["largest_gradient_difference"] == 0
    assert all(row["measured"] == row["layers"] * row["radius"] for row in results("long")["reach"])
