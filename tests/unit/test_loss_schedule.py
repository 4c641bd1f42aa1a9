"""The loss equals PyTorch's, pads count for nothing, and the learning rate is the paper's."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import VOCAB, small_model

from tinytransformer.text.batching import Batch, collate
from tinytransformer.training import loss as loss_module
from tinytransformer.training.loss import batch_loss, disagreement, mean_loss, projected_loss, smoothed_cross_entropy
from tinytransformer.training.schedule import paper_rate, peak_rate, warmup_schedule


def some_batch() -> Batch:
    generator = torch.Generator().manual_seed(2)
    rows = [torch.randint(4, VOCAB, (n,), generator=generator).tolist() for n in (3, 7, 5, 1, 6, 2)]
    return collate(list(zip(rows, reversed(rows), strict=True)))


@given(smoothing=st.floats(0.0, 0.9), size=st.integers(2, 50))
def test_smoothing_equals_torchs(smoothing, size):
    logits, targets = torch.randn(20, size, requires_grad=True), torch.randint(0, size, (20,))
    ours = smoothed_cross_entropy(logits, targets, smoothing)
    theirs = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs)))


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert smoothed_cross_entropy(logits, torch.tensor([1]), 0.1).isfinite()


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_outside_its_range(smoothing):
    with pytest.raises(ValueError, match=rf"smoothing={smoothing} is outside \[0, 1\)"):
        smoothed_cross_entropy(torch.randn(2, 3), torch.tensor([0, 1]), smoothing)


def test_pads_are_ignored_and_gradients_equal_those_of_all_logits():
    model, batch = small_model(dropout=0.0), some_batch()
    loss, count = batch_loss(model, batch, 0.1)
    assert count == batch.num_targets == sum(n + 1 for n in (3, 7, 5, 1, 6, 2))
    logits = model(batch.source, batch.target_in)
    theirs = F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(loss, theirs)
    ours = torch.autograd.grad(loss, list(model.parameters()))
    for one, other in zip(ours, torch.autograd.grad(theirs, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_more_padding_changes_no_loss():
    model, batch = small_model(), some_batch()
    longer = Batch(*(F.pad(tensor, (0, 4)) for tensor in (batch.source, batch.target_in, batch.target_out)))
    torch.testing.assert_close(batch_loss(model, batch)[0], batch_loss(model, longer)[0])


@given(
    smoothing=st.sampled_from([0.0, 0.1, 0.7]),
    agreement=st.sampled_from([0.0, 1.0, 5.0]),
    bias=st.booleans(),
    chunk=st.integers(1, 400),
)
def test_the_loss_taken_in_pieces_equals_the_formulas(smoothing, agreement, bias, chunk):
    """Value and gradients, whatever the size of the pieces, with one pass and with R-Drop's two."""
    passes, number, size, d_model = (2 if agreement else 1), 9, 23, 8
    states = torch.randn(passes, number, d_model, requires_grad=True)
    matrix, offset = torch.randn(size, d_model, requires_grad=True), torch.randn(size, requires_grad=True)
    targets = torch.randint(0, size, (number,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_module, "NUMBERS_AT_ONCE", chunk)
        ours = projected_loss(states, matrix, offset if bias else None, targets, smoothing, agreement)
    logits = states @ matrix.T + (offset if bias else 0.0)
    theirs = sum(smoothed_cross_entropy(one, targets, smoothing) for one in logits)
    if agreement:
        theirs = (theirs + agreement / 2 * disagreement(*logits)) / 2
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    inputs = [states, matrix, *([offset] if bias else [])]
    for one, other in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("agreement", [0.0, 4.0])
def test_the_loss_in_bfloat16_is_that_of_float32_within_its_rounding(agreement):
    generator = torch.Generator().manual_seed(3)
    states, matrix = (
        torch.randn(2 if agreement else 1, 60, 16, generator=generator),
        torch.randn(90, 16, generator=generator),
    )
    targets = torch.randint(90, (60,), generator=generator)
    found = {}
    for narrow in (False, True):
        leaves = [tensor.clone().requires_grad_() for tensor in (states, matrix)]
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = projected_loss(*leaves, None, targets, 0.1, agreement)
        loss.backward()
        found[narrow] = [loss.detach(), *(leaf.grad for leaf in leaves)]
    for whole, rounded in zip(found[False], found[True], strict=True):
        assert (whole - rounded).abs().max() < 0.02 * whole.abs().max()


def test_a_target_that_is_all_but_impossible_has_a_finite_loss():
    states = torch.tensor([[[300.0]]], requires_grad=True)
    matrix = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    loss = projected_loss(states, matrix, None, torch.tensor([1]), 0.0)
    loss.backward()
    assert loss.item() == 600.0
    assert states.grad.isfinite().all()


def test_disagreement_is_both_divergences():
    logits, others = torch.randn(5, 7), torch.randn(5, 7)
    p, q = logits.log_softmax(-1), others.log_softmax(-1)
    expected = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(p, q, reduction="sum", log_target=True)
    torch.testing.assert_close(disagreement(logits, others), expected)


def test_r_drop_without_dropout_is_the_plain_loss():
    model, batch = small_model(dropout=0.0), some_batch()
    plain, both = batch_loss(model, batch, 0.1), batch_loss(model, batch, 0.1, agreement=5.0)
    assert plain[1] == both[1]
    torch.testing.assert_close(plain[0], both[0])


def test_the_mean_over_batches_weighs_tokens_and_leaves_the_mode():
    model, batch = small_model(dropout=0.5).train(), some_batch()
    alone = collate([([5], [6])])
    both = mean_loss(model, [batch, alone])
    assert model.training
    model.eval()
    (one, n), (other, m) = batch_loss(model, batch, 0.0), batch_loss(model, alone, 0.0)
    assert both == pytest.approx((one + other).item() / (n + m), rel=1e-5)


def test_the_papers_rate():
    assert paper_rate(4000, 512, 4000) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert paper_rate(1, 512, 4000) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert paper_rate(16_000, 512, 4000) == pytest.approx(paper_rate(4000, 512, 4000) / 2)
    assert paper_rate(100, 512, 4000, factor=2.0) == pytest.approx(2 * paper_rate(100, 512, 4000))
    rates = [paper_rate(step, 512, 400) for step in range(1, 2000)]
    assert rates.index(max(rates)) == 399
    assert peak_rate(512, 400) == max(rates)


@given(warmup=st.integers(1, 50), peak=st.floats(1e-5, 1e-1))
def test_the_scheduler_follows_the_paper_from_the_first_step_on(warmup, peak):
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=123.0)
    schedule = warmup_schedule(optimiser, warmup, peak)
    for step in range(1, 80):
        expected = peak * min(math.sqrt(warmup / step), step / warmup)
        assert optimiser.param_groups[0]["lr"] == pytest.approx(expected)
        optimiser.step()
        schedule.step()


