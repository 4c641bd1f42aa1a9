"""Ours equals PyTorch's own parts, weight for weight, to 1e-5."""

import pytest
import torch
from support import NORMS, load_attention, load_layer, max_difference, random_ids, randomise, small_model
from torch import nn

from tinytransformer import MultiHeadAttention, causal_mask, padding_mask
from tinytransformer.model import DecoderLayer, EncoderLayer, FeedForward
from tinytransformer.model.config import NORMS as RESIDUALS

TOLERANCE = 1e-5
SIZES = [(8, 1, 12), (16, 4, 24), (64, 8, 128), (96, 6, 50)]  # d_model, heads, d_ff


@pytest.mark.parametrize(("d_model", "num_heads", "d_ff"), SIZES)
def test_multi_head_attention(d_model, num_heads, d_ff):
    ours = randomise(MultiHeadAttention(d_model, num_heads))
    theirs = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
    load_attention(theirs, ours)
    query, key, value = (torch.randn(3, length, d_model) for length in (5, 7, 7))
    ids = random_ids(3, 7, padding=2)

    theirs_out, _ = theirs(query, key, value, key_padding_mask=ids == 0)
    assert max_difference(ours(query, key, value, padding_mask(ids)), theirs_out) <= TOLERANCE

    theirs_out, _ = theirs(query, query, query, attn_mask=~causal_mask(5))
    assert max_difference(ours(query, query, query, causal_mask(5)), theirs_out) <= TOLERANCE


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d_model", "num_heads", "d_ff"), SIZES)
def test_encoder_layer(norm, d_model, num_heads, d_ff):
    attention, feed_forward = MultiHeadAttention(d_model, num_heads), FeedForward(d_model, d_ff)
    ours = randomise(EncoderLayer(attention, feed_forward, dropout=0.0, residual=RESIDUALS[norm]))
    theirs = nn.TransformerEncoderLayer(
        d_model, num_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    )
    load_layer(theirs, ours)
    x, ids = torch.randn(3, 7, d_model), random_ids(3, 7, padding=3)
    difference = ours(x, padding_mask(ids)) - theirs(x, src_key_padding_mask=ids == 0)
    assert difference.abs().max() <= TOLERANCE


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d_model", "num_heads", "d_ff"), SIZES)
def test_decoder_layer(norm, d_model, num_heads, d_ff):
    attentions = [MultiHeadAttention(d_model, num_heads) for _ in range(2)]
    ours = randomise(DecoderLayer(*attentions, FeedForward(d_model, d_ff), dropout=0.0, residual=RESIDUALS[norm]))
    theirs = nn.TransformerDecoderLayer(
        d_model, num_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    )
    load_layer(theirs, ours)
    x, memory, source = torch.randn(3, 5, d_model), torch.randn(3, 7, d_model), random_ids(3, 7, padding=3)
    theirs_out = theirs(x, memory, tgt_mask=~causal_mask(5), memory_key_padding_mask=source == 0)
    assert max_difference(ours(x, memory, causal_mask(5), padding_mask(source)), theirs_out) <= TOLERANCE


def torch_transformer(model) -> nn.Transformer:
    """PyTorch's whole Transformer with our weights. For post-norm its two final norms, which the paper lacks, go."""
    c = model.config
    pre = c.norm == "pre"
    arguments = {"dropout": 0.0, "batch_first": True, "norm_first": pre}
    layer = nn.TransformerEncoderLayer(c.d_model, c.num_heads, c.d_ff, **arguments)
    encoder = nn.TransformerEncoder(layer, c.num_layers, nn.LayerNorm(c.d_model), enable_nested_tensor=False)
    theirs = nn.Transformer(
        c.d_model,
        c.num_heads,
        num_decoder_layers=c.num_layers,
        dim_feedforward=c.d_ff,
        custom_encoder=encoder,
        **arguments,
    )
    for stack, ours in ((theirs.encoder, model.encoder), (theirs.decoder, model.decoder)):
        for their_layer, our_layer in zip(stack.layers, ours.layers, strict=True):
            load_layer(their_layer, our_layer)
        if pre:
            stack.norm.load_state_dict(ours.closing.state_dict())
        else:
            stack.norm = None
    return theirs


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d_model", "num_heads", "d_ff"), SIZES)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_whole_transformer(norm, d_model, num_heads, d_ff, num_layers):
    model = small_model(norm=norm, d_model=d_model, num_heads=num_heads, d_ff=d_ff, num_layers=num_layers, dropout=0.0)
    source, target = random_ids(3, 9, padding=4), random_ids(3, 6, padding=2)
    states = torch_transformer(model)(
        model.positions.add(model.embedding.source(source)),
        model.positions.add(model.embedding.target(target)),
        tgt_mask=~causal_mask(6),
        src_key_padding_mask=source == 0,
        memory_key_padding_mask=source == 0,
    )
    logits = states @ model.embedding.tokens.T
    assert max_difference(model(source, target), logits) <= TOLERANCE
