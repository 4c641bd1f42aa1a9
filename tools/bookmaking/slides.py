"""Figures for slides: drawn by the package from its models and results, written as SVG, shown on a page of the book.

`make figures` writes them into docs/figures/slides; the book shows what lies there.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookmaking.lessons import ROOT

FOLDER = ROOT / "docs" / "figures" / "slides"
RESULTS = ROOT / "data" / "results"
SENTENCE = "The puppy did not cross the bridge because it was too tired."


@dataclass(frozen=True)
class Slide:
    """One figure: its file's name, what it shows, for people who see it and those who do not, and who draws it."""

    name: str
    lesson: str
    caption: str
    draw: Callable[[], Any]


def _results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _cross() -> Any:
    from tinytransformer import Translator

    translation = Translator.load("microworld-en-de", device="cpu")(SENTENCE, attention=True)
    return translation.records.find("cross", layer=1)


def _attention() -> Any:
    from tinytransformer.inspection import plots

    record = _cross()
    return plots.attention_matrix(record.weights[0].mean(0), record.query_tokens, record.key_tokens)


def _heads() -> Any:
    from tinytransformer.inspection import plots

    record = _cross()
    return plots.attention_heads(record.weights[0], record.query_tokens, record.key_tokens)


def _masks() -> Any:
    import torch

    from tinytransformer import causal_mask, padding_mask, window_mask
    from tinytransformer.inspection import plots

    words = ["the", "dog", "runs", "home", "<pad>"]
    real = padding_mask(torch.tensor([[5, 6, 7, 8, 0]]), 0)[0, 0].expand(5, 5)
    masks = {"padding": real, "causal": causal_mask(5), "both": real & causal_mask(5), "window": window_mask(5, 1)}
    return plots.attention_panels({name: (mask / mask.sum(-1, keepdim=True), words, words, mask)
                                   for name, mask in masks.items()})  # fmt: skip


def _scale() -> Any:
    import torch

    from tinytransformer.inspection import plots

    sizes, generator = [2**power for power in range(1, 11)], torch.Generator().manual_seed(0)
    largest: dict[str, list[float]] = {"q · k": [], "q · k / √d_k": [], "q · k / d_k": []}
    for size in sizes:
        query, keys = torch.randn(400, 1, size, generator=generator), torch.randn(400, 10, size, generator=generator)
        scores = (query * keys).sum(-1)
        for name, scale in zip(largest, (1.0, size**0.5, size), strict=True):
            largest[name].append((scores / scale).softmax(-1).amax(-1).mean().item())
    return plots.curves(sizes, {"largest of ten weights": largest}, "d_k", xscale="log")


def _positions() -> Any:
    from tinytransformer.inspection import plots
    from tinytransformer.model.positions import sinusoids

    return plots.position_table(sinusoids(40, 32))


def _warmup() -> Any:
    from tinytransformer.inspection import plots
    from tinytransformer.training.schedule import paper_rate

    steps = list(range(1, 20_001, 50))
    lines = {f"warm-up {warmup:,}": [paper_rate(step, 512, warmup) for step in steps] for warmup in (2000, 4000, 8000)}
    return plots.curves(steps, {"learning rate, d_model 512": lines}, "step", markers=False)


def _smoothing() -> Any:
    from tinytransformer.inspection import plots

    even = 0.1 / 5
    targets = {"without": [0, 0, 1, 0, 0], "ε = 0.1 over all V": [even, even, 0.9 + even, even, even]}
    return plots.bars(["<end>", "Hunde", "Katzen", "bellen", "schlafen"], {"target probability": targets})


def _lengths() -> Any:
    from tinytransformer.inspection import road_plots

    found = _results("lengths")
    spans = [f"{first}–{last}" if last < 99 else f"> {first - 1}" for first, last in found["lengths"]]
    return road_plots.by_length(spans, {row["name"]: [run["bleu"] for run in row["runs"]] for row in found["rows"]})


def _beams() -> Any:
    from tinytransformer.inspection import plots

    rows = [row for row in _results("search")["rows"] if row["beam"] > 1]
    beams, alphas = sorted({row["beam"] for row in rows}), sorted({row["alpha"] for row in rows})[:4]
    lines = {f"α = {alpha:g}": [one["bleu"] for one in rows if one["alpha"] == alpha] for alpha in alphas}
    return plots.curves(beams, {"BLEU, Multi30k validation": lines}, "beam", xscale="log")


def _ratios() -> Any:
    from tinytransformer.inspection import table_plots

    return table_plots.claimed_ratios(_results("table1"))


def _paths() -> Any:
    from tinytransformer.inspection import table_plots

    return table_plots.path_lengths(_results("table1"))


def _costs() -> Any:
    from tinytransformer.inspection import table_plots

    return table_plots.training_costs(_results("costs"))


SLIDES = (
    Slide("attention", "02", "Where a translator looks while it writes: cross-attention of the last layer, mean of its "
          "heads.", _attention),
    Slide("scale", "02", "Why 1/√d_k: the largest of ten weights for random queries and keys. Without the scale the "
          "softmax saturates, with 1/d_k it becomes even.", _scale),
    Slide("masks", "03", "Four masks: who may look at whom. Grey is forbidden.", _masks),
    Slide("heads", "04", "The heads of one layer look at different things: cross-attention of the last layer.", _heads),
    Slide("positions", "05", "Sinusoidal positions: positions down, dimensions across, wavelengths growing to the "
          "right.", _positions),
    Slide("warmup", "07", "The paper's learning rate: it rises during the warm-up and falls with the root of the step.",
          _warmup),
    Slide("smoothing", "07", "Label smoothing with ε = 0.1 spread over all five words.", _smoothing),
    Slide("lengths", "01", "What attention repaired: BLEU by the number of words, LSTMs without and with attention.",
          _lengths),
    Slide("beams", "08", "Without a length penalty (α = 0) wider beams get worse.", _beams),
    Slide("ratios", "11", "Is attention cheaper? By Table 1's terms, by all products, and by the clock.", _ratios),
    Slide("paths", "11", "Layers between the first and the last position, found by gradients.", _paths),
    Slide("costs", "11", "What training cost: by hours of GPUs, and by the model's arithmetic.", _costs),
)  # fmt: skip
FRONT = """\
# Figures for slides

Drawn by the package from its models and results; free to use under the MIT licence. Save a picture from this
page, or take the SVG files from `docs/figures/slides/`, which `make figures` draws again.
"""


def write_all(folder: Path = FOLDER) -> list[Path]:
    """Draw all of them, the same bytes each time; text becomes outlines, so that no font is needed."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context({"svg.hashsalt": "tinytransformer", "svg.fonttype": "path"}):
        for slide in SLIDES:
            paths.append(folder / f"{slide.name}.svg")
            slide.draw().savefig(paths[-1], metadata={"Date": None})
    return paths


def page(folder: Path = FOLDER) -> str:
    """The page that shows the figures that are there."""
    lines = [FRONT]
    for slide in SLIDES:
        if (folder / f"{slide.name}.svg").exists():
            lines += ["", f"## {slide.name}", "", f"![{slide.caption}](figures/slides/{slide.name}.svg)", "",
                      f"*{slide.caption}* Lesson {{lesson {slide.lesson}}}."]  # fmt: skip
    return "\n".join(lines) + "\n"
