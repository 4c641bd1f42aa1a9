"""The models before the Transformer as whole models: token ids in, logits out, by the methods of `Transformer`.

So they train in the same loop, decode by the same search and are scored by the same functions. `ARCHITECTURES` names
them all, the Transformer among them, and `build_model` builds any of them from its configuration.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from torch import Tensor, nn

from tinytransformer.model.cells import CELLS
from tinytransformer.model.config import EMBEDDINGS, TransformerConfig
from tinytransformer.model.convolutional import ConvDecoder, ConvEncoder, DilatedDecoder, DilatedEncoder
from tinytransformer.model.masks import padding_mask
from tinytransformer.model.recurrent import AdditiveDecoder, DotDecoder, RecurrentDecoder, RecurrentEncoder
from tinytransformer.model.stepping import SourceMemory, StateCache, SteppingDecoder
from tinytransformer.model.transformer import Transformer


@dataclass(frozen=True)
class BaselineConfig:
    """Every choice that shapes a baseline. What has a name in `TransformerConfig` means the same here."""

    architecture: str  # a name of ARCHITECTURES other than transformer
    vocab_size: int
    d_model: int = 128
    num_layers: int = 2  # in the encoder, and as many in the decoder
    dropout: float = 0.1
    kernel: int = 3  # positions of a window; convolutional ones only
    bidirectional: bool = True  # whether the encoder reads both ways; recurrent ones only
    max_length: int = 512
    tie_embeddings: bool = True
    output_bias: bool = False
    pad_id: int = 0
    start_id: int = 1
    end_id: int = 2

    def __post_init__(self):
        if self.architecture not in ARCHITECTURES or self.architecture == "transformer":
            known = ", ".join(name for name in ARCHITECTURES if name != "transformer")
            raise ValueError(
                f"architecture={self.architecture!r} is no baseline: choose one of {known}, "
                "or TransformerConfig for the Transformer"
            )
        names = {field.name for field in fields(TransformerConfig)}
        shared = {field.name: getattr(self, field.name) for field in fields(self) if field.name in names}
        TransformerConfig(**shared, num_heads=1, positions="none")  # refuses what is wrong with them
        if type(self.kernel) is not int or self.kernel < 1 or self.kernel % 2 == 0:
            raise ValueError(
                f"kernel={self.kernel!r} must be an odd whole number, such as 3: an encoder's window has a middle"
            )
        if not isinstance(self.bidirectional, bool):
            raise ValueError(f"bidirectional={self.bidirectional!r} must be True or False")
        if self.d_model % 2:
            raise ValueError(f"d_model={self.d_model} is odd, but a direction of a layer has half of it: make it even")


class Baseline(nn.Module):
    """An encoder and a decoder of the same width around one embedding, with the methods of `Transformer`."""

    # These ask for nothing but ``config`` and ``embedding``.
    forward = Transformer.forward
    logits = Transformer.logits
    _check_ids = Transformer._check_ids
    _check_target = Transformer._check_target

    def __init__(self, config: BaselineConfig, encoder: nn.Module, decoder: SteppingDecoder):
        super().__init__()
        self.config = config
        self.embedding = EMBEDDINGS[config.tie_embeddings](config.vocab_size, config.d_model, config.output_bias)
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, source: Tensor) -> SourceMemory:
        """Source ids (B, S), padded on the right, to what the decoder needs of them."""
        self._check_ids("source", source)
        return self.encoder(self.embedding.source(source), padding_mask(source, self.config.pad_id))

    def decode(self, target_in: Tensor, memory: SourceMemory) -> Tensor:
        """Target ids (B, T) to decoder states (B, T, D), before the projection to logits."""
        self._check_target(target_in, memory.mask.size(0))
        return self.decoder(self.embedding.target(target_in), memory)

    def step(self, tokens: Tensor, memory: SourceMemory, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The next target tokens (B, T) to their logits (B, T, V) and the cache after them; see `Transformer.step`."""
        cache = self.decoder.start(memory) if cache is None else cache
        self._check_target(tokens, cache.rows, cache.length)
        states, cache = self.decoder.step(self.embedding.target(tokens), cache)
        return self.logits(states), cache

    def attentions(self) -> Iterator[tuple[str, int, nn.Module]]:
        """Every attention of the model with its kind, which is cross, and its number from the first on."""
        for number, attention in enumerate(self.decoder.attentions()):
            yield "cross", number, attention


Config = TransformerConfig | BaselineConfig
Model = Transformer | Baseline


@dataclass(frozen=True)
class Architecture:
    """A kind of model: in words, for its card, and the function that builds it from its configuration."""

    words: str
    build: Callable[[Config], Model]


def _recurrent(cell: str, decoder: type[RecurrentDecoder]) -> Callable[[BaselineConfig], Baseline]:
    def build(c: BaselineConfig) -> Baseline:
        encoder = RecurrentEncoder(cell, c.d_model, c.num_layers, c.dropout, c.bidirectional)
        return Baseline(c, encoder, decoder(cell, c.d_model, c.num_layers, c.dropout))

    return build


def _convs2s(c: BaselineConfig) -> Baseline:
    sizes = (c.d_model, c.num_layers, c.kernel, c.max_length, c.dropout)
    return Baseline(c, ConvEncoder(*sizes), ConvDecoder(*sizes))


def _bytenet(c: BaselineConfig) -> Baseline:
    sizes = (c.d_model, c.num_layers, c.kernel, c.dropout)
    return Baseline(c, DilatedEncoder(*sizes), DilatedDecoder(*sizes))


_CELLS = {"rnn": "plain recurrent layers", "gru": "GRU layers", "lstm": "LSTM layers"}
_DECODERS = {
    "": ("without attention", RecurrentDecoder),
    "-additive": ("with additive attention", AdditiveDecoder),
    "-dot": ("with dot-product attention", DotDecoder),
}
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "transformer": Architecture("Transformer", Transformer),
        **{
            f"{cell}{ending}": Architecture(f"encoder–decoder of {_CELLS[cell]} {words}", _recurrent(cell, decoder))
            for ending, (words, decoder) in _DECODERS.items()
            for cell in CELLS
        },
        "convs2s": Architecture("encoder–decoder of gated convolutions with attention in every layer", _convs2s),
        "bytenet": Architecture("encoder–decoder of dilated convolutions without attention", _bytenet),
    }
)


def architecture_of(config: Config) -> str:
    """The name of the architecture that a configuration belongs to."""
    return getattr(config, "architecture", "transformer")


def config_class(architecture: str) -> type[Config]:
    """The configuration that an architecture takes."""
    if architecture not in ARCHITECTURES:
        raise ValueError(f"architecture={architecture!r} is unknown: choose one of {', '.join(ARCHITECTURES)}")
    return TransformerConfig if architecture == "transformer" else BaselineConfig


def build_model(config: Config) -> Model:
    """The model that a configuration describes, with random weights."""
    return ARCHITECTURES[architecture_of(config)].build(config)
