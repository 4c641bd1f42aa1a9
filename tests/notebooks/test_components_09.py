"""What lesson 09 builds is what the package has: its definitions are lifted out and compared on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer import MultiHeadAttention, Translator
from tinytransformer.inspection.explorer.gold import mass
from tinytransformer.model.attention import attention
from tinytransformer.text.microworld import generate
from tinytransformer.translation.evaluation import alignment_error_rate, alignment_errors, pieces_of_words

BUILT = lifted("09_inside")
sizes = st.integers(1, 6)


def assert_mass_is_the_packages(built: dict, heads: int, queries: int, keys: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(heads, queries, keys, generator=generator).softmax(-1)
    rows = [row for row in range(queries) if (row + seed) % 3] or [0]
    columns = [column for column in range(keys) if (column + seed) % 2] or [0]
    wanted = torch.zeros(queries, keys, dtype=torch.bool)
    for row in rows:
        wanted[row, columns] = True
    theirs = torch.tensor([mass(one.numpy(), rows, columns) for one in weights])
    torch.testing.assert_close(built["attention_mass"](weights, wanted), theirs)


def assert_silence_is_the_packages(
    built: dict, batch: int, heads: int, length: int, size: int, silent: list[int]
) -> None:
    layer = MultiHeadAttention(heads * size, heads).eval()
    x = torch.randn(batch, length, heads * size)
    layer.head_gate = torch.ones(heads, 1, 1)
    layer.head_gate[silent] = 0.0
    with torch.no_grad():
        parts = (one(x).view(batch, length, heads, size).transpose(1, 2) for one in (layer.w_q, layer.w_k, layer.w_v))
        ours = built["without_heads"](attention(*parts), layer.w_o.weight.T, silent) + layer.w_o.bias
        torch.testing.assert_close(ours, layer(x, x, x), atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def recorded():
    """A few examples with the weights of cross-attention while the reference is written."""
    translator = Translator.load("microworld-en-de", "cpu")
    found = []
    for example in generate("valid", 6, seed=3):
        source, source_words = pieces_of_words(translator, example.source_words)
        target, target_words = pieces_of_words(translator, example.target_words)
        record = translator.record(source, target).find("cross", 1)
        found.append((example, record.weights[0], source_words, target_words))
    return translator, found


def assert_errors_are_the_packages(built: dict, recorded) -> None:
    translator, found = recorded
    theirs = alignment_errors(translator, [example for example, *_ in found])
    gold = [set(map(tuple, example.alignment)) for example, *_ in found]
    for head in range(4):
        links = [built["links_of"](weights[head], source, target) for _, weights, source, target in found]
        assert built["error_rate"](links, gold) == pytest.approx(theirs[1, head])
        assert built["error_rate"](links, gold) == pytest.approx(alignment_error_rate(links, gold))


@given(heads=sizes, queries=sizes, keys=sizes, seed=st.integers(0, 50))
def test_mass_of_lesson_09(heads, queries, keys, seed):
    assert_mass_is_the_packages(BUILT, heads, queries, keys, seed)


@given(batch=sizes, heads=sizes, length=sizes, size=sizes, data=st.data())
def test_silence_of_lesson_09(batch, heads, length, size, data):
    silent = data.draw(st.lists(st.integers(0, heads - 1), unique=True))
    assert_silence_is_the_packages(BUILT, batch, heads, length, size, silent)


def test_alignment_of_lesson_09(recorded):
    assert_errors_are_the_packages(BUILT, recorded)


@pytest.mark.parametrize(("old", "new"), [("[:, rows]", ""), ("weights * wanted", "weights * ~wanted")])
def test_a_change_in_the_mass_is_noticed(old, new):
    with pytest.raises(AssertionError):
        assert_mass_is_the_packages(lifted("09_inside", lambda source: source.replace(old, new)), 2, 4, 5, 1)


@pytest.mark.parametrize(
    ("old", "new"), [("heard[:, silent]", "heard[:, :, silent]"), ("transpose(1, 2)", "transpose(1, 1)")]
)
def test_a_change_in_silencing_is_noticed(old, new):
    changed = lifted("09_inside", lambda source: source.replace(old, new))
    with pytest.raises((AssertionError, RuntimeError)):
        assert_silence_is_the_packages(changed, 2, 3, 3, 4, [1])


@pytest.mark.parametrize(
    ("old", "new"),
    [("owner == word]", "owner == word][:1]"), ("1 - 2 *", "1 -"), ("weights[rows]", "weights[1:][rows]")],
)
def test_a_change_in_alignment_is_noticed(old, new, recorded):
    changed = lifted("09_inside", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_errors_are_the_packages(changed, recorded)
