"""What `import tinytransformer` and all its public names cost after `import torch`, in fresh interpreters.

Run: python benchmarks/import_time.py
"""

import argparse
import statistics
import subprocess
import sys

CASES = {
    "import tinytransformer": "import tinytransformer",
    "and every public name": "import tinytransformer as t; [getattr(t, name) for name in t.__all__]",
}
TIMED = """
import time
start = time.perf_counter()
import torch
between = time.perf_counter()
{}
print(between - start, time.perf_counter() - between)
"""


def seconds(code: str) -> tuple[float, float]:
    """Seconds for torch, and for what comes after it."""
    result = subprocess.run([sys.executable, "-c", TIMED.format(code)], capture_output=True, text=True, check=True)
    torch, after = map(float, result.stdout.split())
    return torch, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds, after one to warm up")
    rounds = parser.parse_args().rounds
    torch, after = [], {name: [] for name in CASES}
    for turn in range(rounds + 1):
        for name, code in CASES.items():
            measured = seconds(code)
            if turn:
                torch.append(measured[0])
                after[name].append(measured[1])
    print(f"{'import torch':24} {statistics.median(torch):.3f} s   (median of {len(torch)})")
    for name, values in after.items():
        print(f"{name:24} {statistics.median(values):.3f} s   (median of {len(values)})")


if __name__ == "__main__":
    main()
