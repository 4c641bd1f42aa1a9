"""The model as a whole: the paper's defaults, its size, its start, and that it learns."""

import contextlib
import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from support import COMBINATIONS, VOCAB, random_ids, small_model

from tinytransformer import PRESETS, Transformer, TransformerConfig, record_attention
from tinytransformer.model.layers import FeedForward, PostNorm, PreNorm, SeparateEmbeddings


def test_the_default_configuration_is_the_papers_base_model():
    config = TransformerConfig(vocab_size=37_000)
    assert config == TransformerConfig(vocab_size=37_000, **PRESETS["base"])
    assert (config.norm, config.positions, config.activation) == ("post", "sinusoidal", "relu")
    assert config.tie_embeddings
    assert not config.output_bias


def test_the_papers_heads_have_64_features():
    """Table 3: d_k = 64 in base and in big."""
    assert {PRESETS[name]["d_model"] // PRESETS[name]["num_heads"] for name in ("base", "big")} == {64}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds(name):
    with torch.device("meta"):
        model = Transformer(TransformerConfig(vocab_size=1000, **PRESETS[name]))
    ids = torch.ones(2, 5, dtype=torch.long, device="meta")
    assert model(ids, ids).shape == (2, 5, 1000)


def test_presets_and_configurations_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        PRESETS["base"] = {}
    with pytest.raises(TypeError):
        PRESETS["base"]["d_model"] = 8
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig(vocab_size=100).d_model = 8


def parameters(vocab_size: int, name: str) -> int:
    with torch.device("meta"):
        model = Transformer(TransformerConfig(vocab_size=vocab_size, **PRESETS[name]))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("name", "millions", "paper"), [("base", 63.1, 65), ("big", 214.2, 213)])
def test_parameter_counts(name, millions, paper, capsys):
    """No single vocabulary size gives both of the paper's rounded counts: base wants more tokens, big fewer."""
    count = parameters(37_000, name)
    c = TransformerConfig(vocab_size=37_000, **PRESETS[name])
    attention = 4 * (c.d_model * c.d_model + c.d_model)
    feed_forward = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    norm = 2 * c.d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    assert count == 37_000 * c.d_model + c.num_layers * (encoder_layer + decoder_layer)
    assert round(count / 1e6, 1) == millions
    with capsys.disabled():
        print(f"\n{name}, 37,000 shared tokens: {count:,} parameters = {count / 1e6:.1f} M; the paper says {paper} M")


def test_no_vocabulary_size_gives_both_of_the_papers_counts():
    def fitting(name, millions):
        layers = parameters(3, name) - 3 * PRESETS[name]["d_model"]
        low, high = ((millions + half) * 1e6 - layers for half in (-0.5, 0.5))
        return low / PRESETS[name]["d_model"], high / PRESETS[name]["d_model"]

    assert fitting("base", 65)[0] > fitting("big", 213)[1]


def test_the_start_of_training():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=2000, d_model=256, num_heads=4, d_ff=512, num_layers=2)).eval()
    assert model.embedding.tokens.std().item() == pytest.approx(256**-0.5, rel=0.02)
    assert model.embedding.source(torch.arange(2000)).std().item() == pytest.approx(1.0, rel=0.02)
    learned = Transformer(TransformerConfig(vocab_size=3, d_model=256, num_layers=1, positions="learned"))
    assert learned.positions.table.std().item() == pytest.approx(256**-0.5, rel=0.02)
    weight = model.encoder.layers[0].feed_forward.w_1.weight
    assert weight.abs().max().item() == pytest.approx(math.sqrt(6 / (256 + 512)), rel=0.01)  # Xavier-uniform
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
    source, target = torch.randint(3, 2000, (8, 10)), torch.randint(3, 2000, (8, 10))
    loss = F.cross_entropy(model(source, target).flatten(0, 1), torch.randint(3, 2000, (80,)))
    assert loss.item() == pytest.approx(math.log(2000), abs=1.0), "about as unsure as a uniform guess"


