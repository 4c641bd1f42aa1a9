"""The same parts, other families: a decoder without an encoder (GPT) and an encoder without a decoder (BERT).

Both are one stack of the encoder's layers between an embedding and its mirror image, the output. They differ in one
mask: `DecoderOnly` lets a position see itself and what came before, so it can write; `EncoderOnly` lets it see the
whole sentence, so it can fill in blanks. Of a `TransformerConfig` both read what concerns one stack. GPT-2's
choices are ``norm="pre", positions="learned", activation="gelu"``; BERT's ``norm="post"`` with the same two.

Departures from both: embeddings are scaled by √d_model, as in our `Transformer`, and no LayerNorm or sentence number is
added to them, as in BERT; BERT also has one more layer before its output.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tinytransformer.model.attention import MultiHeadAttention, head_size
from tinytransformer.model.config import EMBEDDINGS, POSITIONS, TransformerConfig
from tinytransformer.model.dropout import Dropout
from tinytransformer.model.masks import causal_mask, padding_mask
from tinytransformer.model.transformer import Transformer, encoder_of


class LanguageModel(nn.Module):
    """Token ids (B, T) in, logits (B, T, V) out: one stack of layers. A family says what a position may see."""

    kind: str  # what recordings call its attentions

    # These ask for nothing but the parts that are built below.
    _embed = Transformer._embed
    _check_ids = Transformer._check_ids
    _within_window = Transformer._within_window

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        if not c.tie_embeddings:
            raise ValueError("tie_embeddings=False is for a source and a target: a language model has one matrix")
        self.positions = POSITIONS[c.positions](
            c.d_model, head_size("d_k", c.d_k, c.d_model, c.num_heads), c.max_length
        )
        self.embedding = EMBEDDINGS[True](c.vocab_size, c.d_model, c.output_bias)
        self.dropout = Dropout(c.dropout)
        self.encoder = encoder_of(c, self.positions)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, T), padded on the right, to logits (B, T, V)."""
        return self.embedding.logits(self.states(ids))

    def states(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to the last layer's output (B, T, D), before the projection to logits."""
        self._check_ids("input", ids)
        mask = self._within_window(self.mask(ids), ids.size(1))
        return self.encoder(self._embed(self.embedding.source(ids)), mask)

    def mask(self, ids: Tensor) -> Tensor:
        """What each position may see: the whole difference between the two families."""
        raise NotImplementedError("choose DecoderOnly or EncoderOnly")

    def attentions(self) -> Iterator[tuple[str, int, MultiHeadAttention]]:
        """Every attention with its kind and its layer, for `record_attention` and `silence_heads`."""
        for number, layer in enumerate(self.encoder.layers):
            yield self.kind, number, layer.self_attention


class DecoderOnly(LanguageModel):
    """GPT's family: the logits at a position say which token comes next."""

    kind = "decoder"

    def mask(self, ids: Tensor) -> Tensor:
        return padding_mask(ids, self.config.pad_id) & causal_mask(ids.size(1), device=ids.device)


class EncoderOnly(LanguageModel):
    """BERT's family: the logits at a position say which token stands there, seen from both sides."""

    kind = "encoder"

    def mask(self, ids: Tensor) -> Tensor:
        return padding_mask(ids, self.config.pad_id)


@torch.no_grad()
def generate(
    model: DecoderOnly,
    ids: Tensor,
    length: int,
    generator: torch.Generator | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """Go on writing after ids (B, T) for up to ``length`` tokens: (B, T + up to length).

    With a generator tokens are drawn, more boldly at a higher ``temperature``; without one the likeliest is taken
    (greedy). What comes behind an end token is padding. Nothing is kept between steps: `Transformer.step` shows how
    a cache saves that work.
    """
    if not isinstance(model, DecoderOnly):
        raise TypeError(f"{type(model).__name__} cannot write on: generate needs a DecoderOnly, which sees no future")
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be above 0; for the likeliest tokens give no generator")
    c = model.config
    if bool((ids == c.pad_id).any()):
        raise ValueError(f"the beginning holds padding (id {c.pad_id}): give beginnings of one length, or one by one")
    was_training = model.training
    model.eval()
    ended = torch.zeros_like(ids[:, 0], dtype=torch.bool)
    for _ in range(length):
        logits = model(ids)[:, -1].index_fill(-1, torch.tensor([c.pad_id, c.start_id]), float("-inf"))  # (B, V)
        if generator is None:
            tokens = logits.argmax(-1)
        else:
            tokens = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]
        ids = torch.cat([ids, tokens.masked_fill(ended, c.pad_id)[:, None]], dim=1)
        ended = ended | (tokens == c.end_id)
        if ended.all():
            break
    model.train(was_training)
    return ids


@torch.no_grad()
def fill_in(model: EncoderOnly, ids: Tensor, mask_id: int) -> Tensor:
    """Ids (B, T) with every blank (``mask_id``) replaced by the likeliest token: all at once, each by itself."""
    if not isinstance(model, EncoderOnly):
        raise TypeError(f"{type(model).__name__} sees one side of a blank only: fill_in needs an EncoderOnly")
    c = model.config
    was_training = model.training
    model.eval()
    never = torch.tensor(sorted({mask_id, c.pad_id, c.start_id, c.end_id}))
    likeliest = model(ids).index_fill(-1, never, float("-inf")).argmax(-1)
    model.train(was_training)
    return torch.where(ids == mask_id, likeliest, ids)
