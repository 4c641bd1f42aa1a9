"""The whole model: encoder, decoder, and the Transformer that joins them (section 3).

What the paper leaves open, and what was chosen here:

- Initialisation: Xavier-uniform for every matrix, zero for biases, and a standard deviation of d_model^-0.5 for the
  embedding, so that the scaled embedding (× √d_model) and the logits both start near unit variance.
- The ε of LayerNorm: PyTorch's 1e-5.
- Dropout on attention weights: section 5.4 names only sub-layer outputs and the sums of embeddings and positions.
  It is off by default (``attention_dropout``).
- The output has no bias; learned positions start like the embedding.

One departure: the attention projections have biases (see `MultiHeadAttention`).
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from tinytransformer.model.attention import MultiHeadAttention, head_size, unturned
from tinytransformer.model.cache import Cache, Memory
from tinytransformer.model.config import ACTIVATIONS, EMBEDDINGS, NORMS, POSITIONS, TransformerConfig
from tinytransformer.model.dropout import Dropout
from tinytransformer.model.layers import DecoderLayer, EncoderLayer, FeedForward
from tinytransformer.model.masks import causal_mask, padding_mask, window_mask
from tinytransformer.model.positions import NoPositions


class Encoder(nn.Module):
    """A stack of encoder layers."""

    def __init__(self, layers: list[EncoderLayer], closing: nn.Module):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.closing = closing

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, S, D) to (B, S, D)."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.closing(x)


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, layers: list[DecoderLayer], closing: nn.Module):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.closing = closing

    def forward(self, x: Tensor, memory: Memory, mask: Tensor | None = None) -> Tensor:
        """x (B, T, D) to (B, T, D), all positions at once: what training does."""
        for layer in self.layers:
            x = layer(x, memory.states, mask, memory.mask)
        return self.closing(x)

    def start(self, memory: Memory) -> Cache:
        """The cache before the first target token."""
        return Cache(tuple(layer.start(memory.states) for layer in self.layers), memory.mask)

    def step(self, x: Tensor, cache: Cache, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        """The next positions x (B, T, D), given the past ones in the cache."""
        kept = []
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            x, layer_cache = layer.step(x, layer_cache, mask, cache.memory_mask)
            kept.append(layer_cache)
        return self.closing(x), Cache(tuple(kept), cache.memory_mask)


def attention_of(c: TransformerConfig, rotate: Callable[[Tensor, int], Tensor] = unturned) -> MultiHeadAttention:
    """An attention of the configuration's sizes."""
    return MultiHeadAttention(c.d_model, c.num_heads, c.d_k, c.d_v, c.attention_dropout, rotate)


def feed_forward_of(c: TransformerConfig) -> FeedForward:
    """A feed-forward network of the configuration's sizes."""
    return FeedForward(c.d_model, c.d_ff, ACTIVATIONS[c.activation])


def encoder_of(c: TransformerConfig, positions: NoPositions) -> Encoder:
    """The configuration's stack of self-attention layers: the encoder here, and all there is in families.py."""
    return Encoder(
        [
            EncoderLayer(attention_of(c, positions.rotate), feed_forward_of(c), c.dropout, NORMS[c.norm])
            for _ in range(c.num_layers)
        ],
        NORMS[c.norm].closing(c.d_model),
    )


