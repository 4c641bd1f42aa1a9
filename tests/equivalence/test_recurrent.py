"""Cells, encoder and decoders equal PyTorch's own recurrent parts, and attention written out word by word."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import max_difference, random_ids, randomise
from support_baselines import small_baseline
from torch import nn

from tinytransformer import padding_mask, record_attention
from tinytransformer.model.cells import CELLS, RecurrentLayer
from tinytransformer.model.recurrent import RecurrentEncoder

TOLERANCE = 1e-5
THEIRS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
THEIR_CELLS = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
every_cell = pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
sizes = st.integers(1, 9)


def parts(state) -> tuple[torch.Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


@every_cell
@given(batch=sizes, length=sizes, inputs=sizes, width=sizes)
def test_the_formulas_are_those_of_torch(cell, batch, length, inputs, width):
    theirs = randomise(THEIRS[cell](inputs, width, batch_first=True))
    x = torch.randn(batch, length, inputs)
    before = tuple(torch.randn(1, batch, width) for _ in range(2 if cell == "lstm" else 1))
    outputs, last = theirs(x, before if cell == "lstm" else before[0])
    state = tuple(part[0] for part in before)
    for position in range(length):
        from_input = x[:, position] @ theirs.weight_ih_l0.T + theirs.bias_ih_l0
        from_state = state[0] @ theirs.weight_hh_l0.T + theirs.bias_hh_l0
        state = CELLS[cell].formula(from_input, from_state, state)
        assert max_difference(state[0], outputs[:, position]) <= TOLERANCE
    for ours, expected in zip(state, parts(last), strict=True):
        assert max_difference(ours, expected[0]) <= TOLERANCE


@every_cell
def test_weights_of_torch_load_strictly_and_single_tokens_take_the_formula(cell, monkeypatch):
    theirs = randomise(THEIRS[cell](6, 8, batch_first=True))
    layer = RecurrentLayer(cell, 6, 8)
    layer.fused.load_state_dict(theirs.state_dict(), strict=True)
    x = torch.randn(3, 5, 6)
    expected, _ = theirs(x)
    outputs, last = layer(x)
    assert max_difference(outputs, expected) <= TOLERANCE
    state = tuple(torch.zeros(3, 8) for _ in last)
    with monkeypatch.context() as patch:
        patch.setattr(type(layer.fused), "forward", None)  # PyTorch's kernel would fail
        for position in range(5):
            output, state = layer(x[:, position : position + 1], state)
            assert max_difference(output, expected[:, position : position + 1]) <= TOLERANCE
    for ours, theirs_last in zip(state, last, strict=True):
        assert max_difference(ours, theirs_last) <= TOLERANCE


def load_layers(theirs: nn.RNNBase, layers) -> None:
    """The weights of several layers of ours as those of one module of PyTorch."""
    weights = {}
    for number, layer in enumerate(layers):
        for name, tensor in layer.fused.state_dict().items():
            weights[name.replace("_l0", f"_l{number}")] = tensor
    theirs.load_state_dict(weights, strict=True)


@every_cell
@pytest.mark.parametrize("bidirectional", [True, False])
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_the_encoder_reads_each_padded_sentence_as_torch_reads_it_alone(cell, bidirectional, lengths):
    encoder = randomise(RecurrentEncoder(cell, 8, num_layers=3, bidirectional=bidirectional)).eval()
    theirs = THEIRS[cell](8, 4 if bidirectional else 8, 3, batch_first=True, bidirectional=bidirectional)
    load_layers(theirs, encoder.layers)
    x, ids = torch.randn(len(lengths), 7, 8), torch.zeros(len(lengths), 7, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = 5
    memory = encoder(x, padding_mask(ids))
    assert memory.states.shape == (len(lengths), 7, 8)
    for row, length in enumerate(lengths):
        states, last = theirs(x[row : row + 1, :length])
        assert max_difference(memory.states[row, :length], states[0]) <= TOLERANCE
        for ours, expected in zip(memory.rest, parts(last), strict=True):
            # theirs (layers · directions, 1, width): both directions of a layer stand one after the other
            assert max_difference(ours[row], expected.reshape(3, 8)) <= TOLERANCE


@every_cell
def test_the_decoder_without_attention_is_torchs_own_from_the_encoders_last_states(cell):
    model = small_baseline(cell)
    source, target = random_ids(3, 7, padding=2), random_ids(3, 5)
    memory = model.encode(source)
    theirs = THEIRS[cell](16, 16, 2, batch_first=True)
    load_layers(theirs, model.decoder.layers)
    before = tuple(part.transpose(0, 1).contiguous() for part in memory.rest)
    expected, _ = theirs(model.embedding.target(target), before if cell == "lstm" else before[0])
    assert max_difference(model.decode(target, memory), expected) <= TOLERANCE


def looked_at(scores, states) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and context of one query over the states (S, D) of one sentence."""
    weights = torch.stack(scores).exp()
    weights = weights / weights.sum()
    return weights, sum(weight * state for weight, state in zip(weights, states, strict=True))


