"""Time and peak memory of fused and explicit attention over the sequence length: a table, a results file, a plot.

Run: python benchmarks/attention.py            (memory is measured on Linux only)

Each number is one forward and backward pass of the attention function, batch 1, 8 heads of 64, float32. "fused, causal"
makes and uses the causal mask, as every decoder does; it is n × n, but one for all heads. Times are taken in turns
inside one process; peak memory is taken in a fresh process per number, as the rise of the resident set over what inputs
and interpreter already hold.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from tinytransformer import causal_mask
from tinytransformer.inspection import plots
from tinytransformer.model.attention import attention, attention_weights

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "data" / "results" / "attention.json"
FIGURE = ROOT / "docs" / "figures" / "attention_growth.png"
HEADS, SIZE = 8, 64
LENGTHS = [128, 256, 512, 1024, 2048, 4096]
PATHS = {
    "fused": attention,
    "fused, causal": lambda query, key, value: attention(query, key, value, causal_mask(query.size(-2))),
    "explicit": lambda query, key, value: attention_weights(query, key) @ value,
}

HEADER = """\
| n | fused ms | fused, causal | explicit | explicit / fused | fused MB | fused, causal | explicit | explicit / fused |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def inputs(length: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, HEADS, length, SIZE, generator=generator, requires_grad=True) for _ in range(3)]


def step(path: str, tensors: list[torch.Tensor]) -> None:
    PATHS[path](*tensors).sum().backward()
    for tensor in tensors:
        tensor.grad = None


def times(length: int, rounds: int) -> dict[str, float]:
    """Median milliseconds of each path, taken in turns."""
    tensors, measured = inputs(length), {path: [] for path in PATHS}
    for turn in range(rounds + 2):
        for path, values in measured.items():
            start = time.perf_counter()
            step(path, tensors)
            if turn >= 2:
                values.append(1000 * (time.perf_counter() - start))
    return {path: statistics.median(values) for path, values in measured.items()}


def resident(field: str) -> float:
    """Megabytes from the kernel's account of this process: VmRSS now, VmHWM at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the kernel does not report {field}")


def measure_peak(path: str, length: int) -> float:
    """Peak megabytes of one step beyond what stands before it. Runs in a process of its own."""
    step(path, inputs(16))  # libraries, threads and their buffers are loaded now
    tensors = inputs(length)
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts anew
    before = resident("VmRSS")
    step(path, tensors)
    return resident("VmHWM") - before


def peak(path: str, length: int) -> float | None:
    if not sys.platform.startswith("linux"):
        return None
    command = [sys.executable, __file__, "--peak", path, str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def slope(lengths: list[int], values: list[float]) -> float:
    """How often the value doubles when the length doubles, over the upper half of the lengths."""
    half = len(lengths) // 2
    logs = torch.tensor([lengths[half:], values[half:]], dtype=torch.float64).log2()
    return torch.linalg.lstsq(torch.stack([logs[0], torch.ones_like(logs[0])], 1), logs[1:].T).solution[0].item()


def table_row(row: dict) -> str:
    """A row of the table, in Markdown."""
    cells = [f"{row['length']}"]
    for numbers in (row["milliseconds"], row["peak_megabytes"]):
        if numbers["fused"] is None:
            cells += ["Linux only"] * (len(PATHS) + 1)
        else:
            cells += [f"{number:.1f}" for number in numbers.values()]
            cells.append(f"{numbers['explicit'] / numbers['fused']:.1f} ×")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--peak", nargs=2, metavar=("PATH", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(measure_peak(options.peak[0], int(options.peak[1])))
        return

    rows = []
    print(HEADER)
    for length in options.lengths:
        row = {"length": length, "milliseconds": times(length, options.rounds)}
        row["peak_megabytes"] = {path: peak(path, length) for path in PATHS}
        rows.append(row)
        print(table_row(row), flush=True)

    panels = {}
    for label, key in (("milliseconds", "milliseconds"), ("peak megabytes", "peak_megabytes")):
        lines = {path: [row[key][path] for row in rows] for path in PATHS}
        if None not in lines["fused"]:
            panels[label] = lines
            growth = {path: slope(options.lengths, values) for path, values in lines.items()}
            print(f"{label}: " + ", ".join(f"{path} grows as n^{value:.2f}" for path, value in growth.items()))
    if options.lengths == LENGTHS:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        about = {"command": "python benchmarks/attention.py", "torch": torch.__version__.split("+")[0]}
        about |= {"threads": torch.get_num_threads(), "heads": HEADS, "head_size": SIZE, "rows": rows}
        RESULTS.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        plots.growth(LENGTHS, panels).savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    main()
