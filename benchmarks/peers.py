"""Our model in the hands of its peers: the same sizes, or the same weights, in `transformers` and in CTranslate2.

The benchmarks import from here. A peer that is not installed is named and left out; see benchmarks/requirements.txt.
"""

import importlib
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from tinytransformer import Transformer, TransformerConfig


def present(names: Mapping[str, str]) -> set[str]:
    """Which of the peers can be imported; ``names`` gives the module behind each. The others are named on stderr."""
    found = set()
    for name, module in names.items():
        try:
            importlib.import_module(module)
            found.add(name)
        except ImportError as error:
            print(f"left out: {name} ({error}); see benchmarks/requirements.txt", file=sys.stderr)
    return found


def in_turns(systems: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each system, measured A B C A B C …, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for turn in range(rounds + 1):
        for name, run in systems.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratios(seconds: Mapping[str, Sequence[float]], ours: str) -> dict[str, float]:
    """How many times faster we are than each other system: the ratio of medians."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {name: median / medians[ours] for name, median in medians.items() if name != ours}


def transformers_model(config: TransformerConfig) -> nn.Module:
    """A model of the same sizes: Marian is that library's post-norm Transformer, Pegasus the same with pre-norm."""
    import transformers

    c = config
    family = {"post": "Marian", "pre": "Pegasus"}[c.norm]
    model_class = {"Marian": "MarianMTModel", "Pegasus": "PegasusForConditionalGeneration"}[family]
    sizes = getattr(transformers, f"{family}Config")(
        vocab_size=c.vocab_size,
        d_model=c.d_model,
        encoder_layers=c.num_layers,
        decoder_layers=c.num_layers,
        encoder_attention_heads=c.num_heads,
        decoder_attention_heads=c.num_heads,
        encoder_ffn_dim=c.d_ff,
        decoder_ffn_dim=c.d_ff,
        activation_function=c.activation,
        max_position_embeddings=c.max_length,
        scale_embedding=True,
        dropout=c.dropout,
        attention_dropout=c.attention_dropout,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        pad_token_id=c.pad_id,
        bos_token_id=c.start_id,
        eos_token_id=c.end_id,
        decoder_start_token_id=c.start_id,
        forced_eos_token_id=None,
        attn_implementation="sdpa",
    )
    return getattr(transformers, model_class)(sizes)


def to_transformers(model: Transformer) -> nn.Module:
    """Our weights in that library's model. Its table of positions is replaced by ours, which has another layout."""
    theirs = transformers_model(_known_to_all(model.config)).eval()
    state = {"model.shared.weight": model.embedding.tokens, "lm_head.weight": model.embedding.tokens}
    for stack in ("encoder", "decoder"):
        state[f"model.{stack}.embed_tokens.weight"] = model.embedding.tokens
        state[f"model.{stack}.embed_positions.weight"] = model.positions.table
        _rename(state, getattr(model, stack).closing, f"model.{stack}.layer_norm")
        for number, layer in enumerate(getattr(model, stack).layers):
            their_layer = f"model.{stack}.layers.{number}"
            for ours, name in (("self_attention", "self_attn"), ("cross_attention", "encoder_attn")):
                if hasattr(layer, ours):
                    for projection, letter in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj")):
                        _rename(state, getattr(getattr(layer, ours), projection), f"{their_layer}.{name}.{letter}")
                    _rename(state, getattr(layer, ours).w_o, f"{their_layer}.{name}.out_proj")
                    _rename(state, getattr(layer, f"{ours}_residual").norm, f"{their_layer}.{name}_layer_norm")
            _rename(state, layer.feed_forward.w_1, f"{their_layer}.fc1")
            _rename(state, layer.feed_forward.w_2, f"{their_layer}.fc2")
            _rename(state, layer.feed_forward_residual.norm, f"{their_layer}.final_layer_norm")
    state["final_logits_bias"] = _output_bias(model)[None]
    theirs.load_state_dict(state, strict=True)
    return theirs


def to_ctranslate2(model: Transformer, folder: Path) -> Path:
    """Our weights in a CTranslate2 model folder, float32. Its vocabulary consists of the ids, written as text."""
    from ctranslate2 import specs

    c = _known_to_all(model.config)
    spec = specs.TransformerSpec.from_config(
        (c.num_layers, c.num_layers), c.num_heads, pre_norm=c.norm == "pre", activation=specs.Activation.RELU
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
            attention = layer.self_attention
            _linear(their_layer.self_attention.linear[0], attention.w_q, attention.w_k, attention.w_v)
            _linear(their_layer.self_attention.linear[1], attention.w_o)
            _norm(their_layer.self_attention.layer_norm, layer.self_attention_residual.norm)
            if name == "decoder":
                attention = layer.cross_attention
                _linear(their_layer.attention.linear[0], attention.w_q)
                _linear(their_layer.attention.linear[1], attention.w_k, attention.w_v)
                _linear(their_layer.attention.linear[2], attention.w_o)
                _norm(their_layer.attention.layer_norm, layer.cross_attention_residual.norm)
            _linear(their_layer.ffn.linear_0, layer.feed_forward.w_1)
            _linear(their_layer.ffn.linear_1, layer.feed_forward.w_2)
            _norm(their_layer.ffn.layer_norm, layer.feed_forward_residual.norm)
    spec.decoder.projection.weight = _array(model.embedding.tokens)
    spec.decoder.projection.bias = _array(_output_bias(model))
    ids = [str(number) for number in range(c.vocab_size)]
    spec.register_source_vocabulary(ids)
    spec.register_target_vocabulary(ids)
    spec.config.bos_token = spec.config.decoder_start_token = str(c.start_id)
    spec.config.eos_token = str(c.end_id)
    spec.config.unk_token = "3"
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return folder


def _known_to_all(config: TransformerConfig) -> TransformerConfig:
    wanted = {"positions": "sinusoidal", "activation": "relu", "tie_embeddings": True, "window": None}
    wanted |= {"d_k": None, "d_v": None}
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise SystemExit(f"the peers cannot run this model: {name}={getattr(config, name)!r}, they need {value!r}")
    return config


def _output_bias(model: Transformer) -> Tensor:
    bias = model.embedding.output_bias
    return torch.zeros(model.config.vocab_size) if bias is None else bias.detach()


def _rename(state: dict[str, Tensor], module: nn.Module, name: str) -> None:
    state.update({f"{name}.{key}": value for key, value in module.state_dict().items()})


def _array(tensor: Tensor):
    return tensor.detach().contiguous().numpy()


def _linear(spec, *layers: nn.Linear) -> None:
    """Several layers that read the same input become one."""
    spec.weight = _array(torch.cat([layer.weight for layer in layers]))
    spec.bias = _array(torch.cat([layer.bias for layer in layers]))


def _norm(spec, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)