class Transformer(nn.Module):
    """Token ids in, logits out: ``model(source, target_in)``. Masks are made inside, from ``config.pad_id``.

    Targets are padded on the right, so the causal mask alone keeps real positions from seeing padding.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        d_k = head_size("d_k", c.d_k, c.d_model, c.num_heads)
        self.positions = POSITIONS[c.positions](c.d_model, d_k, c.max_length)
        self.embedding = EMBEDDINGS[c.tie_embeddings](c.vocab_size, c.d_model, c.output_bias)
        self.dropout = Dropout(c.dropout)
        self.encoder = encoder_of(c, self.positions)
        self.decoder = Decoder(
            [
                DecoderLayer(
                    attention_of(c, self.positions.rotate),
                    # Never rotated: source and target count apart, so their offset means nothing.
                    attention_of(c),
                    feed_forward_of(c),
                    c.dropout,
                    NORMS[c.norm],
                )
                for _ in range(c.num_layers)
            ],
            NORMS[c.norm].closing(c.d_model),
        )

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Source ids (B, S) and target ids shifted right (B, T) to logits (B, T, V)."""
        return self.logits(self.decode(target_in, self.encode(source)))

    def encode(self, source: Tensor) -> Memory:
        """Source ids (B, S) to the encoder's output, which carries its padding mask."""
        self._check_ids("source", source)
        mask = padding_mask(source, self.config.pad_id)
        x = self._embed(self.embedding.source(source))
        return Memory(self.encoder(x, self._within_window(mask, source.size(1))), mask)

    def decode(self, target_in: Tensor, memory: Memory) -> Tensor:
        """Target ids (B, T) to decoder states (B, T, D), before the projection to logits."""
        self._check_target(target_in, memory.mask.size(0))
        x = self._embed(self.embedding.target(target_in))
        return self.decoder(x, memory, self._causal(target_in))

    def step(self, tokens: Tensor, memory: Memory, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The next target tokens (B, T), most often T = 1, to their logits (B, T, V) and the grown cache.

        Without a cache one is started from ``memory``; after that the cache holds all that is needed. To reorder,
        repeat or drop sentences: ``cache.select(rows)``.
        """
        cache = self.decoder.start(memory) if cache is None else cache
        self._check_target(tokens, cache.rows, cache.length)
        x = self._embed(self.embedding.target(tokens), cache.length)
        states, cache = self.decoder.step(x, cache, self._causal(tokens, cache.length))
        return self.logits(states), cache

    def logits(self, states: Tensor) -> Tensor:
        """Decoder states (…, D) to logits (…, V)."""
        return self.embedding.logits(states)

    def attentions(self) -> Iterator[tuple[str, int, MultiHeadAttention]]:
        """Every attention of the model with its kind (encoder, decoder or cross) and its layer."""
        for number, layer in enumerate(self.encoder.layers):
            yield "encoder", number, layer.self_attention
        for number, layer in enumerate(self.decoder.layers):
            yield "decoder", number, layer.self_attention
            yield "cross", number, layer.cross_attention

    def _embed(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return self.dropout(self.positions.add(embeddings, offset))

    def _causal(self, ids: Tensor, offset: int = 0) -> Tensor | None:
        length = ids.size(1)
        if length == 1 and self.config.window is None:
            return None  # the newest token may see all that came before
        return self._within_window(causal_mask(length, offset, ids.device), length, offset)

    def _within_window(self, mask: Tensor, length: int, offset: int = 0) -> Tensor:
        if self.config.window is None:
            return mask
        return mask & window_mask(length, self.config.window, offset, mask.device)

    def _check_target(self, ids: Tensor, rows: int, offset: int = 0) -> None:
        self._check_ids("target", ids, offset)
        if ids.size(0) != rows:
            raise ValueError(
                f"target has {ids.size(0)} rows but the source has {rows}: give one target per source "
                "sentence, or repeat sentences with memory.select(rows) before and cache.select(rows) while decoding"
            )

    def _check_ids(self, name: str, ids: Tensor, offset: int = 0) -> None:
        if ids.dim() != 2:
            raise ValueError(f"{name} ids must be (batch, length), got shape {tuple(ids.shape)}: add the missing axis")
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"{name} ids must be torch.int64 or torch.int32, got {ids.dtype}: write {name}.long()")
        if ids.numel() == 0:
            raise ValueError(f"{name} is empty, shape {tuple(ids.shape)}: give at least one sentence and one token")
        if offset + ids.size(1) > self.config.max_length:
            raise ValueError(
                f"{name} has {offset + ids.size(1)} tokens but max_length={self.config.max_length}: "
                "shorten it, or build the model with a larger max_length"
            )
        # Values are looked at on the CPU only: elsewhere this would make the host wait for the device.
        if ids.device.type == "cpu" and not torch.compiler.is_compiling():
            low, high = (int(value) for value in ids.aminmax())
            if low < 0 or high >= self.config.vocab_size:
                raise ValueError(
                    f"{name} ids run from {low} to {high}, outside the vocabulary 0 … {self.config.vocab_size - 1}: "
                    "was the text encoded with this model's tokenizer?"
                )
