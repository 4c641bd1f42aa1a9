"""To ONNX: the encoder and one step of the decoder as two graphs over one file of weights, with the tokenizer.

``encoder.onnx`` reads ``source`` (batch, source) and gives ``states``, ``mask``, and for each decoder layer the keys
and values of its cross-attention, ``memory.0.key`` and so on, which are the same for all steps.
``decoder.onnx`` reads ``tokens`` (rows, length), ``mask``, these keys and values, and those of all tokens before,
``past.0.key`` (rows, heads, 0 at first, d_k). It gives ``logits`` and, a bit longer, ``present.0.key``: the next past.
Rows may be a multiple of batch: the translations of a sentence that stand next to each other share its memory.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from tinytransformer.model.attention import head_size
from tinytransformer.model.transformer import Transformer
from tinytransformer.training.checkpoints import CONFIG, AnyTokenizer, write_folder
from tinytransformer.translation.exchange.formats import require, unused
from tinytransformer.translation.exchange.marian import as_json
from tinytransformer.translation.exchange.onnx_graph import WEIGHTS, Graph, Weights
from tinytransformer.translation.exchange.onnx_int8 import Int8Graph

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
GRAPHS = (ENCODER, DECODER, WEIGHTS)


def export_onnx(
    model: Transformer,
    tokenizer: AnyTokenizer,
    folder: str | Path,
    int8: bool = False,
    also: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Write a folder with both graphs, in float32 or with matrices of 8-bit integers, and all that a program needs."""
    require(model.config, {}, "ONNX")
    unused(Path(folder))
    weights, kind = Weights(), Int8Graph if int8 else Graph
    graphs = {ENCODER: _encoder(kind(model, weights)), DECODER: _decoder(kind(model, weights))}
    files = {**graphs, WEIGHTS: bytes(weights.data), CONFIG: as_json(asdict(model.config)), **tokenizer.files}
    return write_folder(Path(folder), {**files, **also})


def layer_names(kind: str, number: int) -> list[str]:
    """What keys and values of one layer are called: of the memory, the past or the present."""
    return [f"{kind}.{number}.key", f"{kind}.{number}.value"]


def _encoder(g: Graph) -> bytes:
    c = g.model.config
    source = g.input("source", "int64", "batch", "source")
    real = g.op("Not", g.op("Equal", source, g.constant([c.pad_id])))
    mask = g.op("Unsqueeze", real, g.constant([1, 2]), result=g.output("mask", "bool", "batch", 1, 1, "source"))
    first, length = g.constant([0]), g.size(source, 1)
    seen = g.op("And", mask, _window(g, first, length)) if c.window is not None else mask
    x = g.embedded(source, "source", first)
    for number in range(c.num_layers):
        name = f"encoder.layers.{number}"
        x = g.residual(x, f"{name}.self_attention_residual", lambda h, n=name: _self_attention(g, h, n, seen))
        x = g.residual(x, f"{name}.feed_forward_residual", lambda h, n=name: g.feed_forward(h, f"{n}.feed_forward"))
    states = g.op(
        "Identity", g.closing(x, "encoder.closing"), result=g.output("states", "float", "batch", "source", c.d_model)
    )
    for number in range(c.num_layers):
        for name, part in zip(layer_names("memory", number), "kv", strict=True):
            projected = g.linear(states, f"decoder.layers.{number}.cross_attention.w_{part}")
            g.heads(projected, result=g.output(name, "float", "batch", c.num_heads, "source", _size(g, part)))
    return g.finished("encoder", __doc__)


def _self_attention(g: Graph, h: str, name: str, mask: str) -> str:
    attention, first = f"{name}.self_attention", g.constant([0])
    q, k, v = (g.heads(g.linear(h, f"{attention}.w_{part}")) for part in "qkv")
    return g.attend(_turned(g, q, first), _turned(g, k, first), v, mask, attention)


def _decoder(g: Graph) -> bytes:
    c = g.model.config
    tokens = g.input("tokens", "int64", "rows", "length")
    memory_mask = g.input("mask", "bool", "batch", 1, 1, "source")
    for kind, rows, length in (("memory", "batch", "source"), ("past", "rows", "before")):
        for number in range(c.num_layers):
            for name, part in zip(layer_names(kind, number), "kv", strict=True):
                g.input(name, "float", rows, c.num_heads, length, _size(g, part))
    first, length = g.size("past.0.key", 2), g.size(tokens, 1)
    mask = _causal(g, first, length)
    x = g.embedded(tokens, "target", first)
    g.output("logits", "float", "rows", "length", c.vocab_size)
    for number in range(c.num_layers):
        x = _decoder_layer(g, x, number, mask, memory_mask, first)
    g.logits(g.closing(x, "decoder.closing"), result="logits")
    return g.finished("decoder", __doc__)


