"""Training speed with the same sizes and the same batches: ours, torch.nn.Transformer, `transformers`, JoeyNMT.

Two sizes: the Multi30k model in batches of 4,096 tokens, and the paper's base model in batches of 1,024. All train in
float32 and eager mode by the same step (gradients, clipping, fused Adam) and take turns in one process. Every library
goes its fastest way to the same model: fused attention where it has it, dropout only where the paper has it, nothing
computed that the step does not need. Also the peak memory of training the Multi30k recipe, in a process of its own.

Run: python benchmarks/training.py [--data FOLDER] [--threads N] [--only multi30k]     (benchmarks/requirements.txt)
"""

import argparse
import importlib.metadata
import json
import logging
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from peers import in_turns, present, ratios, transformers_model
from torch import Tensor, nn

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.model.positions import sinusoids
from tinytransformer.text.batching import Batch, TokenBatches
from tinytransformer.text.corpus import multi30k
from tinytransformer.text.tokenizer import PAD, Tokenizer
from tinytransformer.training.loop import train
from tinytransformer.training.loss import batch_loss
from tinytransformer.training.preparing import encode, tokenizer_for, training_batches, training_corpus
from tinytransformer.training.recipes import RECIPES

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results" / "training_speed.json"
VOCABULARY, SMOOTHING = 8000, 0.1
SIZES = {
    "multi30k": {"d_model": 128, "num_heads": 4, "d_ff": 256, "num_layers": 4, "dropout": 0.2, "norm": "pre"},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "num_layers": 6, "dropout": 0.1, "norm": "post"},
}
TOKENS = {"multi30k": 4096, "base": 1024}  # of one batch
OURS = "tinytransformer"
PEERS = {"transformers": "transformers", "joeynmt": "joeynmt.model"}
Loss = Callable[[Batch], Tensor]  # the summed loss of a batch


def ours(config: TransformerConfig) -> tuple[nn.Module, Loss]:
    model = Transformer(config)
    return model, lambda batch: batch_loss(model, batch, SMOOTHING)[0]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum"
    )


class TorchModel(nn.Module):
    """torch.nn.Transformer between a tied embedding and the projection to logits."""

    def __init__(self, c: TransformerConfig):
        super().__init__()
        self.scale = math.sqrt(c.d_model)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.register_buffer("positions", sinusoids(c.max_length, c.d_model))
        self.dropout = nn.Dropout(c.dropout)
        layers = {"num_encoder_layers": c.num_layers, "num_decoder_layers": c.num_layers}
        warnings.filterwarnings("ignore", message="enable_nested_tensor is True")  # nested tensors are for inference
        self.transformer = nn.Transformer(
            c.d_model, c.num_heads, **layers, dim_feedforward=c.d_ff, dropout=c.dropout, batch_first=True,
            norm_first=c.norm == "pre",
        )  # fmt: skip
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0  # inside the feed-forward network

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, batch: Batch) -> Tensor:
        padding = batch.source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(batch.target_in.size(1))
        states = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(states, self.embedding.weight)


def torch_nn(config: TransformerConfig) -> tuple[nn.Module, Loss]:
    model = TorchModel(config)
    return model, lambda batch: cross_entropy(model(batch), batch.target_out)


def transformers_peer(config: TransformerConfig) -> tuple[nn.Module, Loss]:
    model = transformers_model(config)

    def loss(batch: Batch) -> Tensor:
        mask = (batch.source != PAD).long()
        found = model(input_ids=batch.source, attention_mask=mask, decoder_input_ids=batch.target_in, use_cache=False)
        return cross_entropy(found.logits, batch.target_out)

    return model, loss