def test_one_matrix_serves_source_target_and_output():
    tied, separate = small_model(), small_model(tie_embeddings=False, output_bias=True)
    assert [name for name, _ in tied.embedding.named_parameters()] == ["tokens"]
    assert {name: tuple(p.shape) for name, p in separate.embedding.named_parameters()} == {
        "tokens": (VOCAB, 16),
        "target_tokens": (VOCAB, 16),
        "output": (VOCAB, 16),
        "output_bias": (VOCAB,),
    }
    ids = torch.arange(VOCAB)[None]
    torch.testing.assert_close(tied.embedding.source(ids)[0], tied.embedding.tokens * 4)
    torch.testing.assert_close(tied.embedding.target(ids)[0], tied.embedding.tokens * 4)
    torch.testing.assert_close(separate.embedding.target(ids)[0], separate.embedding.target_tokens * 4)
    states = torch.randn(2, 3, 16)
    torch.testing.assert_close(tied.logits(states), states @ tied.embedding.tokens.T)
    expected = states @ separate.embedding.output.T + separate.embedding.output_bias
    torch.testing.assert_close(separate.logits(states), expected)
    assert isinstance(separate.embedding, SeparateEmbeddings)


def test_post_norm_and_pre_norm_are_what_they_say():
    x = torch.randn(2, 3, 8)
    double = FeedForward(8, 8)
    post, pre = PostNorm(8, 0.0), PreNorm(8, 0.0)
    torch.testing.assert_close(post(x, double), F.layer_norm(x + double(x), (8,)))
    torch.testing.assert_close(pre(x, double), x + double(F.layer_norm(x, (8,))))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_stands_where_the_paper_has_it(norm):
    """On each sub-layer's output and on the sums of embeddings and positions; nowhere else."""
    model = small_model(norm=norm, dropout=0.5, num_layers=1).train()
    seen = []
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.register_forward_hook(lambda module, inputs, output, name=name: seen.append(name))
    model(random_ids(2, 5), random_ids(2, 4))
    residuals = ["self_attention_residual", "feed_forward_residual"]
    assert seen == [
        "dropout",
        *(f"encoder.layers.0.{residual}.dropout" for residual in residuals),
        "dropout",
        *(
            f"decoder.layers.0.{residual}.dropout"
            for residual in [residuals[0], "cross_attention_residual", residuals[1]]
        ),
    ]


@pytest.mark.parametrize("recorded", [False, True])
def test_no_dropout_acts_in_evaluation_mode(recorded):
    model = small_model(dropout=0.5, attention_dropout=0.5)
    ids = random_ids(2, 5), random_ids(2, 4)
    with record_attention(model) if recorded else contextlib.nullcontext():
        assert torch.equal(model(*ids), model(*ids))
        model.train()
        assert not torch.equal(model(*ids), model(*ids))


def test_two_dropouts_differ_and_a_seed_repeats_them():
    model = small_model(dropout=0.5).train()
    ids = random_ids(2, 5), random_ids(2, 4)
    torch.manual_seed(5)
    first, second = model(*ids), model(*ids)
    torch.manual_seed(5)
    assert torch.equal(model(*ids), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_activations(activation):
    model = small_model(activation=activation)
    layer, x = model.encoder.layers[0].feed_forward, torch.randn(2, 16)
    expected = getattr(F, activation)(x @ layer.w_1.weight.T + layer.w_1.bias) @ layer.w_2.weight.T + layer.w_2.bias
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
def test_one_batch_can_be_learned_by_heart(norm, positions):
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(
            VOCAB, d_model=32, num_heads=4, d_ff=64, num_layers=2, dropout=0.0, norm=norm, positions=positions
        )
    )
    source, target = random_ids(8, 9, padding=3), random_ids(8, 9)
    target_in = torch.cat([torch.full((8, 1), 1), target[:, :-1]], dim=1)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for _ in range(200):
        loss = F.cross_entropy(model(source, target_in).flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.02
    assert torch.equal(model(source, target_in).argmax(-1), target)


def test_weights_of_a_saved_model_load_strictly_into_a_longer_one():
    model, longer = small_model(), small_model(max_length=80)
    longer.load_state_dict(model.state_dict(), strict=True)
    ids = random_ids(2, 7)
    assert torch.equal(model(ids, ids), longer(ids, ids))
