"""Products x Wᵀ in float32 on one thread: is PyTorch's default library faster, or oneDNN?

The sizes are those of decoding and training; the weights change from product to product as they do from layer to layer,
so that they do not wait in the processor's nearest cache. A ratio above 1 means that oneDNN is faster.

Run: python benchmarks/products.py [--rounds N]
"""

import argparse
import itertools
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
from peers import in_turns
from torch import Tensor

from tinytransformer.experiments.measuring import one_thread
from tinytransformer.model import products

MATRICES = [(128, 128), (128, 256), (512, 512), (512, 2048), (128, 10_000)]  # inputs, outputs
ROWS = [1, 4, 16, 64, 256, 1024]
WEIGHTS = 3_000_000  # numbers in all the matrices that take turns
REPEATED = 200_000_000  # multiplications of one measurement, at least


def passes(product: Callable[[Tensor, Tensor], Tensor], x: Tensor, weights: list[Tensor], gradients: bool) -> Callable:
    """Products of x with one weight after the other, with their gradients if asked for."""
    number = max(3, REPEATED // (x.numel() * weights[0].size(0)))
    turns = itertools.cycle(weights)

    def run() -> None:
        with torch.set_grad_enabled(gradients):
            for weight in itertools.islice(turns, number):
                y = product(x, weight)
                if gradients:
                    torch.autograd.grad(y, (x, weight), y.detach())

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    if products._BY_ONEDNN is None:
        raise SystemExit("this PyTorch has no oneDNN, so there is nothing to compare")
    own_limit, products.SMALL = products.SMALL, 0  # oneDNN for every size
    print("| rows | matrix | multiplications, in millions | oneDNN is faster by | with gradients | the package takes |")
    print("|--:|--:|--:|--:|--:|---|")
    with one_thread():
        for (inputs, outputs), rows in itertools.product(MATRICES, ROWS):
            size = rows * inputs * outputs
            x = torch.randn(rows, inputs, requires_grad=True)
            weights = [
                torch.randn(outputs, inputs, requires_grad=True) for _ in range(WEIGHTS // inputs // outputs + 1)
            ]
            cells = []
            for gradients in (False, True):
                ways = {"default": F.linear, "onednn": products.linear}
                tasks = {name: passes(way, x, weights, gradients) for name, way in ways.items()}
                by_default, by_onednn = map(median, in_turns(tasks, rounds).values())
                cells.append(f"{by_default / by_onednn:.2f} ×")
            taken = "oneDNN" if size >= own_limit else "PyTorch's default"
            print(
                f"| {rows:,} | {inputs} → {outputs:,} | {size / 1e6:.2f} | {' | '.join(cells)} | {taken} |", flush=True
            )


if __name__ == "__main__":
    main()