def test_a_schedule_can_be_saved_and_go_on():
    def fresh():
        optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
        return optimiser, warmup_schedule(optimiser, 5, 0.1)

    optimiser, schedule = fresh()
    for _ in range(8):
        optimiser.step()
        schedule.step()
    other, resumed = fresh()
    resumed.load_state_dict(schedule.state_dict())
    other.load_state_dict(optimiser.state_dict())
    for one, two in ((optimiser, schedule), (other, resumed)):
        one.step()
        two.step()
    assert optimiser.param_groups[0]["lr"] == other.param_groups[0]["lr"]


@given(warmup=st.integers(1, 20), rest=st.integers(1, 40))
def test_the_rate_can_fall_on_a_line_to_the_last_step(warmup, rest):
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=123.0)
    steps = warmup + rest
    schedule = warmup_schedule(optimiser, warmup, 0.1, falls_until=steps)
    rates = []
    for _ in range(steps + 3):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert max(rates) == pytest.approx(0.1) == rates[warmup - 1]
    falls = [one - other for one, other in zip(rates[warmup - 1 :], rates[warmup:steps], strict=False)]
    assert all(fall == pytest.approx(0.1 / (rest + 1), rel=1e-6) for fall in falls)
    assert rates[steps:] == [0.0] * 3


def test_a_rate_cannot_fall_before_it_has_risen():
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    with pytest.raises(ValueError, match="rises for 5 steps, so it cannot fall until step 5"):
        warmup_schedule(optimiser, 5, 0.1, falls_until=5)


@pytest.mark.parametrize(("warmup", "peak", "message"), [(0, 0.1, "warmup=0 must be"), (5, 0.0, "peak=0.0 must be")])
def test_bad_schedules(warmup, peak, message):
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    with pytest.raises(ValueError, match=message):
        warmup_schedule(optimiser, warmup, peak)
    with pytest.raises(ValueError, match="counted from 1"):
        paper_rate(0, 512, 10)
