"""The cost column of Table 2, computed two ways: from hours and GPUs, as the paper does, and from the model itself.

The paper multiplies hours by GPUs by what it takes a GPU to sustain. The model's own arithmetic is less; the ratio of
the two is how well the GPUs were used. The rest of the time went into what is not a matrix product (softmax, norms, the
optimiser), into padding, the exchange of gradients and waiting; the paper does not say how much into which. Then: what
the same arithmetic would take today. What is assumed for that stands in `GPUS` and `Assumptions`, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

import torch

from tinytransformer.experiments.measuring import counted_operations
from tinytransformer.experiments.paper import SUSTAINED_TFLOPS, TRAINING, Training
from tinytransformer.experiments.runs import parameters, versions, write
from tinytransformer.model.attention import head_size
from tinytransformer.model.config import PRESETS, TransformerConfig
from tinytransformer.model.transformer import Transformer

COMMAND = "python -m tinytransformer.experiments costs"
# A multiply-add counts as two operations, and training as three forward passes: for each product of the forward pass
# the backward pass makes two of the same size, one for the gradient of each factor.
MULTIPLY_ADD, FORWARD_AND_BACKWARD = 2, 3


@dataclass(frozen=True)
class Gpu:
    """What a GPU can do and takes: published peak of dense matrix products, board power, and an assumed price."""

    peak_tflops: float
    precision: str
    watts: float
    dollars_per_hour: float | None  # an assumption: prices of clouds differ by a factor of three, and change
    source: str


GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        "P100": Gpu(10.6, "float32", 300, None, "NVIDIA Tesla P100 data sheet, NVLink version"),
        "A100": Gpu(312, "bfloat16", 400, 2.0, "NVIDIA A100 data sheet, SXM version, without sparsity"),
        "H100": Gpu(989, "bfloat16", 700, 3.0, "NVIDIA H100 data sheet, SXM version, without sparsity"),
    }
)
PAPERS_GPU = "P100"


@dataclass(frozen=True)
class Assumptions:
    """What neither the paper nor a data sheet says. Prices in `GPUS` are of the same date.

    The utilisation is about what the paper's own two runs reached of a P100's peak, computed below; a model as small as
    base may reach less on a GPU that is a hundred times as fast.
    """

    date: str = "2026"
    sentence_length: int = 28  # tokens; only attention's pairs of positions depend on it
    utilisation: float = 0.3  # share of the peak that training reaches on one GPU
    scaling: float = 0.9  # share of it that is left on each of several GPUs
    gpu_counts: tuple[int, ...] = (1, 8)

    def __post_init__(self):
        for name in ("utilisation", "scaling"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} is no share: choose a number above 0 and at most 1")
        if self.sentence_length < 1:
            raise ValueError(f"sentence_length={self.sentence_length} must be at least 1 token")


ASSUMED = Assumptions()


def products(config: TransformerConfig, source: int, target: int) -> dict[str, int]:
    """Multiply-adds of the forward pass over one sentence pair of ``source`` and ``target`` tokens, part by part.

    An embedding is looked up, not multiplied. Masked pairs of positions are counted: they are computed and dropped.
    """
    c = config
    d_k, d_v = (
        head_size(name, size, c.d_model, c.num_heads) * c.num_heads for name, size in (("d_k", c.d_k), ("d_v", c.d_v))
    )
    one_side = c.d_model * (d_k + d_v)  # queries and outputs of a position; or its keys and values
    feed_forward = 2 * c.d_model * c.d_ff
    return {
        "encoder, projections": c.num_layers * source * 2 * one_side,
        "encoder, pairs of positions": c.num_layers * source * source * (d_k + d_v),
        "encoder, feed-forward": c.num_layers * source * feed_forward,
        "decoder, projections": c.num_layers * target * 2 * one_side,
        "decoder, pairs of positions": c.num_layers * target * target * (d_k + d_v),
        "cross, projections": c.num_layers * (target + source) * one_side,
        "cross, pairs of positions": c.num_layers * target * source * (d_k + d_v),
        "decoder, feed-forward": c.num_layers * target * feed_forward,
        "output": target * c.d_model * c.vocab_size,
    }


def training_operations(config: TransformerConfig, training: Training, sentence_length: int) -> float:
    """Operations of a whole training by the model's arithmetic, with sentences of one length on both sides."""
    pairs = training.steps * training.target_tokens / sentence_length
    source = round(sentence_length * training.source_tokens / training.target_tokens)
    forward = sum(products(config, source, sentence_length).values())
    return MULTIPLY_ADD * FORWARD_AND_BACKWARD * forward * pairs


