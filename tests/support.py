"""What several test files need."""

import itertools
import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tinytransformer import MultiHeadAttention, Transformer, TransformerConfig
from tinytransformer.model import DecoderLayer, EncoderLayer

NORMS = ("post", "pre")
POSITIONS = ("sinusoidal", "learned", "rotary", "none")
COMBINATIONS = list(itertools.product(NORMS, POSITIONS))
VOCAB = 31
MULTI30K = Path(os.environ.get("TINYTRANSFORMER_DATA") or Path(__file__).resolve().parents[2] / "shared" / "multi30k")
needs_multi30k = pytest.mark.skipif(
    not (MULTI30K / "train.en.gz").is_file(), reason="Multi30k is not here; name its folder in TINYTRANSFORMER_DATA"
)


def randomise(module: nn.Module) -> nn.Module:
    """Every weight random, biases and norms too: at their start values they would hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=parameter.size(-1) ** -0.5)
            else:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def small_model(**changes) -> Transformer:
    """A small model in evaluation mode with random weights, the same ones each time."""
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCAB, "d_model": 16, "num_heads": 4, "d_ff": 24, "num_layers": 2, "max_length": 40}
    return randomise(Transformer(TransformerConfig(**{**sizes, **changes}))).eval()


def random_ids(batch: int, length: int, padding: int = 0) -> Tensor:
    """Ids without padding, but for the last ``padding`` places of every row after the first."""
    ids = torch.randint(3, VOCAB, (batch, length))
    if padding:
        ids[1:, -padding:] = 0
    return ids


def max_difference(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def load_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    """Our weights in PyTorch's attention."""
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]),
            "in_proj_bias": torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias]),
            "out_proj.weight": ours.w_o.weight,
            "out_proj.bias": ours.w_o.bias,
        }
    )


def load_layer(theirs: nn.Module, ours: EncoderLayer) -> None:
    """Our weights in PyTorch's encoder or decoder layer."""
    load_attention(theirs.self_attn, ours.self_attention)
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    residuals = [ours.self_attention_residual, ours.feed_forward_residual]
    if isinstance(ours, DecoderLayer):
        load_attention(theirs.multihead_attn, ours.cross_attention)
        residuals.insert(1, ours.cross_attention_residual)
    for number, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())
