"""What several test files need."""

import itertools
import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tinytransformer import Transformer, TransformerConfig

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