def _decoder_layer(g: Graph, x: str, number: int, mask: str, memory_mask: str, first: str) -> str:
    name = f"decoder.layers.{number}"

    def look_back(h: str) -> str:
        attention = f"{name}.self_attention"
        q, k, v = (g.heads(g.linear(h, f"{attention}.w_{part}")) for part in "qkv")
        new = {"k": _turned(g, k, first), "v": v}
        grown = []
        names = zip(layer_names("past", number), layer_names("present", number), "kv", strict=True)
        for past, present, part in names:
            g.output(present, "float", "rows", g.model.config.num_heads, "before + length", _size(g, part))
            grown.append(g.op("Concat", past, new[part], result=present, axis=2))
        return g.attend(_turned(g, q, first), *grown, mask, attention)

    def look_at_memory(h: str) -> str:
        """Translations of one sentence ask its keys together, as one longer row of queries."""
        attention, memory = f"{name}.cross_attention", layer_names("memory", number)
        features = g.constant([g.model.config.d_model])
        together = g.op("Concat", g.size(memory[0], 0), g.constant([-1]), features, axis=0)
        q = g.heads(g.linear(g.op("Reshape", h, together), f"{attention}.w_q"))
        return g.op("Reshape", g.attend(q, *memory, memory_mask, attention), g.op("Shape", h))

    x = g.residual(x, f"{name}.self_attention_residual", look_back)
    x = g.residual(x, f"{name}.cross_attention_residual", look_at_memory)
    return g.residual(x, f"{name}.feed_forward_residual", lambda h: g.feed_forward(h, f"{name}.feed_forward"))


def _size(g: Graph, part: str) -> int:
    """Features of a key or a value in one head."""
    c = g.model.config
    return head_size(f"d_{part}", getattr(c, f"d_{part}"), c.d_model, c.num_heads)


def _turned(g: Graph, heads: str, first: str) -> str:
    """Queries or keys (B, H, T, d_k), turned where positions are rotary: features 2i and 2i + 1 together."""
    if g.model.config.positions != "rotary":
        return heads
    table, length = g.model.positions.table, g.size(heads, 2)
    sine, cosine = (
        g.between(g.weight(f"positions.{name}", table[:, start::2].contiguous()), first, length)
        for start, name in enumerate(("sine", "cosine"))
    )
    even, odd = (
        g.op("Slice", heads, g.constant([start]), g.constant([2**31]), g.constant([3]), g.constant([2]))
        for start in (0, 1)
    )
    pairs = (
        g.op("Sub", g.op("Mul", even, cosine), g.op("Mul", odd, sine)),
        g.op("Add", g.op("Mul", even, sine), g.op("Mul", odd, cosine)),
    )
    stacked = g.op("Concat", *(g.op("Unsqueeze", one, g.constant([-1])) for one in pairs), axis=-1)
    return g.op("Reshape", stacked, g.constant([0, 0, 0, table.size(1)]))


def _positions(g: Graph, first: str, length: str) -> tuple[str, str]:
    """The positions of the queries as a column, and of the keys as a row."""
    end = g.op("Squeeze", g.op("Add", first, length), g.constant([0]))
    keys = g.op("Range", g.constant(0), end, g.constant(1))
    queries = g.op("Unsqueeze", g.between(keys, first, length), g.constant([1]))
    return queries, keys


def _causal(g: Graph, first: str, length: str) -> str:
    """No look into the future, and none beyond the window."""
    queries, keys = _positions(g, first, length)
    mask = g.op("LessOrEqual", keys, queries)
    return mask if g.model.config.window is None else g.op("And", mask, _window(g, first, length))


def _window(g: Graph, first: str, length: str) -> str:
    queries, keys = _positions(g, first, length)
    distance = g.op("Abs", g.op("Sub", keys, queries))
    return g.op("LessOrEqual", distance, g.constant(g.model.config.window))
