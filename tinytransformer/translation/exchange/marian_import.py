"""From Marian: a translator of OPUS-MT, or any other of that architecture, becomes a model folder of ours.

Only JSON, safetensors and sentencepiece files are read: nothing of the folder is executed, and a pickle is refused.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.positions import sinusoids
from tinytransformer.model.transformer import Transformer
from tinytransformer.text.marian_tokenizer import MarianTokenizer
from tinytransformer.training.checkpoints import WEIGHTS, save_model, tensors_from
from tinytransformer.translation.card import SCORES
from tinytransformer.translation.exchange.formats import ExchangeError, unused
from tinytransformer.translation.exchange.marian import FAMILIES, moved, renamings, stream_order

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
_NORMS = {model_type: norm for norm, (model_type, _) in FAMILIES.items()}
# What our model is built for; a folder that says otherwise describes another model.
_FIXED = {
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "static_position_embeddings": True,
    "normalize_embedding": False,
    "layernorm_embedding": False,
    "extra_pos_embeddings": 0,
}
_BIAS = "final_logits_bias"
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_CONVERT = (
    "write it as safetensors once, where you trust the file: "
    "AutoModelForSeq2SeqLM.from_pretrained(FOLDER).save_pretrained(NEW), and copy the tokenizer's files beside it"
)


def import_marian(folder: str | Path, goal: str | Path) -> Path:
    """Read a Marian folder and write it as a model folder of ours, in full precision."""
    unused(Path(goal))
    model, tokenizer = read_marian(folder)
    return save_model(goal, model, tokenizer, _card(Path(folder).resolve().name, model.config), half=False)


def read_marian(folder: str | Path) -> tuple[Transformer, MarianTokenizer]:
    """The model of a Marian folder, in evaluation mode, and its tokenizer."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ExchangeError(f"there is no folder {folder}")
    values = _described(folder)
    weights = _weights(folder)
    config = our_config(values, with_bias=bool(weights.get(_BIAS, torch.zeros(1)).any()))
    tokenizer = MarianTokenizer.load(folder)
    if len(tokenizer) != config.vocab_size:
        raise ExchangeError(
            f"vocab.json of {folder} has {len(tokenizer)} pieces, but the model {config.vocab_size}: "
            "they do not belong together"
        )
    model = Transformer(config).eval()
    model.load_state_dict(our_weights(weights, model), strict=True)
    return model, tokenizer


