"""Dropout (section 5.4) with cheaper random numbers.

On a CPU a fifth of the training time of a small model goes into drawing dropout's random numbers: PyTorch draws one
number of 32 bits or more per element. Sixteen bits are enough to decide, so here one draw of 64 bits serves four
elements. Each element is still kept or dropped independently of all others, with probability p to within 1/65,536.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16


class Dropout(nn.Dropout):
    """``nn.Dropout``: in training each element becomes zero with probability p, and the others grow by 1 / (1 - p)."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        threshold = round(self.p * LEVELS)
        if not 0 < threshold < LEVELS or x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)  # other devices and compilers draw their own cheap numbers
        return x * _kept(x, threshold)


def _kept(x: Tensor, threshold: int) -> Tensor:
    """One factor per element of x: 0 with probability threshold / 65,536, else what keeps the mean as it was."""
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # uniform over -32,768 … 32,767
    return (bits >= threshold - LEVELS // 2).to(x.dtype).mul_(LEVELS / (LEVELS - threshold))
