"""The loss: cross-entropy with label smoothing (section 5.4), over real target tokens only.

Smoothing spreads ε over all V classes, as ``F.cross_entropy(label_smoothing=)`` does: the right token gets
1 - ε + ε/V, every other one ε/V. (Other implementations spread ε over the V - 1 wrong ones.)

The loss stands here twice. `smoothed_cross_entropy` and `disagreement` are the formulas, for reading.
`projected_loss` is what training runs on: the same value and the same gradients, with the projection to the vocabulary
taken a few rows at a time, so that the logits of a batch (N × V numbers, by far the largest tensor of a small model)
never exist at once. Tests keep the two equal.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tinytransformer.model.baselines import Model
from tinytransformer.model.products import linear
from tinytransformer.text.batching import Batch

NUMBERS_AT_ONCE = 2**22  # logits held at a time; fewer, and the sums of their gradients cost more than they save


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """The summed loss of logits (N, V) for target ids (N): −(1−ε) log p(target) − ε · mean over V of log p."""
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing={smoothing} is outside [0, 1): the paper uses 0.1; 0 switches it off")
    log_probabilities = logits.float().log_softmax(-1)
    right = log_probabilities.gather(-1, targets[:, None]).sum()
    return -(1 - smoothing) * right - smoothing * log_probabilities.mean(-1).sum()


def disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """KL(p‖q) + KL(q‖p), summed over rows, of two predictions (N, V) = Σ (p − q)(log p − log q).

    Departure: R-Drop (Liang et al. 2021) asks two passes under different dropout to agree; the paper has no such term.
    """
    first, second = logits.float().log_softmax(-1), others.float().log_softmax(-1)
    return ((first.exp() - second.exp()) * (first - second)).sum()


def projected_loss(
    states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float, agreement: float = 0.0
) -> Tensor:
    """The summed loss of states (P, N, D) for targets (N), under an output matrix (V, D) and a bias (V).

    P is the number of passes over the same targets: one, or two that R-Drop pulls together with the weight
    ``agreement``: the loss is then half of CE + CE' + ``agreement`` · disagreement / 2.
    """
    return _ProjectedLoss.apply(states, matrix, bias, targets, smoothing, agreement)


class _ProjectedLoss(torch.autograd.Function):
    """The gradient of the logits is softmax minus the smoothed target: it is made, used and forgotten on the way.

    The share ε / V of every class is the same in all rows, so it is left out of the N × V numbers: it takes
    ε · mean(logits) from the loss, ε · mean(matrix) from the gradient of each state, and so on, once for all rows.
    """

    @staticmethod
    def forward(ctx, states, matrix, bias, targets, smoothing, agreement):
        if torch.is_autocast_enabled(states.device.type):
            states = states.to(torch.get_autocast_dtype(states.device.type))
        narrow = matrix.to(states.dtype)
        loss = torch.zeros((), dtype=torch.float32, device=states.device)
        state_grads = torch.empty_like(states)
        matrix_grad = torch.zeros_like(matrix.T, dtype=torch.float32, memory_format=torch.contiguous_format)  # (D, V)
        bias_grad = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        passes, size = states.size(0), matrix.size(0)
        for rows in torch.arange(len(targets)).split(max(1, NUMBERS_AT_ONCE // (passes * size))):
            part = slice(int(rows[0]), int(rows[-1]) + 1)
            logits = linear(states[:, part], narrow)
            logits = logits if bias is None else logits + bias
            value, gradient = _value_and_gradient(logits, targets[part], 1 - smoothing, agreement)
            loss += value
            if bias_grad is not None:
                bias_grad += gradient.sum((0, 1))
            gradient = gradient.to(states.dtype)
            state_grads[:, part] = linear(gradient, narrow.T)
            matrix_grad += linear(states[:, part].flatten(0, 1).T, gradient.flatten(0, 1).T)
        every_state, every_row = states.float().sum((0, 1)), narrow.float().sum(0)  # (D), (D)
        share = smoothing / size / passes
        loss -= share * (every_state @ every_row)
        state_grads -= (share * every_row).to(states.dtype)
        matrix_grad -= share * every_state[:, None]
        if bias_grad is not None:
            loss -= share * passes * len(targets) * bias.sum()
            bias_grad -= share * passes * len(targets)
        ctx.save_for_backward(state_grads, matrix_grad.T, bias_grad)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        scaled = [None if saved is None else saved * grad for saved in ctx.saved_tensors]
        return *scaled, None, None, None


def _value_and_gradient(logits: Tensor, targets: Tensor, weight: float, agreement: float) -> tuple[Tensor, Tensor]:
    """Σ log Σ exp(logits) − ``weight`` · Σ logits[target] of logits (P, n, V), plus R-Drop if asked; its gradient."""
    passes = logits.size(0)
    right = (slice(None), torch.arange(logits.size(1)), targets)
    chosen = logits[right].float()  # (P, n)
    if agreement:
        log_probabilities = logits.float().log_softmax(-1)
        log_sums = chosen - log_probabilities[right]
        pull, gradient = _disagreement_and_gradient(log_probabilities, agreement / 2)
    else:
        highest, where = logits.max(-1, keepdim=True)
        pull, gradient = 0.0, logits.softmax(-1)
        # The largest probability is never too small for its logarithm, so the sum of the exponentials comes from it.
        log_sums = highest.float() - gradient.gather(-1, where).float().log()
    gradient[right] -= weight
    value = log_sums.sum() - weight * chosen.sum() + pull
    return value / passes, gradient.div_(passes) if passes > 1 else gradient


def _disagreement_and_gradient(log_probabilities: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """weight · disagreement of the two passes (2, n, V), and its gradient plus the probabilities themselves.

    With g = log p − log q the gradient for p's logits is weight · (p (g − Σ p g) + p − q), for q's the mirror image.
    """
    gap = log_probabilities[0] - log_probabilities[1]  # (n, V)
    probabilities = log_probabilities.exp_()
    gradient = torch.empty_like(probabilities)
    total = torch.zeros((), device=gap.device)
    for one, sign in ((0, 1.0), (1, -1.0)):
        p, q = probabilities[one], probabilities[1 - one]
        divergence = sign * torch.linalg.vecdot(p, gap)  # (n): KL(p‖q)
        total += divergence.sum()
        torch.mul(gap, sign * weight, out=gradient[one])
        gradient[one].sub_(weight * divergence[:, None] - (1 + weight)).mul_(p).sub_(q, alpha=weight)
    return weight * total, gradient


def batch_loss(model: Model, batch: Batch, smoothing: float = 0.1, agreement: float = 0.0) -> tuple[Tensor, int]:
    """The summed loss of a batch, and over how many target tokens it is summed.

    Logits are computed only where there is a target: the projection to the vocabulary is the largest matrix product of
    a small model, and padding needs none of it. With ``agreement`` sentences take two passes, see `projected_loss`.
    """
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing={smoothing} is outside [0, 1): the paper uses 0.1; 0 switches it off")
    passes = 2 if agreement else 1
    states = model.decode(batch.target_in.repeat(passes, 1), model.encode(batch.source.repeat(passes, 1)))
    real = batch.target_out != model.config.pad_id
    states = states.unflatten(0, (passes, -1))[:, real]  # (P, B, T, D) -> (P, N, D)
    output = model.embedding
    targets = batch.target_out[real]
    loss = projected_loss(states, output.output_matrix, output.output_bias, targets, smoothing, agreement)
    return loss, len(targets)


@torch.no_grad()
def mean_loss(model: Model, batches: list[Batch], smoothing: float = 0.0) -> float:
    """The loss per target token over many batches, in evaluation mode; e to its power is the perplexity."""
    was_training = model.training
    model.eval()
    losses = [batch_loss(model, batch, smoothing) for batch in batches]
    model.train(was_training)
    return float(sum(loss for loss, _ in losses)) / sum(count for _, count in losses)