def joeynmt(config: TransformerConfig) -> tuple[nn.Module, Loss]:
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    c = config
    logging.disable(logging.INFO)  # it tells about each part that it builds
    # Its special tokens have fixed places: unknown, padding, start, end. Ours are padding, start, end, unknown.
    places = torch.cat([torch.tensor([1, 2, 3, 0]), torch.arange(4, c.vocab_size)])
    names = {"unk": 0, "pad": 1, "bos": 2, "eos": 3, "sep": None}
    special = {f"{name}_token": f"<{name}>" if place is not None else None for name, place in names.items()}
    special |= {f"{name}_id": place for name, place in names.items()} | {"lang_tags": []}
    vocabulary = Vocabulary([str(number) for number in range(4, c.vocab_size)], SimpleNamespace(**special))
    stack = {"type": "transformer", "num_layers": c.num_layers, "num_heads": c.num_heads, "hidden_size": c.d_model}
    stack |= {"ff_size": c.d_ff, "dropout": c.dropout, "layer_norm": c.norm}
    stack |= {"embeddings": {"embedding_dim": c.d_model, "scale": True, "dropout": c.dropout}}
    sizes = {"encoder": stack, "decoder": stack, "tied_embeddings": True, "tied_softmax": True}
    sizes |= {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"}
    model = build_model(sizes, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", SMOOTHING)
    for module in model.modules():
        if type(module).__name__ == "MultiHeadedAttention":
            module.dropout.p = 0.0
        if type(module).__name__ == "PositionwiseFeedForward":
            module.pwff_layer[2].p = 0.0

    def loss(batch: Batch) -> Tensor:
        source, target_in, target_out = (places[ids] for ids in (batch.source, batch.target_in, batch.target_out))
        # The parts of its forward(return_type="loss"), without counting how many tokens were right.
        logits, *_ = model._encode_decode(
            src=source,
            trg_input=target_in,
            src_mask=(source != model.pad_index)[:, None],
            src_length=None,
            trg_mask=(target_out != model.pad_index)[:, None],
        )
        return model.loss_function(logits.log_softmax(-1), trg=target_out)

    return model, loss


SYSTEMS = {OURS: ours, "torch.nn": torch_nn, "transformers": transformers_peer, "joeynmt": joeynmt}


def trainer(model: nn.Module, loss: Loss, batches: list[Batch]) -> Callable[[], None]:
    """One round: a step on each batch."""
    model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def run() -> None:
        for batch in batches:
            optimiser.zero_grad(set_to_none=True)
            value = loss(batch) / batch.num_targets
            value.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            if not math.isfinite(value.item()):
                raise SystemExit(f"{type(model).__name__} does not train: its loss is {value.item()}")

    return run


def measure(size: str, names: list[str], pairs: list, rounds: int, number: int) -> dict:
    """Speeds of all systems on the same batches, and our ratios."""
    planned = TokenBatches(pairs, TOKENS[size])
    batches = [planned.batch(rows) for rows in planned.plan(0, seed=1)[:number]]
    config = TransformerConfig(vocab_size=VOCABULARY, **SIZES[size])
    torch.manual_seed(1)
    built = {name: SYSTEMS[name](config) for name in names}
    seconds = in_turns({name: trainer(*parts, batches) for name, parts in built.items()}, rounds)
    medians = {name: median(values) for name, values in seconds.items()}
    targets = sum(batch.num_targets for batch in batches)
    return {
        "size": size,
        "batches": number,
        "parameters": {
            name: sum(p.numel() for p in model.parameters() if p.requires_grad) for name, (model, _) in built.items()
        },
        "steps_per_second": {name: number / value for name, value in medians.items()},
        "target_tokens_per_second": {name: targets / value for name, value in medians.items()},
        "ours_is_faster_by": ratios(seconds, OURS),
        "seconds": seconds,
    }


def table_rows(row: dict) -> list[str]:
    """The lines of the README's table."""
    lines = []
    for name, speed in row["steps_per_second"].items():
        factor = f"{row['ours_is_faster_by'][name]:.2f} ×" if name != OURS else ""
        tokens = row["target_tokens_per_second"][name]
        lines.append(f"| {row['size']} | {name} | {speed:.2f} | {tokens:,.0f} | {factor} |")
    return lines


def measure_peak(data: str | None, steps: int = 150) -> float:
    """Megabytes at most in use while the shipped Multi30k recipe is trained. Runs in a process of its own."""
    recipe = replace(RECIPES["multi30k"], steps=steps, warmup=10, save_every=10**6, validate_every=10**6)
    with tempfile.TemporaryDirectory() as folder:
        corpus = training_corpus(recipe, data)
        tokenizer = tokenizer_for(recipe, corpus, Path(folder))
        batches = training_batches(recipe, tokenizer, corpus)
        train(Transformer(recipe.config()), batches, recipe.settings(), Path(folder))
    status = Path("/proc/self/status")
    if status.exists():  # Linux hands `ru_maxrss` down from the process that started this one
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))[1]) / 1024
    unit = 1024 if sys.platform == "darwin" else 1  # macOS counts bytes, others kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit / 1024


def peak(options: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "--peak", "--threads", str(options.threads)]
    command += ["--data", options.data] if options.data else []
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=[*SIZES, "memory"], help="one part; default: all, and only then written down")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        print(measure_peak(options.data))
        return
    found = present(PEERS)
    names = [name for name in SYSTEMS if name not in PEERS or name in found]
    rows = []
    sizes = [size for size in SIZES if options.only in (None, size)]
    if sizes:
        corpus = multi30k("train", "en", "de", options.data)
        pairs = encode(Tokenizer.train([*corpus.source, *corpus.target], VOCABULARY), corpus)
        print("| size | system | steps a second | target tokens a second | ours is faster by |")
        print("|---|---|--:|--:|--:|")
    for size in sizes:
        rows.append(measure(size, names, pairs, options.rounds, number={"multi30k": 4, "base": 2}[size]))
        print("\n".join(table_rows(rows[-1])), flush=True)
    if options.only in (None, "memory"):
        megabytes = peak(options)
        print(f"peak memory of training the Multi30k recipe, in one process: {megabytes:,.0f} MB")
    if options.only == "memory" and RESULTS.exists():  # the speeds stay those of the last whole run
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) | {"peak_megabytes": megabytes}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if options.only is None:
        about = {"command": "python benchmarks/training.py", "threads": options.threads, "rounds": options.rounds}
        about |= {"torch": torch.__version__.split("+")[0], "vocabulary": VOCABULARY, "smoothing": SMOOTHING}
        about |= {name: importlib.metadata.version(name) for name in sorted(found)}
        about |= {"sizes": SIZES, "tokens": TOKENS, "peak_megabytes": megabytes, "rows": rows}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
