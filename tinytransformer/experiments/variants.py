"""What people leave out of the Transformer to see what it was good for: built from the same parts, in new classes.

The model has no flag for these. They are put into a finished model, in the place of what it has.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import Tensor, nn

from tinytransformer.model.layers import PostNorm
from tinytransformer.model.transformer import Transformer


class WithoutResidual(PostNorm):
    """norm(dropout(sublayer(x))): what came in is forgotten."""

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        return self.norm(self.dropout(y))


class WithoutNorm(PostNorm):
    """x + dropout(sublayer(x)): nothing keeps the sum at one size."""

    def __init__(self, d_model: int, dropout: float):
        super().__init__(d_model, dropout)
        del self.norm

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        return x + self.dropout(y)


def without_residual(model: Transformer) -> Transformer:
    """A post-norm model that passes on only what its sub-layers say."""
    return _with(WithoutResidual, model)


def without_norm(model: Transformer) -> Transformer:
    """A post-norm model without any LayerNorm."""
    return _with(WithoutNorm, model)


def without_scaling(model: Transformer) -> Transformer:
    """softmax(Q Kᵀ) V: queries and keys are each stretched by d_k^¼, which undoes the division by √d_k."""
    for _, _, module in model.attentions():
        stretch = (module.w_k.out_features // module.num_heads) ** 0.25
        module.rotate = lambda heads, offset=0, stretch=stretch, turn=module.rotate: turn(heads, offset) * stretch
    return model


def _with(residual: type[PostNorm], model: Transformer) -> Transformer:
    if model.config.norm != "post":
        raise ValueError(f"norm={model.config.norm!r}: {residual.__name__} takes the place of post-norm only")
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        for name, child in list(layer.named_children()):
            if isinstance(child, PostNorm):
                setattr(layer, name, residual(model.config.d_model, model.config.dropout))
    return model


def unchanged(model: Transformer) -> Transformer:
    """The model as it is."""
    return model


CHANGES: Mapping[str, Callable[[Transformer], nn.Module]] = MappingProxyType(
    {
        "": unchanged,
        "no residual": without_residual,
        "no LayerNorm": without_norm,
        "no scaling": without_scaling,
    }
)
