"""What a training will take, before it begins: data, steps, operations, hours on GPUs, memory; then two steps of it.

``train --dry-run`` prints it. Operations are counted by PyTorch on the model itself, GPU peaks are the published ones
of `costs.GPUS`, and what nobody can know beforehand (sentence length, utilisation) stands in `costs.Assumptions`. The
bytes that a backward pass waits for are measured here, on small batches, and grow with the tokens of a batch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import torch

from tinytransformer.experiments.costs import (
    ASSUMED,
    FORWARD_AND_BACKWARD,
    GPUS,
    MULTIPLY_ADD,
    PAPERS_GPU,
    Assumptions,
    counted_without_numbers,
    today,
)
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.text.batching import Batch, Encoded, TokenBatches, collate
from tinytransformer.training.loop import train
from tinytransformer.training.loss import batch_loss
from tinytransformer.training.recipe import Recipe, RecipeError

# Sentence pairs of the corpora whose size is known: Multi30k's own count, and what section 5.1 says of WMT 2014.
PAIRS: Mapping[str, int] = MappingProxyType({"multi30k": 29_000, "wmt14-base": 4_500_000})
MEMORY_GB = 80  # of an A100 or an H100, by their data sheets
STATES = 4  # float32 numbers for each parameter: itself, its gradient, Adam's two means
FLOAT32 = 4
MEASURED = (4, 8)  # pairs in the two batches whose memory is measured
TRIED = 8  # pairs in a batch of the two steps
GB = 1e9


@dataclass(frozen=True)
class Plan:
    """What a recipe asks for. Tokens are target tokens; hours are those of `today`, for each GPU and number of them."""

    parameters: int
    pairs: int | None  # None where the text is the user's own
    tokens_of_a_batch: int
    batches_of_a_step: int  # on a single GPU; several share them
    steps: int
    operations: float
    hours: Mapping[tuple[str, int], float]
    assumed: Assumptions
    state_bytes: int  # weights, gradients, the optimiser's means
    bytes_of_a_token: float  # what a batch keeps for the backward pass, for each of its tokens

    @property
    def tokens(self) -> int:
        """Of the whole training."""
        return self.tokens_of_a_batch * self.batches_of_a_step * self.steps

    @property
    def epochs(self) -> float | None:
        """How often each pair is seen, if all had the assumed length."""
        return self.tokens / (self.pairs * self.assumed.sentence_length) if self.pairs else None

    @property
    def memory(self) -> float:
        """Bytes on one GPU."""
        return self.state_bytes + self.tokens_of_a_batch * self.bytes_of_a_token


def make_plan(recipe: Recipe, name: str | None = None, assumed: Assumptions = ASSUMED) -> Plan:
    """What training by this recipe takes; ``name`` tells how many pairs a published corpus has."""
    config = _transformer(recipe)
    length = assumed.sentence_length
    parameters, products = counted_without_numbers(config, length)
    tokens = recipe.tokens * recipe.accumulate * recipe.steps
    passes = 2 if recipe.agreement else 1  # R-Drop reads every pair twice
    operations = MULTIPLY_ADD * FORWARD_AND_BACKWARD * products * passes * tokens / length
    pairs = recipe.pairs if recipe.corpus in ("microworld", "trees") else PAIRS.get(name or recipe.corpus)
    hours = {
        (gpu, count): today(operations, GPUS[gpu], count, assumed)["hours"]
        for gpu in GPUS
        if gpu != PAPERS_GPU
        for count in assumed.gpu_counts
    }
    kept = passes * bytes_for_backward(config, length)
    state = STATES * FLOAT32 * parameters
    return Plan(
        parameters, pairs, recipe.tokens, recipe.accumulate, recipe.steps, operations, hours, assumed, state, kept
    )


def _transformer(recipe: Recipe) -> TransformerConfig:
    config = recipe.config()
    if not isinstance(config, TransformerConfig):
        raise RecipeError(
            f"architecture={recipe.architecture!r}: a dry run counts the products of a Transformer only; "
            "leave --dry-run out, or choose architecture=transformer"
        )
    return config


def bytes_for_backward(config: TransformerConfig, length: int) -> float:
    """Bytes that are kept for the backward pass, for each target token of a batch, in float32.

    From two batches, so that what does not grow with a batch (such as the weights, which are kept anyway) drops out.
    """
    torch.manual_seed(0)
    # One layer and two tell what each further one adds; six would take the memory that is in question.
    few, more = (replace(config, num_layers=number) for number in (1, 2))
    one, two = (_growth(Transformer(kind), length) for kind in (few, more))
    return one + (config.num_layers - 1) * (two - one)


def _growth(model: Transformer, length: int) -> float:
    sizes = []
    for pairs in MEASURED:
        batch = collate(list(_made_up(model.config.vocab_size, length, pairs)))
        sizes.append((saved_bytes(model, batch), batch.target_out.numel()))
    (small, few), (large, many) = sizes
    return (large - small) / (many - few)


def saved_bytes(model: Transformer, batch: Batch) -> int:
    """Bytes of all tensors that autograd keeps between the forward and the backward pass; shared ones count once."""
    kept: dict[int, int] = {}
    held = []  # a storage that is given back could hand its address to the next

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        held.append(storage)
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        batch_loss(model, batch, smoothing=0.1)
    return sum(kept.values())


def _made_up(vocabulary: int, length: int, number: int) -> Iterator[Encoded]:
    """Pairs of random ids: for shapes, memory and time any text will do. The end token takes one of ``length``."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(number):
        source, target = torch.randint(4, vocabulary, (2, length - 1), generator=generator).tolist()
        yield source, target


