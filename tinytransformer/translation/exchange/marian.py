"""Marian: our weights as a folder that Hugging Face's ``AutoModelForSeq2SeqLM.from_pretrained`` opens.

Marian is the post-norm Transformer of that library, its architecture is the paper's. With pre-norm the same layers are
called Pegasus there, so a pre-norm model becomes a folder of that kind. Two things differ from ours:

- Their sinusoids stand in halves (all sines, then all cosines), the paper's alternate. One permutation of the model's
  features turns one order into the other, and no layer notices: rows and columns of its matrices move along.
- Their search divides by length^α, the paper's by ((5 + length) / 6)^α. The folder asks for the paper's beam and α, and
  for its rule to stop when as many translations have ended as there are beams.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.text.marian_tokenizer import SOURCE, TARGET, VOCABULARY
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import AnyTokenizer
from tinytransformer.translation.exchange.formats import new_folder, require

# What every other format needs, too: they have one table of sinusoids, one matrix of tokens, and heads of equal size.
COMMON = {"positions": "sinusoidal", "tie_embeddings": True, "window": None, "d_k": None, "d_v": None}
FAMILIES = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
BEAM, ALPHA = 4, 0.6
Renaming = tuple[str, str, tuple[int, ...]]  # our name, theirs, and the axes along which features of the stream lie


def stream_order(d_model: int) -> Tensor:
    """Our feature f is Marian's feature order[f]: 0, D/2, 1, D/2 + 1, …"""
    return torch.arange(d_model).view(2, -1).T.flatten()


def renamings(config: TransformerConfig) -> Iterator[Renaming]:
    """Every tensor that both sides have, but for the output's bias, which has one more axis there."""
    yield "embedding.tokens", "model.shared.weight", (1,)
    for stack in ("encoder", "decoder"):
        if config.norm == "pre":
            yield from _norm(f"{stack}.closing", f"model.{stack}.layer_norm")
        for number in range(config.num_layers):
            ours, theirs = f"{stack}.layers.{number}", f"model.{stack}.layers.{number}"
            yield from _attention(f"{ours}.self_attention", f"{theirs}.self_attn")
            if stack == "decoder":
                yield from _attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn")
            yield from _reading(f"{ours}.feed_forward.w_1", f"{theirs}.fc1")
            yield from _writing(f"{ours}.feed_forward.w_2", f"{theirs}.fc2")
            yield from _norm(f"{ours}.feed_forward_residual.norm", f"{theirs}.final_layer_norm")


def _attention(ours: str, theirs: str) -> Iterator[Renaming]:
    for matrix, name in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj")):
        yield from _reading(f"{ours}.{matrix}", f"{theirs}.{name}")
    yield from _writing(f"{ours}.w_o", f"{theirs}.out_proj")
    yield from _norm(f"{ours}_residual.norm", f"{theirs}_layer_norm")


def _reading(ours: str, theirs: str) -> Iterator[Renaming]:
    """A layer that reads the stream of features: the columns of its matrix."""
    yield f"{ours}.weight", f"{theirs}.weight", (1,)
    yield f"{ours}.bias", f"{theirs}.bias", ()


def _writing(ours: str, theirs: str) -> Iterator[Renaming]:
    """A layer that writes into the stream: the rows of its matrix, and its bias."""
    yield f"{ours}.weight", f"{theirs}.weight", (0,)
    yield f"{ours}.bias", f"{theirs}.bias", (0,)


_norm = _writing  # a norm's weight and bias lie along the stream, too


def moved(tensor: Tensor, axes: tuple[int, ...], order: Tensor) -> Tensor:
    """A tensor whose stream features stand in another order."""
    for axis in axes:
        tensor = tensor.index_select(axis, order)
    return tensor


