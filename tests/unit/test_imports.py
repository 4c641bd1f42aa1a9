"""Imports run downhill, and importing the package stays cheap."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tinytransformer

PACKAGE = Path(tinytransformer.__file__).parent
# The reading order of the package. A file imports only from places before it; a room's front door (its __init__, named
# after its files) only from what lies behind it.
ORDER = {
    "": ["resources"],
    "text.microworld": (
        "tables entries verb_table lexicon morphology phrases pronouns clauses english german rendering world sense "
        "choices rivals reasons sentences questions examples splits generator"
    ).split(),
    "text": ["download", "trees", "corpus", "tokenizer", "marian_tokenizer", "batching"],
    "model": (
        "masks cache positions products attention blockwise dropout layers config transformer families recording "
        "stepping early_attention cells recurrent convolutional baselines"
    ).split(),
    "training": [
        "loss",
        "schedule",
        "checkpoints",
        "devices",
        "interrupts",
        "loop",
        "recipe",
        "recipes",
        "preparing",
        "language_model",
        "processes",
    ],
    "translation": (
        "greedy beam_search refinement parallel translator evaluation bracketing diversification card"
    ).split(),
    "translation.exchange": (
        "formats marian marian_import ctranslate onnx_graph onnx_int8 onnx_export onnx_model"
    ).split(),
    "experiments": (
        "paper runs measuring layer_kinds generating table1 costs plan lengths table2 variants table3 table4 "
        "refinement long practice families __main__"
    ).split(),
    "inspection": "plots search_plots head_plots road_plots tree_plots table_plots run_plots practice_plots".split(),
    "inspection.explorer": "data aggregates state interventions gold session page widget front".split(),
    "teaching": (
        "verdicts exercises self_test recurrence_exercises fading_exercises softmax_exercises attention_exercises "
        "mask_exercises reach_exercises head_exercises head_measure_exercises position_exercises rotary_exercises "
        "layer_exercises model_exercises batch_exercises loss_exercises search_exercises beam_exercises bleu_exercises "
        "role_exercises alignment_exercises silence_exercises bpe_exercises corpus_exercises count_exercises "
        "evidence_exercises family_exercises practice_exercises checks"
    ).split(),
    "teaching.grading": (
        "watch tasks wire inside box answers submissions scoring feedback book course reports classroom"
    ).split(),
    "teaching.assignments": (
        "telling recorded attention_tasks mask_tasks audit_tasks band_tasks stream_tasks head_tasks position_tasks "
        "layer_tasks decoder_tasks schedule_tasks loss_tasks batch_tasks run_tasks search_tasks table_tasks bleu_tasks "
        "inside_tasks antecedent_tasks assignment1 assignment2 assignment3 assignment4"
    ).split(),
    "commands": (
        "corpus download translate explore train average evaluate export import_marian precheck classroom grade"
    ).split(),
    "front": ["cli", "__main__"],
}
ROOMS = [room for room in ORDER if room not in ("", "front")]
PLACES = []
for room, files in ORDER.items():
    PLACES += [f"{room}.{file}" if room in ROOMS else file for file in files]
    PLACES += [room] if room in ROOMS else []


def module_name(path: Path) -> str:
    """tinytransformer/model/masks.py is model.masks; a room's __init__ is the room."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(source: str) -> list[str]:
    """The modules of this package that a source text imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports in full, so that this test can read them"
            found.append(node.module)
    return [
        name.removeprefix("tinytransformer").lstrip(".") for name in found if name.split(".")[0] == "tinytransformer"
    ]


def uphill(name: str, source: str) -> list[str]:
    """The imports that break the order, each as a sentence."""
    allowed = PLACES[: PLACES.index(name)]
    if name in ROOMS:
        allowed = [place for place in allowed if place.startswith(f"{name}.")]
    return [f"{name} imports {other or 'the package itself'}" for other in imported(source) if other not in allowed]


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_run_downhill(path):
    name = module_name(path)
    assert name in PLACES, f"give {name} its place in the reading order above"
    assert not uphill(name, path.read_text(encoding="utf-8"))


def test_every_place_in_the_order_exists():
    assert set(PLACES) == {module_name(path) for path in FILES}


@pytest.mark.parametrize("room", [room for room in ROOMS if len(ORDER[room]) > 1])
def test_a_rooms_docstring_tells_the_same_order(room):
    text = " ".join(importlib.import_module(f"tinytransformer.{room}").__doc__.split())
    assert f": {', '.join(ORDER[room])}." in text


@pytest.mark.parametrize(
    ("name", "source", "broken"),
    [
        ("model.masks", "from tinytransformer.model.attention import attention", 1),
        ("model.masks", "def f():\n    import tinytransformer.inspection.plots", 1),
        ("model.attention", "from tinytransformer import Transformer", 1),
        ("model.attention", "from tinytransformer.model.masks import causal_mask\nimport torch", 0),
        ("inspection.plots", "from tinytransformer.model.masks import causal_mask", 0),
        ("model", "from tinytransformer.text.microworld import generate", 1),
        ("cli", "from tinytransformer.text.microworld import generate", 0),
    ],
)
def test_the_order_test_can_fail(name, source, broken):
    assert len(uphill(name, source)) == broken


@pytest.mark.parametrize("path", sorted((PACKAGE / "inspection").rglob("*.py")), ids=module_name)
def test_what_looks_inside_does_not_import_the_model(path):
    assert not [name for name in imported(path.read_text(encoding="utf-8")) if name.split(".")[0] == "model"]


def run(code: str, *arguments: str) -> list[str]:
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_importing_the_package_loads_nothing_else():
    loaded = run("import sys, json; before = set(sys.modules); import tinytransformer; "
                 "print(json.dumps(sorted(set(sys.modules) - before)))")  # fmt: skip
    assert not [name for name in loaded if name.split(".")[0] in ("torch", "numpy")]


def test_the_public_names_load_torch_and_nothing_beyond_it():
    """benchmarks/import_time.py measures the seconds; this keeps out what would cost them."""
    new = run(
        "import sys, json, torch; before = set(sys.modules); import tinytransformer\n"
        "for name in set(tinytransformer.__all__) - {'Translator'}: getattr(tinytransformer, name)\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    assert "tinytransformer.model.transformer" in new
    outside = [name for name in new if name.split(".")[0] not in {"tinytransformer", "torch", *sys.stdlib_module_names}]
    assert outside == []


def test_the_translator_loads_what_a_model_folder_needs_and_no_more():
    new = run(
        "import sys, json, torch; before = set(sys.modules); from tinytransformer import Translator\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    roots = {name.split(".")[0].lstrip("_") for name in new} - {*sys.stdlib_module_names, "torch"}
    assert roots - {name.strip("_") for name in sys.stdlib_module_names} == {
        "tinytransformer", "safetensors", "sentencepiece"
    }  # fmt: skip


def test_the_explorer_loads_widgets_and_plots_only_when_it_is_shown(tmp_path):
    new = run(
        "import sys, json, torch; before = set(sys.modules); from tinytransformer import explore\n"
        "explore(weights=[[0.5, 0.5], [1.0, 0.0]], query_tokens='ab').save_html(sys.argv[1])\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))",
        str(tmp_path / "page.html"),
    )
    assert "tinytransformer.inspection.explorer.front" in new
    outside = {name.split(".")[0] for name in new} & {"anywidget", "ipywidgets", "matplotlib", "seaborn", "sacrebleu"}
    assert outside == set()


def test_public_names():
    expected = {"TransformerConfig", "Transformer", "MultiHeadAttention", "attention", "padding_mask", "causal_mask"}
    expected |= {"window_mask", "record_attention", "silence_heads", "PRESETS", "Translator", "explore"}
    assert expected <= set(tinytransformer.__all__) <= set(dir(tinytransformer))
    assert callable(tinytransformer.attention)
    with pytest.raises(AttributeError, match="no attribute 'transformer': it offers PRESETS"):
        tinytransformer.transformer  # noqa: B018
