"""A decoder-only model is GPT-2, an encoder-only one BERT's encoder, both PyTorch's own stack, weight for weight."""

import pytest
import torch
from support import NORMS, VOCAB, load_layer, max_difference, random_ids, randomise
from torch import nn

from tinytransformer import TransformerConfig, causal_mask
from tinytransformer.model.families import DecoderOnly, EncoderOnly, LanguageModel

TOLERANCE = 1e-5
SIZES = [(8, 1, 12, 1), (16, 4, 24, 2), (64, 8, 128, 3)]  # d_model, heads, d_ff, layers
every_size = pytest.mark.parametrize(("d_model", "num_heads", "d_ff", "num_layers"), SIZES)


def family(kind: type[LanguageModel], *sizes: int, **changes) -> LanguageModel:
    torch.manual_seed(0)
    d_model, num_heads, d_ff, num_layers = sizes
    config = TransformerConfig(VOCAB, d_model, num_heads, d_ff, num_layers, dropout=0.0, max_length=20, **changes)
    return randomise(kind(config)).eval()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", [DecoderOnly, EncoderOnly])
@every_size
def test_pytorchs_stack(kind, norm, activation, d_model, num_heads, d_ff, num_layers):
    model = family(kind, d_model, num_heads, d_ff, num_layers, norm=norm, activation=activation)
    layer = nn.TransformerEncoderLayer(
        d_model, num_heads, d_ff, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    )
    theirs = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
    for their_layer, our_layer in zip(theirs.layers, model.encoder.layers, strict=True):
        load_layer(their_layer, our_layer)
    ids = random_ids(3, 9, padding=4)
    states = theirs(
        model.positions.add(model.embedding.source(ids)),
        mask=~causal_mask(9) if kind is DecoderOnly else None,
        src_key_padding_mask=ids == 0,
    )
    logits = model.encoder.closing(states) @ model.embedding.tokens.T
    assert max_difference(model(ids)[ids != 0], logits[ids != 0]) <= TOLERANCE


def joined(attention) -> tuple[torch.Tensor, torch.Tensor]:
    """The three projections as GPT-2 keeps them: side by side, for vectors from the left."""
    parts = (attention.w_q, attention.w_k, attention.w_v)
    return torch.cat([part.weight for part in parts]).T, torch.cat([part.bias for part in parts])


def gpt2(model: DecoderOnly) -> nn.Module:
    """The library's GPT-2 with our weights. It does not scale its embeddings, so it gets ours scaled."""
    transformers = pytest.importorskip("transformers", reason="pip install transformers to compare with GPT-2")
    c = model.config
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=c.vocab_size, n_positions=c.max_length, n_embd=c.d_model, n_layer=c.num_layers,
            n_head=c.num_heads, n_inner=c.d_ff, activation_function="gelu", bos_token_id=1, eos_token_id=2,
        )
    ).eval()  # fmt: skip
    state = {
        "transformer.wte.weight": model.embedding.tokens * model.embedding.scale,
        "transformer.wpe.weight": model.positions.table,
        "transformer.ln_f.weight": model.encoder.closing.weight,
        "transformer.ln_f.bias": model.encoder.closing.bias,
    }
    state["lm_head.weight"] = state["transformer.wte.weight"]
    for number, layer in enumerate(model.encoder.layers):
        place = f"transformer.h.{number}"
        state[f"{place}.attn.c_attn.weight"], state[f"{place}.attn.c_attn.bias"] = joined(layer.self_attention)
        for name, ours in (
            ("attn.c_proj", layer.self_attention.w_o),
            ("mlp.c_fc", layer.feed_forward.w_1),
            ("mlp.c_proj", layer.feed_forward.w_2),
        ):
            state[f"{place}.{name}.weight"], state[f"{place}.{name}.bias"] = ours.weight.T, ours.bias
        for name, residual in (("ln_1", layer.self_attention_residual), ("ln_2", layer.feed_forward_residual)):
            state[f"{place}.{name}.weight"] = residual.norm.weight
            state[f"{place}.{name}.bias"] = residual.norm.bias
    theirs.load_state_dict(state)
    return theirs


@every_size
def test_gpt2(d_model, num_heads, d_ff, num_layers):
    model = family(
        DecoderOnly, d_model, num_heads, d_ff, num_layers, norm="pre", positions="learned", activation="gelu"
    )
    ids = random_ids(3, 9)
    with torch.no_grad():
        theirs = gpt2(model)(ids).logits / model.embedding.scale
    assert max_difference(model(ids), theirs) <= TOLERANCE
    assert theirs.std() > 0.1


@every_size
def test_berts_encoder(d_model, num_heads, d_ff, num_layers):
    transformers = pytest.importorskip("transformers", reason="pip install transformers to compare with BERT")
    model = family(
        EncoderOnly, d_model, num_heads, d_ff, num_layers, norm="post", positions="learned", activation="gelu"
    )
    theirs = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=VOCAB, hidden_size=d_model, num_hidden_layers=num_layers, num_attention_heads=num_heads,
            intermediate_size=d_ff, hidden_act="gelu", layer_norm_eps=1e-5, max_position_embeddings=20,
        ),
        add_pooling_layer=False,
    ).eval()  # fmt: skip
    for their_layer, layer in zip(theirs.encoder.layer, model.encoder.layers, strict=True):
        attention, forward = layer.self_attention, layer.feed_forward
        for place, ours in (
            (their_layer.attention.self.query, attention.w_q),
            (their_layer.attention.self.key, attention.w_k),
            (their_layer.attention.self.value, attention.w_v),
            (their_layer.attention.output.dense, attention.w_o),
            (their_layer.attention.output.LayerNorm, layer.self_attention_residual.norm),
            (their_layer.intermediate.dense, forward.w_1),
            (their_layer.output.dense, forward.w_2),
            (their_layer.output.LayerNorm, layer.feed_forward_residual.norm),
        ):
            place.load_state_dict(ours.state_dict())
    theirs.embeddings = Summed(model)  # BERT adds a norm and sentence numbers there, which we leave out
    ids = random_ids(3, 9, padding=4)
    with torch.no_grad():
        states = theirs(ids, attention_mask=(ids != 0).long()).last_hidden_state
    assert max_difference(model.states(ids)[ids != 0], states[ids != 0]) <= TOLERANCE


class Summed(nn.Module):
    """Our embeddings and positions where BERT has its own."""

    def __init__(self, model: EncoderOnly):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, **_) -> torch.Tensor:
        return self.model.positions.add(self.model.embedding.source(input_ids))
