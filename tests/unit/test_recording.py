"""Looking inside changes nothing, sees everything, and leaves no trace."""

import copy

import pytest
import torch
from support import max_difference, random_ids, small_model

import tinytransformer.model.attention as attention_module
from tinytransformer import causal_mask, padding_mask, record_attention, silence_heads

PLACES = [(kind, layer) for kind, layer, _ in small_model().attentions()]


@pytest.fixture
def sentences():
    return random_ids(3, 7, padding=2), random_ids(3, 5)


@pytest.fixture
def fused_calls(monkeypatch):
    """How often the fused kernel has run."""
    calls = []
    fused = attention_module.attention

    def counted(*arguments):
        calls.append(1)
        return fused(*arguments)

    monkeypatch.setattr(attention_module, "attention", counted)
    return calls


def test_every_attention_is_recorded_in_order(sentences):
    model = small_model()
    with record_attention(model) as records:
        model(*sentences)
    order = [("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]
    assert [(record.kind, record.layer) for record in records] == order
    shapes = {"encoder": (3, 4, 7, 7), "decoder": (3, 4, 5, 5), "cross": (3, 4, 5, 7)}
    for record in records:
        assert record.weights.shape == shapes[record.kind]
        assert record.query is None
        assert record.key is None
        assert not record.weights.requires_grad
        assert record.weights.device.type == "cpu"
        torch.testing.assert_close(record.weights.sum(-1), torch.ones(record.weights.shape[:-1]))
    source, _ = sentences
    hidden = {"encoder": padding_mask(source), "decoder": causal_mask(5), "cross": padding_mask(source)}
    for record in records:
        assert (record.weights.masked_select(~hidden[record.kind]) == 0).all()
        assert (record.weights.masked_select(hidden[record.kind]) > 0).all()


def test_recording_changes_no_output(sentences):
    model = small_model()
    before = model(*sentences)
    with record_attention(model):
        during = model(*sentences)
    after = model(*sentences)
    assert max_difference(before, during) <= 1e-5
    assert torch.equal(before, after)


def test_recorded_weights_equal_those_of_torch(sentences):
    model = small_model(num_layers=1)
    with record_attention(model) as records:
        memory = model.encode(sentences[0])
    ours = model.encoder.layers[0].self_attention
    x = model.positions.add(model.embedding.source(sentences[0]))
    theirs = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias]))
    _, expected = theirs(x, x, x, key_padding_mask=~memory.mask[:, 0, 0], average_attn_weights=False)
    assert max_difference(records.find("encoder", 0).weights, expected) <= 1e-5


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_queries_and_keys_on_request_explain_the_weights(sentences, positions):
    model = small_model(positions=positions, d_k=6)
    with record_attention(model, qk=True) as records:
        model(*sentences)
    record = records.find("cross", 1)
    assert record.query.shape == (3, 4, 5, 6)
    assert record.key.shape == (3, 4, 7, 6)
    scores = record.query @ record.key.mT / 6**0.5
    expected = scores.masked_fill(~padding_mask(sentences[0]), float("-inf")).softmax(-1)
    assert max_difference(record.weights, expected) <= 1e-5


def test_weights_are_recorded_before_dropout(sentences):
    model = small_model(attention_dropout=0.5, dropout=0.0, num_layers=1)
    with record_attention(model) as records:
        model(*sentences)
        model.train()
        first, second = model(*sentences), model(*sentences)
    assert max_difference(first, second) > 1e-3, "dropout must act on the output"
    evaluated, trained, _ = (record for record in records if record.kind == "encoder")
    assert torch.equal(evaluated.weights, trained.weights)


def test_the_fused_path_comes_back(sentences, fused_calls):
    model = small_model()
    with record_attention(model):
        model(*sentences)
        assert not fused_calls
    model(*sentences)
    assert len(fused_calls) == len(PLACES)


def test_the_fused_path_comes_back_after_an_exception(sentences, fused_calls):
    model = small_model()
    with pytest.raises(ValueError, match="source ids must be"), record_attention(model):
        model(sentences[0][0], sentences[1])
    model(*sentences)
    assert len(fused_calls) == len(PLACES)


def test_recorders_nest(sentences):
    model = small_model()
    with record_attention(model) as outer:
        model.encode(sentences[0])
        with record_attention(model, qk=True) as inner:
            model.encode(sentences[0])
        model.encode(sentences[0])
    assert (len(outer), len(inner)) == (6, 2)
    assert torch.equal(outer[2].weights, inner[0].weights)
    assert inner[0].query is not None
    assert outer[2].query is None


def test_recording_without_gradients_and_in_training_mode(sentences):
    model = small_model().train()
    with torch.no_grad(), record_attention(model) as records:
        model(*sentences)
    assert len(records) == len(PLACES)
    with record_attention(model) as records:
        model(*sentences).sum().backward()
    assert len(records) == len(PLACES)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_recording_while_decoding_step_by_step(sentences):
    model = small_model()
    source, target = sentences
    with record_attention(model) as whole:
        model(source, target)
    with record_attention(model) as steps:
        memory, cache = model.encode(source), None
        for token in target.split(1, dim=1):
            _, cache = model.step(token, memory, cache)
    last = steps.find("decoder", 1).weights
    assert max_difference(last, whole.find("decoder", 1).weights[:, :, -1:]) <= 1e-5


