"""Two cores, two ways to train: one process with two threads, or two processes with one thread each.

Both follow the Multi30k recipe with the same two batches a step, in turns, and tell target tokens a second from the
runs' own logs; the first steps do not count. Writes data/results/processes.json.

Run: python benchmarks/processes.py --data FOLDER [--rounds 3] [--steps 40]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tinytransformer.training.loop import LOG

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "processes.json"
WAYS = {"one process, two threads": ("1", "2"), "two processes, one thread each": ("2", "1")}
WARM = 5  # steps


def speed(way: str, steps: int, data: list[str]) -> float:
    """Target tokens a second of a short run."""
    processes, threads = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tinytransformer", "train", "--recipe", "multi30k", "--folder", folder, *data]
        command += ["--processes", processes, "--threads", threads, "--device", "cpu"]
        command += ["--falls", "root", "--steps", str(steps), "--validate-every", "1000000"]
        subprocess.run([*command, "--json"], check=True, capture_output=True)
        lines = [json.loads(line) for line in (Path(folder) / LOG).read_text(encoding="utf-8").splitlines()]
    return median(line["target_tokens_per_second"] for line in lines[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    data = ["--data", options.data] if options.data else []
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            found[way].append(speed(way, options.steps, data))
    one, two = (median(values) for values in found.values())
    for way, values in found.items():
        print(f"{way}: {median(values):,.0f} target tokens a second")
    print(f"two processes are faster by {two / one:.2f} ×")
    about = {"command": "python benchmarks/processes.py", "steps": options.steps, "rounds": options.rounds}
    RESULTS.write_text(
        json.dumps({**about, "target_tokens_per_second": found, "two_are_faster_by": two / one}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
