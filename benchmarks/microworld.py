"""How fast the microworld generates fully annotated pairs on one core, in how much memory, and how many are distinct.

Run: python benchmarks/microworld.py [--pairs 1000000]
"""

import argparse
import subprocess
import sys
import time
from collections import Counter

from tinytransformer.text.microworld import CONSTRUCTIONS, SPLITS, generate

_PEAK = """
import resource
from tinytransformer.text.microworld import generate
for _ in generate("train", {count}): pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def speed(split: str, count: int) -> float:
    """Pairs a second; the lexicon is loaded before the clock starts."""
    next(generate(split, 1))
    start = time.perf_counter()
    for _ in generate(split, count, seed=1):
        pass
    return count / (time.perf_counter() - start)


def peak_megabytes(count: int) -> float:
    """Peak memory of a fresh process that generates so many pairs."""
    command = [sys.executable, "-c", _PEAK.format(count=count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200_000, help="size of the large run; default: 200000")
    pairs = parser.parse_args().pairs
    for split in SPLITS:
        print(f"{split:13} {speed(split, 20_000 if split == 'train' else 2000):8,.0f} pairs a second")
    for count in (1000, pairs):
        print(f"peak memory for {count:9,} pairs: {peak_megabytes(count):6.1f} MB")
    report_variety()


def report_variety(count: int = 50_000) -> None:
    """Share of each construction, and an estimate of the number of distinct sentences."""
    counts: Counter[str] = Counter()
    by_length: dict[int, Counter[str]] = {}
    for example in generate("train", count, seed=1):
        counts.update(example.constructions)
        by_length.setdefault(len(example.source_words), Counter())[example.source] += 1
    for name in CONSTRUCTIONS:
        print(f"{name:23} {counts[name] / count:6.1%} of training sentences")
    print(f"{sum(map(len, by_length.values())):,} of {count:,} sentences distinct")
    print(f"at least {sum(map(lower_bound, by_length.values())):,.0f} possible, by collisions within each length")


def lower_bound(sources: Counter[str]) -> float:
    """Of N equally likely sentences, k draws collide k²/2N times; unequal ones collide more, so N is at least this."""
    draws = sources.total()
    collisions = sum(n * (n - 1) // 2 for n in sources.values())
    return draws * (draws - 1) / 2 / max(collisions, 1)


if __name__ == "__main__":
    main()
