"""What travels comes back equal; what nobody of us would send is refused."""

import json
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytransformer.teaching.grading import wire
from tinytransformer.teaching.grading.wire import DTYPES, UnsendableError, WireError, dumps, loads

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_plain_values_come_back_equal_and_of_the_same_kind(value):
    back = loads(dumps(value))
    assert (back, type(back)) == (value, type(value))


@given(st.sampled_from(list(DTYPES)), st.lists(st.integers(0, 4), max_size=4))
def test_tensors_come_back_bit_for_bit(name, shape):
    tensor = (torch.rand(shape, dtype=torch.float64) * 50 - 20).to(DTYPES[name])
    back = loads(dumps(tensor))
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back, tensor)


def test_odd_numbers_and_layouts():
    assert math.isnan(loads(dumps(math.nan)))
    assert loads(dumps((math.inf, -math.inf))) == (math.inf, -math.inf)
    assert loads(dumps({1: {"a"}, None: 2})) == {1: {"a"}, None: 2}
    turned = torch.arange(6.0).reshape(2, 3).T
    assert torch.equal(loads(dumps(turned)), turned)
    assert loads(dumps(torch.ones(2, requires_grad=True))).requires_grad
    assert torch.equal(loads(dumps(torch.ones(2).numpy())), torch.ones(2))


def test_errors_keep_their_kind_and_lose_their_words():
    class OwnError(Exception):
        pass

    back = loads(dumps(ValueError("the hidden input was 7")))
    assert (type(back), str(back)) == (ValueError, "")
    assert type(loads(dumps(FileNotFoundError()))) is OSError, "the nearest kind that is known"
    assert type(loads(dumps(OwnError()))) is Exception, "a name could carry a message"


def test_objects_do_not_travel():
    assert isinstance(loads(dumps(object())), UnsendableError)
    assert isinstance(loads(dumps(lambda: 1)), UnsendableError)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        pickle.dumps({"answer": 1}),
        b'{"a": 1, "b": 2}',
        b'{"code": [1]}',
        b'{"dict": [[1]]}',
        b'{"dict": [[[], 1]]}',
        b'{"tuple": 3}',
        b'{"float": "1e400"}',
        b'{"tensor": "float32", "shape": [3], "data": ""}',
        b'{"tensor": "float32", "shape": [-1], "data": ""}',
        b'{"tensor": "float32", "shape": [1e9], "data": "AAAA"}',
        b'{"tensor": "object", "shape": [0], "data": ""}',
        b'{"tensor": "float32", "shape": [0], "data": "*"}',
        b'{"tensor": "bool", "shape": [1], "data": "Bw=="}',
        b'{"tensor": "float32", "shape": [0]}',
        b"[" * 100_000,
        b"[" * 30 + b"]" * 30,
        b"1" * 5000,
    ],
    ids=range(19),
)
def test_anything_else_is_refused(line):
    with pytest.raises(WireError):
        loads(line)


def test_values_nested_too_deep_are_not_sent():
    deep = []
    for _ in range(40):
        deep = [deep]
    with pytest.raises(WireError, match="nested"):
        dumps(deep)
    with pytest.raises(WireError, match="complex"):
        dumps(torch.ones(1, dtype=torch.complex64))


def test_one_line_a_value():
    assert b"\n" not in dumps({"text": "two\nlines", "more": ["ü"]})
    assert json.loads(dumps("ü")) == "ü"
    assert wire.__doc__
