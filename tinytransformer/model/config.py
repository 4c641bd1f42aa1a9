"""The configuration: every choice that shapes the model, the words for them, and the classes the words stand for.

Only transformer.py and families.py read a configuration; all parts take plain numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType

import torch.nn.functional as F

from tinytransformer.model.attention import head_size
from tinytransformer.model.layers import PostNorm, PreNorm, SeparateEmbeddings, TiedEmbedding
from tinytransformer.model.positions import LearnedPositions, NoPositions, RotaryPositions, SinusoidalPositions

NORMS = {"post": PostNorm, "pre": PreNorm}
POSITIONS = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "none": NoPositions,
}
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}
EMBEDDINGS = {True: TiedEmbedding, False: SeparateEmbeddings}


@dataclass(frozen=True)
class TransformerConfig:
    """Every choice that shapes the model. The defaults are the paper's base model; max_length is ours."""

    vocab_size: int  # tokens, shared by source and target
    d_model: int = 512  # features of a token on its way through the layers
    num_heads: int = 8
    d_ff: int = 2048  # features inside the feed-forward network
    num_layers: int = 6  # in the encoder, and as many in the decoder
    dropout: float = 0.1  # on sub-layer outputs and on the sums of embeddings and positions
    attention_dropout: float = 0.0  # on attention weights
    d_k: int | None = None  # features of a query or key in one head; d_model / num_heads when not given
    d_v: int | None = None  # features of a value in one head; likewise
    norm: str = "post"  # where LayerNorm stands: post (the paper) or pre
    positions: str = "sinusoidal"  # sinusoidal (the paper), learned, rotary, none
    max_length: int = 512  # tokens a sentence may have
    window: int | None = None  # self-attention sees so many positions to each side; all when not given
    tie_embeddings: bool = True  # one matrix for source, target and output
    activation: str = "relu"  # relu (the paper), gelu, silu
    output_bias: bool = False
    pad_id: int = 0
    start_id: int = 1
    end_id: int = 2

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_length"):
            _require_whole(name, getattr(self, name), at_least=1)
        for name, least in (("d_k", 1), ("d_v", 1), ("window", 0)):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name), at_least=least)
        for name in ("dropout", "attention_dropout"):
            if not (isinstance(getattr(self, name), Real) and 0.0 <= getattr(self, name) < 1.0):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is outside [0, 1): the paper uses 0.1; 0 switches it off"
                )
        for name, known in (("norm", NORMS), ("positions", POSITIONS), ("activation", ACTIVATIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown: choose one of {', '.join(known)}")
        for name in ("tie_embeddings", "output_bias"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False")
        for name in ("pad_id", "start_id", "end_id"):
            _require_whole(name, getattr(self, name), at_least=0)
            if getattr(self, name) >= self.vocab_size:
                raise ValueError(
                    f"{name}={getattr(self, name)} is outside the vocabulary: choose one of 0 … {self.vocab_size - 1}"
                )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model={self.d_model} is odd, but sinusoids come in pairs of sine and cosine: "
                "make it even, or choose other positions"
            )
        d_k = head_size("d_k", self.d_k, self.d_model, self.num_heads)
        head_size("d_v", self.d_v, self.d_model, self.num_heads)
        if self.positions == "rotary" and d_k % 2:
            raise ValueError(f"d_k={d_k} is odd, but rotary positions turn pairs of features: make d_k even")


def _require_whole(name: str, value: object, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {at_least}")


def _preset(**sizes: float) -> Mapping[str, float]:
    return MappingProxyType(sizes)


# Use: TransformerConfig(vocab_size=37_000, **PRESETS["base"]). The first two are the paper's (Table 3; big with the
# dropout of its English-German model); the others are the course's own: one to train on two cores, one to
# take apart by hand.
PRESETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "base": _preset(d_model=512, num_heads=8, d_ff=2048, num_layers=6, dropout=0.1),
        "big": _preset(d_model=1024, num_heads=16, d_ff=4096, num_layers=6, dropout=0.3),
        "small": _preset(d_model=128, num_heads=4, d_ff=256, num_layers=4, dropout=0.1),
        "tiny": _preset(d_model=32, num_heads=4, d_ff=64, num_layers=2, dropout=0.0),
    }
)
