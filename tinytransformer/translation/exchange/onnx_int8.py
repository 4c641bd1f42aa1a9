"""ONNX with 8-bit integers: every matrix in a quarter of its bytes, the embedding included.

A row of a matrix becomes whole numbers from -127 to 127 and one factor: row ≈ numbers · factor. A state is rounded in
the same way while the model runs, each position by itself, so that no sentence changes with its neighbours in a batch.
Products are then sums of whole numbers, and the two factors bring them back. Norms, biases and softmax stay float32.
"""

import numpy as np
import torch
from torch import Tensor

from tinytransformer.translation.exchange.onnx_graph import TYPES, Graph

LARGEST = 127
# A state gets 7 bits, 64 - 63 to 64 + 63 without a sign. Processors without VNNI instructions add two products in
# 16 bits, and 2 · 127 · 127 is the most that fits there: with 8 bits they would give other sums than newer ones.
MIDDLE, REACH = 64, 63


def rounded(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix (rows, columns) as whole numbers and one factor a row (rows)."""
    matrix = matrix.detach().float()
    factors = matrix.abs().amax(1) / LARGEST
    factors = torch.where(factors > 0, factors, torch.ones_like(factors))  # a row of zeros may have any
    return (matrix / factors[:, None]).round().to(torch.int8), factors


class Int8Graph(Graph):
    """The same graph; only what touches a matrix differs."""

    def matrix(self, x: str, name: str, matrix: Tensor) -> str:
        numbers, factors = rounded(matrix)
        stored = self.weight(f"{name}.transposed", numbers.T)
        return self._product(x, stored, self.weight(f"{name}.factors", factors))

    def turned_matrix(self, x: str, name: str, matrix: Tensor) -> str:
        numbers, factors = self._stored(name, matrix)
        return self._product(x, self.op("Transpose", numbers), factors)

    def rows(self, name: str, matrix: Tensor, ids: str) -> str:
        numbers, factors = self._stored(name, matrix)
        found = self.op("Cast", self.op("Gather", numbers, ids), to=TYPES["float"])
        return self.op("Mul", found, self.op("Unsqueeze", self.op("Gather", factors, ids), self.constant([-1])))

    def _stored(self, name: str, matrix: Tensor) -> tuple[str, str]:
        numbers, factors = rounded(matrix)
        return self.weight(name, numbers), self.weight(f"{name}.factors", factors)

    def _product(self, x: str, numbers: str, factors: str) -> str:
        """x (…, in) times whole numbers (in, out), with a factor for each column of the result."""
        whole, factor = self._rounded_state(x)
        middle = self.stored.setdefault("middle", self.onnx.numpy_helper.from_array(np.uint8(MIDDLE), "middle")).name
        product = self.op("Cast", self.op("MatMulInteger", whole, numbers, middle), to=TYPES["float"])
        return self.op("Mul", self.op("Mul", product, factor), factors)

    def _rounded_state(self, x: str) -> tuple[str, str]:
        """A state (…, in) as whole numbers around `MIDDLE`, and one factor a position (…, 1). Once for q, k and v."""
        whole, factor = f"{x} in whole numbers", f"{x} factor"
        if all(node.name != whole for node in self.nodes):
            largest = self.op("ReduceMax", self.op("Abs", x), axes=[-1], keepdims=1)
            above_zero = self.op("Max", largest, self.constant(1e-9))
            self.op("Div", above_zero, self.constant(float(REACH)), result=factor)
            shifted = self.op("Add", self.op("Div", x, factor), self.constant(float(MIDDLE)))
            self.op("Cast", self.op("Round", shifted), result=whole, to=TYPES["uint8"])
        return whole, factor
