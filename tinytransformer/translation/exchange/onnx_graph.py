"""ONNX: a model as a list of operations, each with names for what it reads and what it writes.

The parts of our model are written down here once more, in the words of that standard. The numbers lie in a file of
their own, which several graphs can share. Everything is plain float32; onnx_int8.py stores the matrices in a quarter.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinytransformer.model.transformer import Transformer
from tinytransformer.translation.exchange.formats import package

OPSET, IR_VERSION = 17, 8  # of 2022: older engines open it, too
WEIGHTS = "weights.bin"
ALIGNMENT = 64  # bytes; engines map the file into memory and like whole cache lines
TYPES = {"float": 1, "uint8": 2, "int64": 7, "bool": 9}  # the numbers by which the standard calls them


class Weights:
    """The file of numbers. A tensor that is asked for again, by this graph or another, is not stored again."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.tensors: dict[str, Any] = {}

    def tensor(self, name: str, values: np.ndarray) -> Any:
        """The description of a tensor that says where in the file it lies."""
        if name not in self.tensors:
            onnx = package("onnx")
            self.data += bytes(-len(self.data) % ALIGNMENT)
            found = onnx.TensorProto(name=name, dims=values.shape, data_location=onnx.TensorProto.EXTERNAL)
            found.data_type = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
            place = {"location": WEIGHTS, "offset": len(self.data), "length": values.nbytes}
            for key, value in place.items():
                found.external_data.add(key=key, value=str(value))
            self.data += np.ascontiguousarray(values).tobytes()
            self.tensors[name] = found
        return self.tensors[name]


