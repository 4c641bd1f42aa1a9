"""CTranslate2: our weights in the folder of an engine in C++ that runs translators on CPUs and GPUs.

The model is described to the engine directly, layer by layer, so that no other library stands between. Its vocabulary
consists of the tokenizer's pieces; the tokenizer itself lies beside it, for the engine takes pieces, not text.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from tinytransformer.model.layers import DecoderLayer, EncoderLayer
from tinytransformer.model.transformer import Transformer
from tinytransformer.training.checkpoints import AnyTokenizer
from tinytransformer.translation.exchange.formats import new_folder, package, require
from tinytransformer.translation.exchange.marian import COMMON, tokenizer_files

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


def export_ctranslate2(
    model: Transformer, tokenizer: AnyTokenizer, folder: str | Path, also: Mapping[str, bytes] = MappingProxyType({})
) -> Path:
    """Write a CTranslate2 folder in float32; beside it the tokenizer's files, and what is ``also`` given."""
    pieces = tokenizer.pieces(range(len(tokenizer)))
    return write_ctranslate2(model, pieces, folder, {**tokenizer_files(tokenizer, model.config), **also})


def write_ctranslate2(
    model: Transformer, vocabulary: Sequence[str], folder: str | Path, files: dict[str, bytes] | None = None
) -> Path:
    """Write a CTranslate2 folder whose vocabulary is given: a name for each id."""
    specs = package("ctranslate2.specs")
    c = model.config
    require(c, COMMON, "CTranslate2")
    activation = getattr(specs.Activation, _ACTIVATIONS[c.activation])
    spec = specs.TransformerSpec.from_config(
        (c.num_layers, c.num_layers), c.num_heads, pre_norm=c.norm == "pre", activation=activation
    )
    for name, theirs in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack = getattr(model, name)
        embeddings = theirs.embeddings[0] if name == "encoder" else theirs.embeddings
        embeddings.weight = _array(model.embedding.tokens)
        theirs.scale_embeddings = math.sqrt(c.d_model)
        theirs.position_encodings.encodings = _array(model.positions.table)
        if c.norm == "pre":
            _norm(theirs.layer_norm, stack.closing)
        for layer, their_layer in zip(stack.layers, theirs.layer, strict=True):
            _layer(their_layer, layer)
    spec.decoder.projection.weight = _array(model.embedding.tokens)
    spec.decoder.projection.bias = _array(output_bias(model))
    _words(spec, list(vocabulary), model)
    spec.validate()
    spec.optimize()
    with new_folder(Path(folder)) as part:
        spec.save(str(part))
        for name, data in (files or {}).items():
            (part / name).write_bytes(data)
    return Path(folder)


def output_bias(model: Transformer) -> Tensor:
    """The bias of the output, zeros where there is none."""
    bias = model.embedding.output_bias
    return torch.zeros(model.config.vocab_size) if bias is None else bias.detach()


def _layer(theirs: Any, layer: EncoderLayer) -> None:
    attention = layer.self_attention
    _linear(theirs.self_attention.linear[0], attention.w_q, attention.w_k, attention.w_v)
    _linear(theirs.self_attention.linear[1], attention.w_o)
    _norm(theirs.self_attention.layer_norm, layer.self_attention_residual.norm)
    if isinstance(layer, DecoderLayer):
        attention = layer.cross_attention
        _linear(theirs.attention.linear[0], attention.w_q)
        _linear(theirs.attention.linear[1], attention.w_k, attention.w_v)
        _linear(theirs.attention.linear[2], attention.w_o)
        _norm(theirs.attention.layer_norm, layer.cross_attention_residual.norm)
    _linear(theirs.ffn.linear_0, layer.feed_forward.w_1)
    _linear(theirs.ffn.linear_1, layer.feed_forward.w_2)
    _norm(theirs.ffn.layer_norm, layer.feed_forward_residual.norm)


def _words(spec: Any, vocabulary: list[str], model: Transformer) -> None:
    c = model.config
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.decoder_start_token = vocabulary[c.start_id]
    spec.config.eos_token = vocabulary[c.end_id]
    spec.config.unk_token = "<unk>" if "<unk>" in vocabulary else vocabulary[3]
    spec.config.add_source_bos = spec.config.add_source_eos = False


def _linear(spec: Any, *layers: nn.Linear) -> None:
    """Several layers that read the same input become one."""
    spec.weight = _array(torch.cat([layer.weight for layer in layers]))
    spec.bias = _array(torch.cat([layer.bias for layer in layers]))


def _norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().cpu().float().contiguous().numpy()
