"""The loss: cross-entropy with label smoothing (section 5.4), over real target tokens only.

Smoothing spreads ε over all V classes, as ``F.cross_entropy(label_smoothing=)`` does: the right token gets
1 - ε + ε/V, every other one ε/V. (Other implementations spread ε over the V - 1 wrong ones.)
"""

import torch
from torch import Tensor

from tinytransformer.model.transformer import Transformer
from tinytransformer.text.batching import Batch


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """The summed loss of logits (N, V) for target ids (N): −(1−ε) log p(target) − ε · mean over V of log p."""
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing={smoothing} is outside [0, 1): the paper uses 0.1; 0 switches it off")
    log_probabilities = logits.float().log_softmax(-1)
    right = log_probabilities.gather(-1, targets[:, None]).sum()
    return -(1 - smoothing) * right - smoothing * log_probabilities.mean(-1).sum()


def batch_loss(model: Transformer, batch: Batch, smoothing: float = 0.1) -> tuple[Tensor, int]:
    """The summed loss of a batch, and over how many target tokens it is summed.

    Logits are computed only where there is a target: the projection to the vocabulary is the largest matrix product of
    a small model, and padding needs none of it.
    """
    states = model.decode(batch.target_in, model.encode(batch.source))
    real = batch.target_out != model.config.pad_id
    return smoothed_cross_entropy(model.logits(states[real]), batch.target_out[real], smoothing), int(real.sum())


@torch.no_grad()
def mean_loss(model: Transformer, batches: list[Batch], smoothing: float = 0.0) -> float:
    """The loss per target token over many batches, in evaluation mode; e to its power is the perplexity."""
    was_training = model.training
    model.eval()
    losses = [batch_loss(model, batch, smoothing) for batch in batches]
    model.train(was_training)
    return float(sum(loss for loss, _ in losses)) / sum(count for _, count in losses)
