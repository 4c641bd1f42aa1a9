"""Ours equals the logits of `transformers`' MarianMTModel with the same random weights.

Marian lays its sinusoids out in halves (all sines, then all cosines), the paper interleaves them. One fixed
permutation of the model's features turns one layout into the other, and changes nothing else.
"""

import pytest
import torch
from support import VOCAB, max_difference, random_ids, randomise

from tinytransformer import Transformer, TransformerConfig

transformers = pytest.importorskip("transformers", reason="transformers is a test-only dependency")

D_MODEL, HEADS, D_FF, LAYERS, LENGTH = 32, 4, 48, 3, 64


def marian(activation: str):
    config = transformers.MarianConfig(
        vocab_size=VOCAB,
        d_model=D_MODEL,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function=activation,
        max_position_embeddings=LENGTH,
        scale_embedding=True,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config).eval()
    positions = [model.model.encoder.embed_positions.weight, model.model.decoder.embed_positions.weight]
    tables = [table.detach().clone() for table in positions]
    randomise(model)
    with torch.no_grad():
        for table, fixed in zip(positions, tables, strict=True):
            table.copy_(fixed)
        model.final_logits_bias.normal_()
    return model


def interleaved() -> torch.Tensor:
    """Our feature f is Marian's feature order[f]: 0, D/2, 1, D/2 + 1, …"""
    return torch.arange(D_MODEL).view(2, -1).T.flatten()


def our_state(theirs) -> dict[str, torch.Tensor]:
    order = interleaved()
    weights = theirs.state_dict()
    state = {
        "embedding.tokens": weights["model.shared.weight"][:, order],
        "embedding.output_bias": weights["final_logits_bias"][0],
    }

    def linear(name, their_name, reads_stream, writes_stream):
        weight, bias = weights[f"{their_name}.weight"], weights[f"{their_name}.bias"]
        if reads_stream:
            weight = weight[:, order]
        if writes_stream:
            weight, bias = weight[order], bias[order]
        state[f"{name}.weight"], state[f"{name}.bias"] = weight, bias

    def attention(name, their_name):
        for ours, letter in (("w_q", "q"), ("w_k", "k"), ("w_v", "v")):
            linear(f"{name}.{ours}", f"{their_name}.{letter}_proj", reads_stream=True, writes_stream=False)
        linear(f"{name}.w_o", f"{their_name}.out_proj", reads_stream=False, writes_stream=True)
        linear(f"{name}_residual.norm", f"{their_name}_layer_norm", reads_stream=False, writes_stream=True)

    for stack in ("encoder", "decoder"):
        for number in range(LAYERS):
            name, their_name = f"{stack}.layers.{number}", f"model.{stack}.layers.{number}"
            attention(f"{name}.self_attention", f"{their_name}.self_attn")
            if stack == "decoder":
                attention(f"{name}.cross_attention", f"{their_name}.encoder_attn")
            linear(f"{name}.feed_forward.w_1", f"{their_name}.fc1", reads_stream=True, writes_stream=False)
            linear(f"{name}.feed_forward.w_2", f"{their_name}.fc2", reads_stream=False, writes_stream=True)
            linear(f"{name}.feed_forward_residual.norm", f"{their_name}.final_layer_norm", False, True)
    return state


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_logits_equal_marians(activation):
    theirs = marian(activation)
    ours = Transformer(
        TransformerConfig(
            vocab_size=VOCAB,
            d_model=D_MODEL,
            num_heads=HEADS,
            d_ff=D_FF,
            num_layers=LAYERS,
            activation=activation,
            output_bias=True,
            max_length=LENGTH,
        )
    ).eval()
    ours.load_state_dict(our_state(theirs), strict=True)
    source, target = random_ids(4, 11, padding=5), random_ids(4, 8, padding=3)
    with torch.no_grad():
        expected = theirs(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
        logits = ours(source, target)
    assert max_difference(logits, expected) <= 1e-5
    assert expected.abs().max() > 1, "the comparison would be empty"