class Graph:
    """Operations one after the other. A method adds some and returns the name of what they compute."""

    def __init__(self, model: Transformer, weights: Weights):
        self.model, self.weights, self.onnx = model, weights, package("onnx")
        self.nodes: list[Any] = []
        self.stored: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    # Plain graph writing

    def op(self, kind: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        """One operation; its result has the given name, or a number."""
        name = result or f"{kind}.{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def input(self, name: str, kind: str, *shape: str | int) -> str:
        """Something that the caller gives; an axis with a name may have any size."""
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, TYPES[kind], shape))
        return name

    def output(self, name: str, kind: str, *shape: str | int) -> str:
        """Something that the caller gets; an operation must write it."""
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, TYPES[kind], shape))
        return name

    def constant(self, value: float | Sequence[int]) -> str:
        """A number, or some whole ones, inside the graph itself."""
        name = f"constant {value}"
        array = np.asarray(value, np.float32 if isinstance(value, float) else np.int64)
        self.stored.setdefault(name, self.onnx.numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, tensor: Tensor) -> str:
        """Numbers from the shared file: float32, or integers as they are."""
        tensor = tensor.detach().cpu()
        values = tensor.float() if tensor.is_floating_point() else tensor
        self.stored[name] = self.weights.tensor(name, values.numpy())
        return name

    def size(self, x: str, axis: int) -> str:
        """How long an axis is, as a list of one number."""
        return self.op("Shape", x, start=axis, end=axis + 1)

    def finished(self, name: str, about: str) -> bytes:
        """The whole graph as the bytes of an .onnx file, with a text for whoever finds it alone."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, list(self.stored.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        model.producer_name, model.doc_string = "tinytransformer", about
        return model.SerializeToString(deterministic=True)

    # Parts of the model, under their names there

    def matrix(self, x: str, name: str, matrix: Tensor) -> str:
        """x (…, in) times a matrix (out, in): (…, out)."""
        return self.op("MatMul", x, self.weight(f"{name}.transposed", matrix.T))

    def linear(self, x: str, name: str) -> str:
        layer = self.model.get_submodule(name)
        return self.op("Add", self.matrix(x, name, layer.weight), self.weight(f"{name}.bias", layer.bias))

    def norm(self, x: str, name: str) -> str:
        norm = self.model.get_submodule(name)
        scale, bias = self.weight(f"{name}.weight", norm.weight), self.weight(f"{name}.bias", norm.bias)
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=norm.eps)

    def closing(self, x: str, name: str) -> str:
        return self.norm(x, name) if self.model.config.norm == "pre" else x

    def residual(self, x: str, name: str, sublayer: Callable[[str], str]) -> str:
        """The residual connection around a sub-layer, with its norm before or after."""
        if self.model.config.norm == "pre":
            return self.op("Add", x, sublayer(self.norm(x, f"{name}.norm")))
        return self.norm(self.op("Add", x, sublayer(x)), f"{name}.norm")

    def feed_forward(self, x: str, name: str) -> str:
        return self.linear(self.activation(self.linear(x, f"{name}.w_1")), f"{name}.w_2")

    def activation(self, x: str) -> str:
        kind = self.model.config.activation
        if kind == "relu":
            return self.op("Relu", x)
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        erf = self.op("Erf", self.op("Mul", x, self.constant(0.5**0.5)))  # gelu: x · ½ (1 + erf(x / √2))
        share = self.op("Mul", self.op("Add", erf, self.constant(1.0)), self.constant(0.5))
        return self.op("Mul", x, share)

    def embedded(self, ids: str, side: str, first: str) -> str:
        """Ids (B, T) as vectors (B, T, D) with their positions, of which ``first`` is the first."""
        embedding = self.model.embedding
        own = side == "target" and not self.model.config.tie_embeddings
        name = "embedding.target_tokens" if own else "embedding.tokens"
        rows = self.rows(name, embedding.target_tokens if own else embedding.tokens, ids)
        x = self.op("Mul", rows, self.constant(float(embedding.scale)))
        if self.model.config.positions in ("sinusoidal", "learned"):
            table = self.weight("positions.table", self.model.positions.table)
            x = self.op("Add", x, self.between(table, first, self.size(ids, 1)))
        return x

    def rows(self, name: str, matrix: Tensor, ids: str) -> str:
        """The rows of a matrix (V, D) for ids (B, T)."""
        return self.op("Gather", self.weight(name, matrix), ids)

    def logits(self, states: str, result: str) -> str:
        """States (…, D) to logits (…, V)."""
        embedding, tied = self.model.embedding, self.model.config.tie_embeddings
        name = "embedding.tokens" if tied else "embedding.output"
        x = self.turned_matrix(states, name, embedding.output_matrix)
        if embedding.output_bias is not None:
            x = self.op("Add", x, self.weight("embedding.output_bias", embedding.output_bias))
        return self.op("Identity", x, result=result)

    def turned_matrix(self, x: str, name: str, matrix: Tensor) -> str:
        """`matrix`, but stored as it is for `rows`, which may use it, too; the engine turns it once, when it starts."""
        return self.op("MatMul", x, self.op("Transpose", self.weight(name, matrix)))

    def heads(self, x: str, result: str | None = None) -> str:
        """(B, T, H * d) to (B, H, T, d)."""
        split = self.op("Reshape", x, self.constant([0, 0, self.model.config.num_heads, -1]))
        return self.op("Transpose", split, result=result, perm=[0, 2, 1, 3])

    def between(self, table: str, first: str, length: str, axis: int = 0) -> str:
        """So many rows of a table, from ``first`` on."""
        return self.op("Slice", table, first, self.op("Add", first, length), self.constant([axis]))

    def attend(self, q: str, key: str, value: str, mask: str, name: str) -> str:
        """softmax(Q Kᵀ / √d_k) V of all heads, merged and projected: (B, T, D)."""
        d_k = self.model.get_submodule(f"{name}.w_q").out_features // self.model.config.num_heads
        q = self.op("Mul", q, self.constant(d_k**-0.5))
        scores = self.op("MatMul", q, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        lowest = self.constant(torch.finfo(torch.float32).min)
        weights = self.op("Softmax", self.op("Where", mask, scores, lowest), axis=-1)
        merged = self.op("Transpose", self.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", merged, self.constant([0, 0, -1])), f"{name}.w_o")
