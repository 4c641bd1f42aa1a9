"""A short training run, for tests and as a script: python support_training.py RUN STEPS [OUTPUT]."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.text.batching import TokenBatches
from tinytransformer.training.loop import Settings, train


def some_batches() -> TokenBatches:
    """Copying: the target is the source."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 9, (160,), generator=generator).tolist()
    rows = [torch.randint(4, 20, (length,), generator=generator).tolist() for length in lengths]
    return TokenBatches([(row, row) for row in rows], tokens=120)


def fresh_model(dropout: float = 0.1) -> Transformer:
    torch.manual_seed(11)
    return Transformer(TransformerConfig(20, d_model=16, num_heads=2, d_ff=32, num_layers=1, dropout=dropout))


def settings(**changes) -> Settings:
    usual = {"steps": 40, "peak": 5e-3, "warmup": 10, "save_every": 7, "validate_every": 10, "keep": 3}
    return Settings(**{**usual, **changes})


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    run, steps = Path(sys.argv[1]), int(sys.argv[2])
    distributed = dist.is_initialized()
    changes = {"accumulate": 1 if distributed else 2} if len(sys.argv) > 3 else {}
    losses = []
    model = fresh_model(dropout=0.0 if len(sys.argv) > 3 else 0.1)
    train(
        model, some_batches(), settings(steps=steps, **changes), run, report=lambda entry: losses.append(entry["loss"])
    )
    if len(sys.argv) > 3 and (not distributed or dist.get_rank() == 0):
        Path(sys.argv[3]).write_text(json.dumps(losses))
    if distributed:
        dist.destroy_process_group()
