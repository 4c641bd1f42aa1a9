"""What `import tinytransformer` and all its public names cost beyond `import torch`, in fresh interpreters.

Run: python benchmarks/import_time.py
"""

import argparse
import statistics
import subprocess
import sys

CASES = {
    "import torch": "import torch",
    "+ import tinytransformer": "import torch, tinytransformer",
    "+ every public name": "import torch, tinytransformer as t; [getattr(t, name) for name in t.__all__]",
}
TIMED = "import time; start = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def seconds(code: str) -> float:
    result = subprocess.run([sys.executable, "-c", TIMED.format(code)], capture_output=True, text=True, check=True)
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds, after one to warm up")
    rounds = parser.parse_args().rounds
    for code in CASES.values():
        seconds(code)
    times = {name: [] for name in CASES}
    for _ in range(rounds):
        for name, code in CASES.items():
            times[name].append(seconds(code))
    base = statistics.median(times["import torch"])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"{name:26} {median:6.3f} s   {median - base:+.3f} s   (median of {rounds})")


if __name__ == "__main__":
    main()
