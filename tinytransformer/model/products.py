"""The product x Wᵀ + b, by the faster of the two libraries that PyTorch brings along for products on a CPU.

In float32 PyTorch asks MKL, which reaches half of what some processors can do. oneDNN, which PyTorch itself asks in
bfloat16 and for convolutions, reaches all of it, but takes longer to prepare. So small products go one way and large
ones the other; `benchmarks/products.py` shows from which size on that pays.
"""

import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALL = 2**20  # multiplications; with fewer, the preparations take longer than they save
# oneDNN compiles a program for each shape it meets, and in training every batch has another shape. oneDNN and the layer
# above it each keep a thousand of them by default, which is gigabytes. Both look here when they first multiply.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")
# PyTorch's compiler multiplies by this operation. It has no public name, so it may be missing: then all is as usual.
_BY_ONEDNN = None
if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
    _BY_ONEDNN = torch.ops.mkldnn._linear_pointwise.default


class Linear(nn.Linear):
    """``nn.Linear``, computed by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear``: x (…, I), weight (O, I) and bias (O) to (…, O), with its gradients."""
    if not _suits_onednn(x, weight):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Product.apply(x, weight, bias)
    return _product(x, weight, bias)


def _suits_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        x.numel() * weight.size(0) >= SMALL
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() > 1
        and _BY_ONEDNN is not None
        and torch.backends.mkldnn.enabled
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _BY_ONEDNN(x, weight, bias, "none", [], "")


class _Product(torch.autograd.Function):
    """The gradients of a product are products, too."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weight = ctx.saved_tensors
        rows = grad.flatten(0, -2)  # (N, O)
        of_x = linear(grad, weight.T) if ctx.needs_input_grad[0] else None
        of_weight = linear(rows.T, x.flatten(0, -2).T) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, rows.sum(0) if ctx.needs_input_grad[2] else None
