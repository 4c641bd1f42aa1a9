"""What lesson 07 builds is what the package and PyTorch have, on random sizes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer.text.batching import TokenBatches, collate
from tinytransformer.training.loss import smoothed_cross_entropy
from tinytransformer.training.schedule import paper_rate

LESSON = lifted("07_training")
rows = st.lists(st.integers(3, 20), min_size=1, max_size=9)


def assert_batches_are_the_packages(built: dict, pairs: list, budget: int) -> None:
    batch = collate(pairs)
    torch.testing.assert_close(built["make_batch"](pairs), (batch.source, batch.target_in, batch.target_out))
    lengths = [(len(source) + 1, len(target) + 1) for source, target in pairs]
    ours = built["cut"](lengths, budget)
    theirs = TokenBatches(pairs, budget).plan(epoch=0, seed=0)
    assert sorted(row for part in ours for row in part) == list(range(len(pairs)))
    # Which of two pairs of equal lengths comes first is a matter of the shuffle: lengths are compared.
    kinds = [sorted(sorted(lengths[row] for row in part) for part in parts) for parts in (ours, theirs)]
    assert kinds[0] == kinds[1]


def assert_rate_and_loss_are_right(built: dict, step: int, d_model: int, warmup: int, size: int, eps: float) -> None:
    assert built["rate"](step, d_model, warmup) == pytest.approx(paper_rate(step, d_model, warmup))
    logits, targets = torch.randn(2, 4, size), torch.randint(1, size, (2, 4))
    targets[1, 2:] = 0
    ours, real = built["smoothed_loss"](logits, targets, eps), targets != 0
    torch.testing.assert_close(ours, smoothed_cross_entropy(logits[real], targets[real], eps) / real.sum())
    theirs = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=0, label_smoothing=eps)
    torch.testing.assert_close(ours, theirs)


def assert_adam_is_torchs(built: dict, steps: int, rate: float, beta_2: float) -> None:
    weight = torch.randn(5)
    theirs, m, v = weight.clone().requires_grad_(), torch.zeros(5), torch.zeros(5)
    optimizer = torch.optim.Adam([theirs], lr=rate, betas=(0.9, beta_2), eps=1e-9)
    for step in range(1, steps + 1):
        theirs.grad = torch.randn(5)
        gradient = theirs.grad.clone()
        optimizer.step()
        weight, m, v = built["adam_step"](weight, gradient, m, v, step, rate, beta_2=beta_2)
    torch.testing.assert_close(weight, theirs.detach(), atol=1e-4, rtol=1e-4)


def assert_dropout_keeps_the_mean(built: dict, p: float) -> None:
    x, chance = torch.ones(20_000), torch.Generator().manual_seed(1)
    dropped = built["drop"](x, p, True, chance)
    assert (dropped == 0).float().mean() == pytest.approx(p, abs=0.02)
    assert dropped.mean() == pytest.approx(1.0, abs=0.05)
    torch.testing.assert_close(dropped[dropped != 0], torch.full_like(dropped[dropped != 0], 1 / (1 - p)))
    assert built["drop"](x, p, False) is x


@given(pairs=st.lists(st.tuples(rows, rows), min_size=1, max_size=20), budget=st.integers(10, 40))
def test_batches_of_lesson_07(pairs, budget):
    assert_batches_are_the_packages(LESSON, pairs, budget)


@given(
    step=st.integers(1, 9000),
    d_model=st.integers(1, 1024),
    warmup=st.integers(1, 8000),
    size=st.integers(2, 30),
    eps=st.floats(0.0, 0.9),
)
def test_rate_and_loss_of_lesson_07(step, d_model, warmup, size, eps):
    assert_rate_and_loss_are_right(LESSON, step, d_model, warmup, size, eps)


@given(steps=st.integers(1, 12), rate=st.floats(1e-4, 0.1), beta_2=st.sampled_from([0.9, 0.98, 0.999]))
def test_adam_of_lesson_07(steps, rate, beta_2):
    assert_adam_is_torchs(LESSON, steps, rate, beta_2)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_of_lesson_07(p):
    assert_dropout_keeps_the_mean(LESSON, p)


def assert_all(built: dict) -> None:
    pairs = [([5, 6, 7], [8, 9]), ([5, 7], [9, 8, 4]), ([4] * 9, [3] * 8), ([6], [4, 4]), ([5, 5], [6, 6])]
    assert_batches_are_the_packages(built, pairs, 12)
    assert_rate_and_loss_are_right(built, 7, 64, 100, 9, 0.1)
    assert_rate_and_loss_are_right(built, 700, 64, 100, 9, 0.1)
    assert_adam_is_torchs(built, 4, 0.01, 0.98)
    assert_dropout_keeps_the_mean(built, 0.3)


def test_the_lesson_as_it_is_passes():
    assert_all(LESSON)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1, *target]", "[*target, 1]"),
        ("[*target, 2]", "[2, *target]"),
        ("> budget", ">= budget"),
        ("[*batches, batch]", "batches"),
        ("warmup**-1.5", "warmup**-0.5"),
        ("min(rising, falling)", "max(rising, falling)"),
        ("beta_2**step", "beta_2"),
        ("gradient**2", "gradient"),
        ("+ smoothing / size", "+ smoothing"),
        ("targets != pad_id", "targets == targets"),
        ("/ (1 - p)", ""),
        ("if not training", "if False"),
    ],
)
def test_a_change_in_lesson_07_is_noticed(old, new):
    def change(source):
        return source.replace(old, new)

    with pytest.raises(AssertionError):
        assert_all(lifted("07_training", change))
