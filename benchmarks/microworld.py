"""How fast the microworld generates fully annotated pairs on one core, in how much memory, and how many are distinct.

Run: python benchmarks/microworld.py [--pairs 1000000]
"""

import argparse
import subprocess
import sys
import time
from collections import Counter

from tinytransformer.text.microworld import CONSTRUCTIONS, SPLITS, generate
from tinytransformer.text.microworld.world import embedded_world

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
    """Share of each construction, and how many sentences there are."""
    counts: Counter[str] = Counter()
    sources = set()
    for example in generate("train", count, seed=1):
        counts.update(example.constructions)
        sources.add(example.source)
    for name in CONSTRUCTIONS:
        print(f"{name:23} {counts[name] / count:6.1%} of training sentences")
    print(f"{len(sources):,} of {count:,} sentences distinct")
    print(
        f"{sentences_of_one_pattern():,} sentences possible in one pattern alone: the A noun verb-ed the B noun, time"
    )


def sentences_of_one_pattern() -> int:
    """How many sentences *the (adjective) noun verb-ed the (adjective) noun, time* can make: counted, not estimated."""
    world = embedded_world()

    def phrases(verb, role: str) -> int:
        return sum(1 + len(world.attributes_of[noun]) for noun in world.fillers[verb, role])

    verbs = [verb for verb in world.actions if list(verb.slots) == ["accusative"] and verb.past != verb.base]
    return sum(phrases(verb, "subject") * phrases(verb, "accusative") for verb in verbs) * len(world.times["past"])


if __name__ == "__main__":
    main()
