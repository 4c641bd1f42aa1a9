"""The learning rate: rising for the first steps, then falling with the inverse square root (section 5.3).

rate(step) = factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)
"""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def paper_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """The paper's learning rate at a step, counted from 1."""
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def peak_rate(d_model: int, warmup: int, factor: float = 1.0) -> float:
    """The highest learning rate, reached at the end of the warm-up."""
    return paper_rate(warmup, d_model, warmup, factor)


def falling_share(step: int, warmup: int, steps: int) -> float:
    """Departure: the share of the highest rate when it falls on a straight line, to zero just after the last step."""
    return min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup)) if step <= steps else 0.0


def warmup_schedule(optimiser: Optimizer, warmup: int, peak: float, falls_until: int | None = None) -> LambdaLR:
    """The paper's curve as a PyTorch scheduler, scaled so that its highest rate is ``peak``.

    For the paper's own rates take ``peak=peak_rate(d_model, warmup)``. With ``falls_until`` the rate falls on a
    straight line instead, to zero after that step.
    """
    if warmup < 1:
        raise ValueError(f"warmup={warmup} must be at least 1 step")
    if peak <= 0:
        raise ValueError(f"peak={peak} must be above 0")
    if falls_until is not None and falls_until <= warmup:
        raise ValueError(f"the rate rises for {warmup} steps, so it cannot fall until step {falls_until}: train longer")
    for group in optimiser.param_groups:
        group["lr"] = peak
    # LambdaLR counts from 0: the first step is made with the rate of step 1.
    if falls_until is not None:
        return LambdaLR(optimiser, lambda done: falling_share(done + 1, warmup, falls_until))
    return LambdaLR(optimiser, lambda done: paper_rate(done + 1, 1, warmup) / peak_rate(1, warmup))