def test_editing_a_record_cannot_reach_the_running_model(sentences):
    model = small_model()
    source, target = sentences
    memory = model.encode(source)
    _, cache = model.step(target[:, :3], memory)
    expected, _ = model.step(target[:, 3:], memory, cache)
    with record_attention(model, qk=True) as records:
        memory = model.encode(source)
        _, cache = model.step(target[:, :3], memory)
        for record in records:
            for tensor in (record.weights, record.query, record.key):
                tensor.zero_()
    logits, _ = model.step(target[:, 3:], memory, cache)
    assert max_difference(logits, expected) <= 1e-5
    with record_attention(model) as records:
        loss = model(source, target).sum()
        for record in records:
            record.weights.zero_()
        loss.backward()


def test_a_copy_made_while_looking_inside_is_a_plain_one(sentences, fused_calls):
    model = small_model(positions="rotary")
    expected = model(*sentences)
    with record_attention(model) as records, silence_heads(model, {("cross", 0): [0]}):
        twin = copy.deepcopy(model)
    fused_calls.clear()
    assert torch.equal(twin(*sentences), expected)
    assert len(fused_calls) == len(PLACES)
    assert not records


def test_half_precision_scores_do_not_overflow():
    query = torch.full((1, 1, 2, 64), 40.0, dtype=torch.float16)
    key = torch.full((1, 1, 3, 64), 40.0, dtype=torch.float16)  # the product is 102,400, scaled 12,800
    torch.testing.assert_close(attention_module.attention_weights(query, key), torch.full((1, 1, 2, 3), 1 / 3).half())


def test_find_names_what_there_is(sentences):
    model = small_model()
    with record_attention(model) as records:
        with pytest.raises(KeyError, match="the model has not run"):
            records.find("cross", 0)
        model.encode(sentences[0])
    with pytest.raises(KeyError, match=r"no record of \('cross', 0\): recorded were \[\('encoder', 0\)"):
        records.find("cross", 0)


def with_zeroed_columns(model, kind, layer, heads):
    """The same by other means: the columns of W_O that read a head's output are zero."""
    module = {(kind, layer): module for kind, layer, module in model.attentions()}[kind, layer]
    with torch.no_grad():
        for head in heads:
            size = module.w_v.out_features // module.num_heads
            module.w_o.weight[:, head * size : (head + 1) * size] = 0
    return model


@pytest.mark.parametrize(("kind", "layer"), PLACES)
def test_a_silent_head_is_a_head_of_zeros(kind, layer, sentences):
    model = small_model()
    before = model(*sentences)
    with silence_heads(model, {(kind, layer): [0, 2]}):
        silenced = model(*sentences)
    expected = with_zeroed_columns(small_model(), kind, layer, [0, 2])(*sentences)
    assert max_difference(silenced, expected) <= 1e-5
    assert max_difference(silenced, before) > 1e-3
    assert torch.equal(model(*sentences), before)


def test_silence_holds_for_a_whole_decoding_and_while_recording(sentences):
    model = small_model()
    source, target = sentences
    heads = {("cross", 0): [1], ("decoder", 1): [0, 3], ("encoder", 0): range(4)}
    with silence_heads(model, heads):
        whole = model(source, target)
        with record_attention(model):
            recorded = model(source, target)
        memory, cache, pieces = model.encode(source), None, []
        for token in target.split(1, dim=1):
            logits, cache = model.step(token, memory, cache)
            pieces.append(logits)
    assert max_difference(torch.cat(pieces, dim=1), whole) <= 1e-5
    assert max_difference(recorded, whole) <= 1e-5


def test_silence_nests_and_ends_after_an_exception(sentences):
    model = small_model()
    before = model(*sentences)
    with silence_heads(model, {("cross", 0): [0, 1]}):
        both = model(*sentences)
    with silence_heads(model, {("cross", 0): [0]}):
        one = model(*sentences)
        with silence_heads(model, {("cross", 0): [1]}):
            assert torch.equal(model(*sentences), both)
        assert torch.equal(model(*sentences), one)
    with pytest.raises(RuntimeError, match="on purpose"), silence_heads(model, {("cross", 0): [0]}):
        raise RuntimeError("on purpose")
    assert torch.equal(model(*sentences), before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_silence_in_other_precisions(dtype, sentences):
    model = small_model().to(dtype)
    with silence_heads(model, {("encoder", 0): [0]}):
        assert model(*sentences).dtype == dtype


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({("self", 0): [0]}, r"\('self', 0\) is no attention of this model: choose from \('encoder', 0\)"),
        ({("cross", 2): [0]}, r"\('cross', 2\) is no attention"),
        ({("cross", 0): [4]}, r"head 4 of \('cross', 0\) does not exist: choose from 0 … 3"),
        ({("cross", 0): [-1]}, r"head -1 of"),
    ],
)
def test_silencing_what_is_not_there(heads, message, sentences):
    model = small_model()
    before = model(*sentences)
    with pytest.raises(ValueError, match=message), silence_heads(model, {("encoder", 0): [0], **heads}):
        pass
    assert torch.equal(model(*sentences), before)


def test_what_has_no_attentions_cannot_be_looked_into():
    with pytest.raises(TypeError, match=r"Encoder has no attentions\(\): give the whole model"):
        record_attention(small_model().encoder).__enter__()
    with pytest.raises(TypeError, match=r"must be a list, got 1: write \[1\]"):
        silence_heads(small_model(), {("cross", 0): 1}).__enter__()


def test_compiled_models_can_be_looked_into(sentences):
    model = small_model(num_layers=1)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        plain = compiled(*sentences)
        with record_attention(compiled) as records:
            compiled(*sentences)
        assert len(records) == 3
        with silence_heads(compiled, {("cross", 0): [0]}):
            assert max_difference(compiled(*sentences), plain) > 1e-3
        assert max_difference(compiled(*sentences), plain) <= 1e-5
