"""What the paper reports: Tables 1 to 4 as values, so that every lesson prints them from one place.

Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762. What a table leaves empty is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class LayerType:
    """A row of Table 1: how costs grow with the length n and the features d; k is a kernel's size, r a window's."""

    name: str
    operations: str
    sequential: str
    path: str


TABLE1 = (
    LayerType("self-attention", "O(n²·d)", "O(1)", "O(1)"),
    LayerType("recurrent", "O(n·d²)", "O(n)", "O(n)"),
    LayerType("convolutional", "O(k·n·d²)", "O(1)", "O(log_k n)"),
    LayerType("self-attention (restricted)", "O(r·n·d)", "O(1)", "O(n/r)"),
)
# The text of section 4 adds two: contiguous kernels need O(n/k) layers, and log_k n holds for dilated ones; a separable
# convolution takes O(k·n·d + n·d²).


@dataclass(frozen=True)
class System:
    """A row of Table 2: BLEU on newstest2014 and the operations that training took, for German and for French."""

    name: str
    bleu_german: float | None
    bleu_french: float | None
    operations_german: float | None
    operations_french: float | None
    ensemble: bool = False


TABLE2 = (
    System("ByteNet", 23.75, None, None, None),
    System("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    System("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    System("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    System("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    System("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20, ensemble=True),
    System("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21, ensemble=True),
    System("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21, ensemble=True),
    System("Transformer (base)", 27.3, 38.1, 3.3e18, 3.3e18),
    System("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19),
)


@dataclass(frozen=True)
class Training:
    """How a model of Table 2 was trained (sections 5.1 to 5.3), and what Table 2 says that it cost."""

    hours: float
    steps: int
    operations: float
    gpus: int = 8  # NVIDIA P100
    source_tokens: int = 25_000  # in a batch, "approximately"
    target_tokens: int = 25_000
    vocabulary: int = 37_000  # English and German together


TRAINING: Mapping[str, Training] = MappingProxyType(
    {
        "base": Training(hours=12.0, steps=100_000, operations=3.3e18),
        "big": Training(hours=3.5 * 24, steps=300_000, operations=2.3e19),
    }
)
# The footnote to section 6.1: sustained single-precision TFLOPS, as the authors estimate them.
SUSTAINED_TFLOPS: Mapping[str, float] = MappingProxyType({"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5})


@dataclass(frozen=True)
class Variation:
    """A row of Table 3: what differs from the base model, and the scores on newstest2013 (English to German)."""

    group: str
    changes: Mapping[str, float | str]
    perplexity: float  # per piece of the byte-pair encoding
    bleu: float
    millions: float | None = None  # parameters; None: as many as the base model


def _row(group: str, perplexity: float, bleu: float, millions: float | None = None, **changes: float | str):
    return Variation(group, MappingProxyType(changes), perplexity, bleu, millions)


# Names of settings are those of TransformerConfig, with label_smoothing and steps of training added.
TABLE3_BASE: Mapping[str, float | str] = MappingProxyType(
    {
        "num_layers": 6,
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "d_k": 64,
        "d_v": 64,
        "dropout": 0.1,
        "label_smoothing": 0.1,
        "positions": "sinusoidal",
        "steps": 100_000,
    }
)
TABLE3 = (
    _row("base", 4.92, 25.8, 65),
    _row("A", 5.29, 24.9, num_heads=1, d_k=512, d_v=512),
    _row("A", 5.00, 25.5, num_heads=4, d_k=128, d_v=128),
    _row("A", 4.91, 25.8, num_heads=16, d_k=32, d_v=32),
    _row("A", 5.01, 25.4, num_heads=32, d_k=16, d_v=16),
    _row("B", 5.16, 25.1, 58, d_k=16),
    _row("B", 5.01, 25.4, 60, d_k=32),
    _row("C", 6.11, 23.7, 36, num_layers=2),
    _row("C", 5.19, 25.3, 50, num_layers=4),
    _row("C", 4.88, 25.5, 80, num_layers=8),
    _row("C", 5.75, 24.5, 28, d_model=256, d_k=32, d_v=32),
    _row("C", 4.66, 26.0, 168, d_model=1024, d_k=128, d_v=128),
    _row("C", 5.12, 25.4, 53, d_ff=1024),
    _row("C", 4.75, 26.2, 90, d_ff=4096),
    _row("D", 5.77, 24.6, dropout=0.0),
    _row("D", 4.95, 25.5, dropout=0.2),
    _row("D", 4.67, 25.3, label_smoothing=0.0),
    _row("D", 5.47, 25.7, label_smoothing=0.2),
    _row("E", 4.92, 25.7, positions="learned"),
    _row("big", 4.33, 26.4, 213, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3, steps=300_000),
)


@dataclass(frozen=True)
class Parser:
    """A row of Table 4: labelled bracket F1 on section 23 of the Wall Street Journal."""

    name: str
    training: str
    f1: float


TABLE4 = (
    Parser("Vinyals & Kaiser et al. (2014)", "WSJ only, discriminative", 88.3),
    Parser("Petrov et al. (2006)", "WSJ only, discriminative", 90.4),
    Parser("Zhu et al. (2013)", "WSJ only, discriminative", 90.4),
    Parser("Dyer et al. (2016)", "WSJ only, discriminative", 91.7),
    Parser("Transformer (4 layers)", "WSJ only, discriminative", 91.3),
    Parser("Zhu et al. (2013)", "semi-supervised", 91.3),
    Parser("Huang & Harper (2009)", "semi-supervised", 91.3),
    Parser("McClosky et al. (2006)", "semi-supervised", 92.1),
    Parser("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1),
    Parser("Transformer (4 layers)", "semi-supervised", 92.7),
    Parser("Luong et al. (2015)", "multi-task", 93.0),
    Parser("Dyer et al. (2016)", "generative", 93.3),
)