def hours_times_gpus(hours: float, gpus: int, tflops: float) -> float:
    """The paper's way: operations if every GPU did ``tflops`` · 10¹² of them each second."""
    return hours * 3600 * gpus * tflops * 1e12


def today(operations: float, gpu: Gpu, count: int, assumed: Assumptions = ASSUMED) -> dict[str, float | None]:
    """Hours, dollars and kilowatt hours (of the boards alone, at full power) for so many operations."""
    share = assumed.utilisation * (assumed.scaling if count > 1 else 1.0)
    hours = operations / (count * gpu.peak_tflops * 1e12 * share) / 3600
    dollars = None if gpu.dollars_per_hour is None else hours * count * gpu.dollars_per_hour
    return {"hours": hours, "dollars": dollars, "kilowatt_hours": hours * count * gpu.watts / 1000}


def model_row(name: str, assumed: Assumptions = ASSUMED) -> dict:
    """All that is computed for one of the paper's two models."""
    training, length = TRAINING[name], assumed.sentence_length
    config = TransformerConfig(vocab_size=training.vocabulary, **PRESETS[name])
    from_hours = hours_times_gpus(training.hours, training.gpus, SUSTAINED_TFLOPS[PAPERS_GPU])
    from_model = training_operations(config, training, length)
    achieved = from_model / (training.hours * 3600 * training.gpus) / 1e12
    size, counted = counted_without_numbers(config, length)
    return {
        "model": name,
        "training": asdict(training),
        "parameters": size,
        "products": products(config, length, length),
        "products_counted": counted,
        "operations_printed": training.operations,
        "operations_from_hours": from_hours,
        "operations_from_model": from_model,
        "operations_from_model_by_length": {
            str(n): training_operations(config, training, n) for n in (10, 25, 50, 100)
        },
        "six_times_parameters_times_tokens": 6 * size * training.target_tokens * training.steps,
        "model_share_of_hours": from_model / from_hours,
        "achieved_tflops": achieved,
        "utilisation_of_peak": achieved / GPUS[PAPERS_GPU].peak_tflops,
        "papers_kilowatt_hours": training.hours * training.gpus * GPUS[PAPERS_GPU].watts / 1000,
        "today": [
            {"gpu": gpu, "count": count, **today(from_model, GPUS[gpu], count, assumed)}
            for gpu in GPUS
            if gpu != PAPERS_GPU
            for count in assumed.gpu_counts
        ],
    }


def counted_without_numbers(config: TransformerConfig, length: int) -> tuple[int, int]:
    """Parameters of the model, and its forward multiply-adds as PyTorch counts them.

    On tensors that only have shapes: the big model would fill a gigabyte, and its numbers play no part here.
    """
    with torch.device("meta"):
        model = Transformer(config).eval()
        ids = torch.zeros(1, length, dtype=torch.int64)
        counted = counted_operations(lambda: model(ids, ids))
    return parameters(model), counted


def run(path: Path, assumed: Assumptions = ASSUMED) -> dict:
    """Compute everything, write it to ``path`` and return it."""
    results = {
        "command": COMMAND,
        "versions": versions(),
        "assumptions": asdict(assumed),
        "gpus": {name: asdict(gpu) for name, gpu in GPUS.items()},
        "rows": [model_row(name, assumed) for name in TRAINING],
    }
    write(path, results)
    return results