def _described(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ExchangeError(f"{folder} is not a Marian folder: it has no config.json")
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise ExchangeError(f"{path} is not JSON ({error}): was the file cut short?") from None
    if not isinstance(values, dict):
        raise ExchangeError(f"{path} does not describe a model: it must be one JSON object")
    return values


def _weights(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    if path.is_file():
        return tensors_from(path.read_bytes(), path)
    if (folder / f"{WEIGHTS}.index.json").is_file():
        raise ExchangeError(f"the weights of {folder} lie in several files: save them as one {WEIGHTS}")
    pickles = sorted(one.name for one in folder.glob("*.bin"))
    if pickles:
        raise ExchangeError(f"{folder} has its weights in {pickles[0]}, a pickle, which is not opened: {_CONVERT}")
    raise ExchangeError(f"{folder} is not a Marian folder: it has no {WEIGHTS}")


def our_config(values: Mapping[str, Any], with_bias: bool) -> TransformerConfig:
    """Our configuration for the same model, or an error that names what we have no part for."""
    model_type = values.get("model_type")
    if model_type not in _NORMS:
        raise ExchangeError(f"model_type={model_type!r} cannot be imported: choose a folder of {' or '.join(_NORMS)}")
    for name, wanted in _FIXED.items():
        if values.get(name, wanted) != wanted:
            raise ExchangeError(f"{name}={values[name]!r} cannot be imported: our model is built for {wanted!r}")
    activation = values.get("activation_function", "gelu")
    if activation not in _ACTIVATIONS:
        raise ExchangeError(f"activation_function={activation!r} cannot be imported: we have {', '.join(_ACTIVATIONS)}")
    try:
        return TransformerConfig(
            vocab_size=values["vocab_size"],
            d_model=values["d_model"],
            num_heads=_same_in_both(values, "attention_heads"),
            d_ff=_same_in_both(values, "ffn_dim"),
            num_layers=_same_in_both(values, "layers"),
            dropout=values.get("dropout", 0.1),
            attention_dropout=values.get("attention_dropout", 0.0),
            norm=_NORMS[model_type],
            max_length=values["max_position_embeddings"],
            activation=_ACTIVATIONS[activation],
            output_bias=with_bias,
            pad_id=values["pad_token_id"],
            start_id=values["decoder_start_token_id"],
            end_id=values["eos_token_id"],
        )
    except KeyError as missing:
        raise ExchangeError(f"config.json has no {missing.args[0]}: it does not describe a whole model") from None
    except ValueError as error:
        raise ExchangeError(f"config.json describes no model of ours: {error}") from None


def _same_in_both(values: Mapping[str, Any], name: str) -> int:
    encoder, decoder = values[f"encoder_{name}"], values[f"decoder_{name}"]
    if encoder != decoder:
        raise ValueError(f"encoder_{name}={encoder} but decoder_{name}={decoder}: our two stacks are of one size")
    return encoder


def our_weights(weights: Mapping[str, Tensor], model: Transformer) -> dict[str, Tensor]:
    """Their tensors under our names, in our order of features; shapes, and what must be tied or fixed, are checked."""
    c, order, own = model.config, stream_order(model.config.d_model), model.state_dict()
    weights = {name: tensor.float() for name, tensor in weights.items()}
    shared = next((name for name in ("model.shared.weight", *_TIED) if name in weights), "model.shared.weight")
    found = {}
    for name, theirs, axes in renamings(c):
        theirs = shared if name == "embedding.tokens" else theirs
        found[name] = moved(_shaped(weights, theirs, own[name].shape), axes, order)
    if c.output_bias:
        found["embedding.output_bias"] = _shaped(weights, _BIAS, torch.Size((1, c.vocab_size)))[0]
    for name in _TIED:
        if name in weights and not torch.equal(weights[name], weights[shared]):
            raise ExchangeError(
                f"{name} differs from {shared}: only models with one matrix for all tokens are imported"
            )
    for name in _POSITIONS:
        if name in weights:
            _check_positions(name, weights[name], c)
    known = {theirs for _, theirs, _ in renamings(c)} | {_BIAS, *_TIED, *_POSITIONS}
    unknown = sorted(set(weights) - known)
    if unknown:
        raise ExchangeError(f"our model has no part for {unknown[0]} ({len(unknown)} such tensors in {WEIGHTS})")
    return found


def _shaped(weights: Mapping[str, Tensor], name: str, shape: torch.Size) -> Tensor:
    if name not in weights:
        raise ExchangeError(f"{WEIGHTS} has no {name}, which config.json asks for: do the two belong together?")
    if weights[name].shape != shape:
        raise ExchangeError(
            f"{name} has the shape {tuple(weights[name].shape)}, but by config.json it must be {tuple(shape)}: "
            "do the two belong together?"
        )
    return weights[name]


def _check_positions(name: str, table: Tensor, c: TransformerConfig) -> None:
    expected = moved(sinusoids(c.max_length, c.d_model), (1,), stream_order(c.d_model).argsort())
    # Half precision, and angles that somebody computed in float32, are forgiven.
    if table.shape != expected.shape or (table - expected).abs().max() > 1e-2:
        raise ExchangeError(f"{name} is not the table of sinusoids that config.json promises: are positions learned?")


def _card(name: str, c: TransformerConfig) -> str:
    return (
        f"# {name}\n\nImported from a Marian folder by `python -m tinytransformer import-marian`: a Transformer with "
        f"{c.norm}-norm, d_model {c.d_model}, {c.num_layers} + {c.num_layers} layers, {c.num_heads} heads, "
        f"d_ff {c.d_ff}, {c.activation}, {c.vocab_size:,} pieces. Weights in full precision (fp32), their features in "
        "the paper's order. The model is its makers': ask them for the terms.\n\n"
        f"## Scores\n\n{SCORES}"
    )