def marian_weights(model: Transformer) -> dict[str, Tensor]:
    """Our weights under their names and in their order: tied matrices once, and sinusoids, or their library warns."""
    c = model.config
    require(c, COMMON, "Marian")
    back = stream_order(c.d_model).argsort()
    ours = {name: tensor.detach().cpu().float() for name, tensor in model.state_dict().items()}
    found = {theirs: moved(ours[name], axes, back).contiguous() for name, theirs, axes in renamings(c)}
    found["final_logits_bias"] = ours.get("embedding.output_bias", torch.zeros(c.vocab_size))[None]
    table = moved(model.positions.table.detach().cpu().float(), (1,), back).contiguous()
    # One tensor for each name: a safetensors file holds no two names for the same memory.
    return {**found, **{f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")}}


def marian_config(c: TransformerConfig) -> dict[str, Any]:
    """The values of a MarianConfig or PegasusConfig that describe the same model."""
    model_type, architecture = FAMILIES[c.norm]
    sizes = {"layers": c.num_layers, "attention_heads": c.num_heads, "ffn_dim": c.d_ff, "layerdrop": 0.0}
    return {
        "model_type": model_type,
        "architectures": [architecture],
        "is_encoder_decoder": True,
        "vocab_size": c.vocab_size,
        "decoder_vocab_size": c.vocab_size,
        "d_model": c.d_model,
        **{f"{stack}_{name}": value for stack in ("encoder", "decoder") for name, value in sizes.items()},
        "activation_function": c.activation,
        "max_position_embeddings": c.max_length,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "dropout": c.dropout,
        "attention_dropout": c.attention_dropout,
        "activation_dropout": 0.0,
        "pad_token_id": c.pad_id,
        "bos_token_id": c.start_id,
        "eos_token_id": c.end_id,
        "decoder_start_token_id": c.start_id,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def generation_config(c: TransformerConfig) -> dict[str, Any]:
    """The search that ``generate`` runs without further words: the paper's beam and α, our rule to stop."""
    return {
        "num_beams": BEAM,
        "length_penalty": ALPHA,
        "early_stopping": True,
        "do_sample": False,
        "max_length": c.max_length,
        "suppress_tokens": sorted({c.pad_id, c.start_id} - {c.end_id}),
        "pad_token_id": c.pad_id,
        "bos_token_id": c.start_id,
        "eos_token_id": c.end_id,
        "decoder_start_token_id": c.start_id,
        "forced_eos_token_id": None,
    }


def tokenizer_files(tokenizer: AnyTokenizer, c: TransformerConfig) -> dict[str, bytes]:
    """Marian's tokenizer with our pieces: one sentencepiece model for both languages, and its ids as a vocabulary."""
    files = dict(tokenizer.files)
    if isinstance(tokenizer, Tokenizer):
        ids = {piece: number for number, piece in enumerate(tokenizer.pieces(range(len(tokenizer))))}
        files = {SOURCE: tokenizer.model, TARGET: tokenizer.model, VOCABULARY: as_json(ids)}
    (start, end, pad) = tokenizer.pieces([c.start_id, c.end_id, c.pad_id])
    names = {"bos_token": start, "eos_token": end, "pad_token": pad, "unk_token": "<unk>"}
    settings = {"tokenizer_class": "MarianTokenizer", "model_max_length": c.max_length, "separate_vocabs": False}
    settings["clean_up_tokenization_spaces"] = False
    return {**files, "tokenizer_config.json": as_json({**settings, **names})}


def export_marian(
    model: Transformer, tokenizer: AnyTokenizer, folder: str | Path, also: Mapping[str, bytes] = MappingProxyType({})
) -> Path:
    """Write a Hugging Face folder: weights, configuration, search, tokenizer, and what is ``also`` given."""
    weights = save(marian_weights(model), metadata={"format": "pt"})
    files = {
        "model.safetensors": weights,
        "config.json": as_json(marian_config(model.config)),
        "generation_config.json": as_json(generation_config(model.config)),
        **tokenizer_files(tokenizer, model.config),
        **also,
    }
    with new_folder(Path(folder)) as part:
        for name, data in files.items():
            (part / name).write_bytes(data)
    return Path(folder)


def as_json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