def two_steps(recipe: Recipe, assumed: Assumptions = ASSUMED) -> list[float]:
    """The losses of two real steps of the recipe's model and loop, on the processor, with small made-up batches."""
    torch.manual_seed(recipe.seed)
    model = Transformer(_transformer(recipe))
    length = assumed.sentence_length
    pairs = list(_made_up(recipe.vocab_size, length, 2 * TRIED * recipe.accumulate))
    # bfloat16 is for GPUs: a processor without it would be slow, or stop.
    settings = replace(recipe.settings(), steps=2, bf16=False, keep=1)
    losses: list[float] = []
    with TemporaryDirectory() as folder:
        batches = TokenBatches(pairs, TRIED * length)
        train(model, batches, settings, Path(folder), report=lambda entry: losses.append(entry["loss"]))
    return losses


def described(plan: Plan) -> list[str]:
    """The plan in lines, each number with where it comes from."""
    step = plan.tokens_of_a_batch * plan.batches_of_a_step
    assumed = plan.assumed
    data = "your own text" if plan.pairs is None else f"{plan.pairs:,} sentence pairs"
    epochs = "" if plan.epochs is None else f", about {plan.epochs:.1f} epochs"
    lines = [
        f"data        {data}, taken to have {assumed.sentence_length} tokens a side",
        f"model       {plan.parameters:,} parameters",
        f"a step      {step:,} target tokens: {plan.batches_of_a_step} batches of {plan.tokens_of_a_batch:,} on one "
        "GPU, or shared among several",
        f"steps       {plan.steps:,}, which is {plan.tokens:.2g} target tokens{epochs}",
        f"operations  {plan.operations:.2g} (products of the forward pass counted, times {FORWARD_AND_BACKWARD} with "
        f"the backward pass, times {MULTIPLY_ADD} for multiplying and adding)",
    ]
    for (gpu, count), hours in plan.hours.items():
        share = assumed.utilisation * (assumed.scaling if count > 1 else 1)
        peak = f"{share:.0%} of {GPUS[gpu].peak_tflops:g} TFLOPS each"
        lines.append(f"hours       {hours:6.1f} on {count} × {gpu}, if they reach {peak} ({GPUS[gpu].precision})")
    fits = "fits" if plan.memory < 0.9 * MEMORY_GB * GB else "does NOT fit"
    return [
        *lines,
        f"memory      {plan.state_bytes / GB:.2f} GB for weights, gradients and Adam, and "
        f"{plan.tokens_of_a_batch * plan.bytes_of_a_token / GB:.2f} GB for a batch of {plan.tokens_of_a_batch:,} "
        f"tokens in float32 (measured on small batches): {fits} a GPU of {MEMORY_GB} GB"
        + ("" if fits == "fits" else "; lower --tokens and raise --accumulate by the same factor"),
    ]