@every_cell
def test_dot_product_attention_word_by_word(cell):
    model = small_baseline(f"{cell}-dot")
    source, target = random_ids(2, 6, padding=2), random_ids(2, 4)
    memory, decoder = model.encode(source), model.decoder
    theirs = THEIRS[cell](16, 16, 2, batch_first=True)
    load_layers(theirs, decoder.layers)
    before = tuple(part.transpose(0, 1).contiguous() for part in memory.rest)
    outputs, _ = theirs(model.embedding.target(target), before if cell == "lstm" else before[0])
    with record_attention(model) as records:
        states = model.decode(target, memory)
    (record,) = records
    for row, position in torch.cartesian_prod(torch.arange(2), torch.arange(4)).tolist():
        seen = memory.states[row, : int((source[row] != 0).sum())]
        h = outputs[row, position]
        weights, context = looked_at([h @ (decoder.attention.w.weight @ state) for state in seen], seen)
        combined = decoder.combine.weight @ torch.cat([context, h]) + decoder.combine.bias
        assert max_difference(states[row, position], combined.tanh()) <= TOLERANCE
        assert max_difference(record.weights[row, 0, position, : len(seen)], weights) <= TOLERANCE
        assert not record.weights[row, 0, position, len(seen) :].any()


@every_cell
def test_additive_attention_word_by_word(cell):
    """The first layer by PyTorch's single cell, one sentence and one token at a time."""
    model = small_baseline(f"{cell}-additive")
    source, target = random_ids(2, 6, padding=2), random_ids(2, 4)
    memory, decoder = model.encode(source), model.decoder
    one = THEIR_CELLS[cell](32, 16)
    weights_of_ours = decoder.layers[0].fused.state_dict()
    one.load_state_dict({name.removesuffix("_l0"): tensor for name, tensor in weights_of_ours.items()}, strict=True)
    with record_attention(model) as records:
        states = model.decode(target, memory)
    (record,) = records
    assert record.weights.shape == (2, 1, 4, 6)
    attention = decoder.attention
    for row in range(2):
        seen = memory.states[row, : int((source[row] != 0).sum())]
        state = tuple(part[row, :1] for part in memory.rest)
        lower, contexts = [], []
        for position, token in enumerate(model.embedding.target(target[row])):
            query = F.linear(state[0][0], attention.w.weight, attention.w.bias)
            scores = [attention.v @ torch.tanh(query + attention.u.weight @ key) for key in seen]
            weights, context = looked_at(scores, seen)
            state = parts(one(torch.cat([token, context])[None], state if cell == "lstm" else state[0]))
            lower.append(state[0])
            contexts.append(context)
            assert max_difference(record.weights[row, 0, position, : len(seen)], weights) <= TOLERANCE
            assert not record.weights[row, 0, position, len(seen) :].any()
        second = THEIRS[cell](16, 16, batch_first=True)
        second.load_state_dict(decoder.layers[1].fused.state_dict(), strict=True)
        before = tuple(part[row : row + 1, 1][None] for part in memory.rest)
        upper, _ = second(torch.stack(lower, dim=1), before if cell == "lstm" else before[0])
        expected = torch.tanh(decoder.combine(torch.cat([torch.stack(contexts), upper[0]], dim=-1)))
        assert max_difference(states[row], expected) <= TOLERANCE
