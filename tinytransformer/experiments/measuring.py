"""How a layer is measured: operations, dependent steps, distance of a gradient, seconds, bytes; and how they grow.

Every number is taken from a run, none from a formula; the formulas stand in layer_kinds.py, to be compared with these.
"""

import json
import math
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

# Operations of the autograd graph that multiply matrices; all others work on each number alone, or move numbers.
PRODUCTS = ("AddmmBackward", "MmBackward", "BmmBackward", "BaddbmmBackward", "ConvolutionBackward")
SHORTEST = 0.01  # seconds that one timing should last at least; short runs are repeated


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything inside runs on one core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def single_products() -> Iterator[None]:
    """Fused kernels (attention, LSTM) are taken apart into the matrix products that they stand for."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mkldnn.enabled = before


def counted_operations(run: Callable[[], object]) -> int:
    """Multiply-adds of the matrix products and convolutions in ``run``, as PyTorch's own counter sees them.

    The counter does not know the fused kernels of the CPU and counts a multiply-add as two operations.
    """
    with single_products(), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2


def longest_chain(run: Callable[[], Tensor]) -> int:
    """The most matrix products that wait for each other in ``run``, found in the autograd graph of its output."""
    with single_products():
        end = run().grad_fn
    longest: dict[object, int] = {}
    waiting = [end]
    while waiting:
        node = waiting[-1]
        sources = [source for source, _ in node.next_functions if source is not None]
        unknown = [source for source in sources if source not in longest]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        own = node.name().startswith(PRODUCTS)
        longest[node] = own + max((longest[source] for source in sources), default=0)
    return longest[end]


def path_length(outputs: Callable[[Tensor], Iterator[Tensor]], n: int, d: int, generator: torch.Generator) -> int:
    """How many layers, or steps, it takes until the last of n positions depends on the first.

    ``outputs`` yields what comes after 1, 2, 3, … of them. The gradient is exactly zero until then; in double
    precision the product of many small factors does not become zero by rounding.
    """
    x = torch.randn(1, n, d, dtype=torch.float64, generator=generator, requires_grad=True)
    for count, output in zip(range(1, n + 1), outputs(x), strict=False):
        (gradient,) = torch.autograd.grad(output[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            return count
    raise ValueError(
        f"after {n} layers the last of {n} positions does not depend on the first: does each layer move on?"
    )


def in_turns(tasks: Mapping[Hashable, Callable[[], object]], rounds: int) -> dict[Hashable, list[float]]:
    """Seconds of each task in every round: A B C … A B C …, after one round to warm up.

    These are the processor's seconds: for one thread the same as a clock's, but other programs do not add to them.
    """
    repeats = {}
    for name, run in tasks.items():
        run()
        repeats[name] = max(1, math.ceil(SHORTEST / _seconds(run, 1)))
    measured: dict[Hashable, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, run in tasks.items():
            measured[name].append(_seconds(run, repeats[name]))
    return measured


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes that tensors made inside ``run`` hold at one moment.

    Read from PyTorch's profiler, which notes each block that the CPU allocator hands out and takes back. What stood
    before (weights, inputs) is not in it; nor is memory that a library takes without asking that allocator.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # its greetings would fill the screen
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        held += change
        most = max(most, held)
    return most


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power by which values grow with sizes: the slope of a straight line through their logarithms."""
    if len(sizes) < 2:
        raise ValueError(f"a slope needs at least two sizes, got {list(sizes)}")
    x, y = ([math.log(number) for number in numbers] for numbers in (sizes, values))
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return above / sum((a - x_mean) ** 2 for a in x)


def slope_over_rounds(sizes: Sequence[float], rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    """The slope in each round alone, where ``rounds`` has the values of all rounds for each size: median and range."""
    found = [slope(sizes, values) for values in zip(*rounds, strict=True)]
    return {"median": median(found), "low": min(found), "high": max(found)}


def crossing(sizes: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """The size from which on ``one`` stays above ``other``, between two sizes along straight lines in logarithms.

    None where ``one`` is not above at the largest size; the smallest size where it is above at all of them.
    """
    ratios = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    if ratios[-1] <= 0:
        return None
    last_below = max((place for place, ratio in enumerate(ratios) if ratio <= 0), default=None)
    if last_below is None:
        return float(sizes[0])
    low, high = math.log(sizes[last_below]), math.log(sizes[last_below + 1])
    share = -ratios[last_below] / (ratios[last_below + 1] - ratios[last_below])
    return math.exp(low + share * (high - low))
