"""An ONNX folder, run by onnxruntime behind the methods of our model: our search decodes with their engine."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from tinytransformer.model.cache import Cache, KeyValue, LayerCache, Memory
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.training.checkpoints import CARD, CONFIG, AnyTokenizer, model_files, read_folder, tokenizer_from
from tinytransformer.translation.exchange.formats import ExchangeError, package
from tinytransformer.translation.exchange.onnx_export import DECODER, ENCODER, GRAPHS, layer_names
from tinytransformer.translation.translator import Translator


@dataclass(frozen=True, eq=False)
class OnnxMemory(Memory):
    """The encoder's output, with the keys and values that the decoder's layers have made of it."""

    layers: tuple[KeyValue, ...]

    def select(self, rows: Tensor) -> "OnnxMemory":
        chosen = super().select(rows)
        return OnnxMemory(chosen.states, chosen.mask, tuple(layer.select(rows) for layer in self.layers))


class OnnxModel(nn.Module):
    """`encode` and `step` like `Transformer`, computed by onnxruntime. It has no weights to train or look at.

    ``threads`` are those of one call; the translator runs calls side by side, so one is most often best.
    """

    # These ask for nothing but ``config``.
    _check_ids = Transformer._check_ids
    _check_target = Transformer._check_target

    def __init__(self, folder: str | Path, config: TransformerConfig, threads: int = 1):
        super().__init__()
        self.config = config
        self._encoder, self._decoder = (_session(Path(folder) / name, threads) for name in (ENCODER, DECODER))

    def encode(self, source: Tensor) -> OnnxMemory:
        """Source ids (B, S) to the encoder's output, which carries its padding mask."""
        self._check_ids("source", source)
        found = _run(self._encoder, {"source": source.long()})
        return OnnxMemory(found["states"], found["mask"], self._layers("memory", found))

    def step(self, tokens: Tensor, memory: OnnxMemory, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The next target tokens (B, T) to their logits (B, T, V) and the grown cache, as `Transformer.step`."""
        if cache is None:
            cache = Cache(tuple(LayerCache(None, layer) for layer in memory.layers), memory.mask)
        self._check_target(tokens, cache.rows, cache.length)
        given = {"tokens": tokens.long(), "mask": cache.memory_mask}
        for number, layer in enumerate(cache.layers):
            given |= _named("memory", number, layer.memory) | _named("past", number, _past(layer, len(tokens)))
        found = _run(self._decoder, given)
        layers = zip(self._layers("present", found), cache.layers, strict=True)
        grown = tuple(LayerCache(past, layer.memory) for past, layer in layers)
        return found["logits"], Cache(grown, cache.memory_mask)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Source ids (B, S) and target ids shifted right (B, T) to logits (B, T, V): one long step."""
        return self.step(target_in, self.encode(source))[0]

    def attentions(self) -> Iterator[tuple[str, int, nn.Module]]:
        """None that could be recorded or silenced: they run inside the engine."""
        return iter(())

    def _layers(self, kind: str, found: Mapping[str, Tensor]) -> tuple[KeyValue, ...]:
        numbers = range(self.config.num_layers)
        return tuple(KeyValue(*(found[name] for name in layer_names(kind, number))) for number in numbers)


def load_onnx(folder: str | Path, threads: int = 1) -> tuple[OnnxModel, AnyTokenizer]:
    """The model of a folder that `export_onnx` wrote, verified, and its tokenizer."""
    folder = Path(folder)
    files = read_folder(folder, [name for name in model_files(folder, GRAPHS) if name != CARD])
    try:
        config = TransformerConfig(**json.loads(files[CONFIG]))
    except (TypeError, ValueError) as error:
        raise ExchangeError(f"{folder / CONFIG} does not describe a model: {error}") from None
    return OnnxModel(folder, config, threads), tokenizer_from(files)


def onnx_translator(folder: str | Path, threads: int = 1) -> Translator:
    """``onnx_translator(folder)("A dog runs.").text``: text in, text out, as `Translator.load` with our own folders."""
    return Translator(*load_onnx(folder, threads), name=Path(folder).name)


def _session(path: Path, threads: int):
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors; what it warns of, nobody here can change
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _run(session, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {name: tensor.contiguous().numpy() for name, tensor in given.items()})
    return {name: torch.from_numpy(array) for name, array in zip(names, found, strict=True)}


def _named(kind: str, number: int, pair: KeyValue) -> dict[str, Tensor]:
    return dict(zip(layer_names(kind, number), (pair.key, pair.value), strict=True))


def _past(layer: LayerCache, rows: int) -> KeyValue:
    """The positions before, in the order of the rows that go on; none at the first step."""
    if layer.past is None:
        shapes = [(rows, part.size(1), 0, part.size(3)) for part in (layer.memory.key, layer.memory.value)]
        return KeyValue(*map(torch.empty, shapes))
    return layer.past if layer.rows is None else layer.past.select(layer.rows)
