"""Language models in the training loop: sentences without a translation, and the two losses of the two families.

A sentence becomes a `Batch` with nothing on the source's side. A decoder-only model learns to say the next token
at every position; an encoder-only one the tokens that were hidden from it (BERT: Devlin et al. 2018).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from tinytransformer.model.families import DecoderOnly, EncoderOnly, LanguageModel
from tinytransformer.text.batching import Batch, TokenBatches
from tinytransformer.text.tokenizer import END, PAD, START, UNKNOWN
from tinytransformer.training.loop import Loss, Settings, train
from tinytransformer.training.loss import projected_loss

SHARE = 0.15  # of the tokens that BERT asks for
BLANK, RANDOM = 0.8, 0.1  # of those: shown as a blank, shown as a random token; the rest is shown as it is


def sentence_batches(rows: Sequence[Sequence[int]], tokens: int = 1024) -> TokenBatches:
    """Batches of sentences, given as ids without start and end, for `train_language_model`."""
    return TokenBatches([((), row) for row in rows], tokens)


def mask_tokens(
    ids: Tensor, mask_id: int, vocab_size: int, generator: torch.Generator | None = None, share: float = SHARE
) -> tuple[Tensor, Tensor]:
    """What BERT reads and what it shall say, from ids (B, T): (B, T) each, the second PAD where nothing is asked.

    Of all tokens but padding, start and end a ``share`` is asked for. Four in five of these are shown as a
    blank, one in ten as a token drawn at random, one in ten as they are: so that the model cannot rely on what it sees,
    and has learned what to do where there is no blank. Without a generator PyTorch's own is used, as by dropout.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share={share} is outside (0, 1]: BERT uses {SHARE}")
    if not 0 <= mask_id < vocab_size:
        raise ValueError(f"mask_id={mask_id} is outside the vocabulary 0 … {vocab_size - 1}: give the blank its own id")

    def draw() -> Tensor:
        return torch.rand(ids.shape, generator=generator).to(ids.device)

    special = (ids == PAD) | (ids == START) | (ids == END)
    asked = (draw() < share) & ~special
    how = draw()
    # One of the other tokens: drawn from one fewer, and those from the blank on moved up by one.
    others = torch.randint(UNKNOWN, vocab_size - 1, ids.shape, generator=generator).to(ids)
    others = others + (others >= mask_id).to(ids)
    shown = torch.where(asked & (how < BLANK), mask_id, ids)
    shown = torch.where(asked & (how >= BLANK) & (how < BLANK + RANDOM), others, shown)
    return shown, ids.masked_fill(~asked, PAD)


def language_loss(model: LanguageModel, ids: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """The summed loss of ids (B, T) for targets (B, T), and over how many; where a target is PAD nothing is asked."""
    asked = targets != PAD
    states = model.states(ids)[asked][None]  # (1, N, D)
    output = model.embedding
    return projected_loss(states, output.output_matrix, output.output_bias, targets[asked], smoothing), int(asked.sum())


def next_token_loss(model: DecoderOnly, batch: Batch, smoothing: float = 0.0, agreement: float = 0.0):
    """For the loop: at every position the next token is asked for, from the start token to the end token."""
    _no_agreement(agreement)
    return language_loss(model, batch.target_in, batch.target_out, smoothing)


def hidden_token_loss(
    model: EncoderOnly,
    batch: Batch,
    smoothing: float = 0.0,
    agreement: float = 0.0,
    *,
    mask_id: int,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, int]:
    """For the loop: the tokens that `mask_tokens` picks are asked for.

    The loop divides by all tokens of a batch, so what a few of them cost is taken as if all had been asked.
    """
    _no_agreement(agreement)
    shown, targets = mask_tokens(batch.target_out, mask_id, model.config.vocab_size, generator)
    loss, count = language_loss(model, shown, targets, smoothing)
    return loss * (batch.num_targets / max(1, count)), batch.num_targets


def _no_agreement(agreement: float) -> None:
    if agreement:
        raise ValueError(f"agreement={agreement} is for translation: leave it at 0")


def loss_of(model: LanguageModel, mask_id: int | None = None) -> Loss:
    """What this family minimises; an encoder-only model needs to know its blank."""
    if isinstance(model, DecoderOnly):
        return next_token_loss
    if mask_id is None:
        raise ValueError("an EncoderOnly learns from blanks: give mask_id, an id that no token has")
    return partial(hidden_token_loss, mask_id=mask_id)


def train_language_model(
    model: LanguageModel,
    batches: TokenBatches,
    steps: int,
    mask_id: int | None = None,
    peak: float = 3e-3,
    warmup: int = 100,
    seed: int = 1,
    report: Callable[[dict], None] = lambda entry: None,
    run: Path | None = None,
) -> list[float]:
    """Train in place with the package's loop and schedule; returns the loss of each step.

    ``mask_id`` is for an `EncoderOnly`. With a folder ``run`` the run can stop and go on; without one nothing is kept.
    """
    losses = []

    def note(entry: dict) -> None:
        losses.append(entry["loss"])
        report(entry)

    often = 10**9 if run is None else 200
    settings = Settings(
        steps, peak, min(warmup, max(1, steps - 1)), True, smoothing=0.0, seed=seed, save_every=often, keep=1
    )
    with TemporaryDirectory() as folder:
        train(model, batches, settings, Path(folder) if run is None else run, report=note, loss=loss_of(model, mask_id))
    model.eval()
    return losses


@torch.no_grad()
def language_perplexity(model: LanguageModel, pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """exp of the mean loss per token asked for, over pairs of ids and targets, as `language_loss` takes them."""
    was_training = model.training
    model.eval()
    losses = [language_loss(model, ids, targets) for ids, targets in pairs]
    model.train(was_training)
    return math.exp(float(sum(loss for loss, _ in losses)) / sum(count for _, count in losses))
