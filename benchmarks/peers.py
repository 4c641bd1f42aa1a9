"""Our model in the hands of its peers: the same sizes, or the same weights, in `transformers` and in CTranslate2.

The benchmarks import from here. A peer that is not installed is named and left out; see benchmarks/requirements.txt.
"""

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torch import nn

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.translation.exchange.ctranslate import write_ctranslate2
from tinytransformer.translation.exchange.marian import marian_config, marian_weights


def present(names: Mapping[str, str]) -> set[str]:
    """Which of the peers can be imported; ``names`` gives the module behind each. The others are named on stderr."""
    found = set()
    for name, module in names.items():
        try:
            importlib.import_module(module)
            found.add(name)
        except ImportError as error:
            print(f"left out: {name} ({error}); see benchmarks/requirements.txt", file=sys.stderr)
    return found


def in_turns(systems: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each system, measured A B C A B C …, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for turn in range(rounds + 1):
        for name, run in systems.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratios(seconds: Mapping[str, Sequence[float]], ours: str) -> dict[str, float]:
    """How many times faster we are than each other system: the ratio of medians."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {name: median / medians[ours] for name, median in medians.items() if name != ours}


def transformers_model(config: TransformerConfig) -> nn.Module:
    """A model of the same sizes: Marian is that library's post-norm Transformer, Pegasus the same with pre-norm."""
    import transformers

    values = marian_config(config)
    (model_class,) = values.pop("architectures")
    config_class = {"marian": "MarianConfig", "pegasus": "PegasusConfig"}[values.pop("model_type")]
    return getattr(transformers, model_class)(getattr(transformers, config_class)(**values, attn_implementation="sdpa"))


def to_transformers(model: Transformer) -> nn.Module:
    """Our weights in that library's model."""
    weights = marian_weights(model)
    theirs = transformers_model(model.config).eval()
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    made_there = ("embed_tokens.weight", "lm_head.weight")  # tied
    if unexpected or not all(name.endswith(made_there) for name in missing):
        raise RuntimeError(f"our weights do not fit: missing {missing}, unexpected {unexpected}")
    return theirs


def to_ctranslate2(model: Transformer, folder: Path) -> Path:
    """Our weights in a CTranslate2 model folder, float32. Its vocabulary consists of the ids, written as text."""
    return write_ctranslate2(model, [str(number) for number in range(model.config.vocab_size)], folder)
