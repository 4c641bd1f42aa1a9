"""What the tests of the models before the Transformer have in common."""

import torch
from support import VOCAB, randomise

from tinytransformer.model import ARCHITECTURES, Baseline, BaselineConfig, build_model

BASELINES = [name for name in ARCHITECTURES if name != "transformer"]
RECURRENT = [name for name in BASELINES if name not in ("convs2s", "bytenet")]
ATTENTIVE = [name for name in BASELINES if name == "convs2s" or "-" in name]


def small_baseline(architecture: str, **changes) -> Baseline:
    """A small model in evaluation mode with random weights, the same ones each time."""
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCAB, "d_model": 16, "num_layers": 2, "max_length": 40}
    return randomise(build_model(BaselineConfig(architecture, **{**sizes, **changes}))).eval()
