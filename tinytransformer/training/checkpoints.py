"""Checkpoints and model folders: written whole or not at all, verified when read, and never a pickle.

A model folder holds ``model.safetensors``, ``config.json``, ``tokenizer.model`` (or the three files of a Marian
tokenizer) and ``card.md``. A checkpoint is a folder ``step-00001200`` in a run's folder: the weights in full precision,
and the state that an exact resume needs.
Every folder is made under another name and renamed when it is complete; ``checksums.json`` tells whether it still is.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from tinytransformer.model.baselines import Config, Model, build_model, config_class
from tinytransformer.resources import data_folder
from tinytransformer.text.marian_tokenizer import FILES, VOCABULARY, MarianTokenizer
from tinytransformer.text.tokenizer import FILE_NAME, Tokenizer

WEIGHTS, CONFIG, CARD, STATE, CHECKSUMS = "model.safetensors", "config.json", "card.md", "state.json", "checksums.json"


class CheckpointError(ValueError):
    """A model or checkpoint cannot be read or written; the message says why and what to do."""


def shipped_models() -> list[str]:
    """The names of the models that travel with the package."""
    return sorted(path.name for path in data_folder("models").iterdir() if path.is_dir())


def find_model(name_or_folder: str | Path) -> Path:
    """The folder of a shipped model or of one's own."""
    if Path(name_or_folder).name and _recovered(Path(name_or_folder)).is_dir():
        return Path(name_or_folder)
    names = shipped_models()
    if str(name_or_folder) in names:
        return Path(str(data_folder("models") / str(name_or_folder)))
    raise CheckpointError(
        f"there is no model {str(name_or_folder)!r}: give a model folder, or one of the shipped {', '.join(names)}"
    )


AnyTokenizer = Tokenizer | MarianTokenizer


def save_model(folder: str | Path, model: Model, tokenizer: AnyTokenizer, card: str, half: bool = True) -> Path:
    """Write a model folder for others to use; ``half`` stores the weights in half the space (fp16)."""
    weights = {name: tensor.half() if half else tensor for name, tensor in model.state_dict().items()}
    files = {
        WEIGHTS: save(_on_cpu(weights)),
        CONFIG: _json(asdict(model.config)),
        **tokenizer.files,
        CARD: card.encode(),
    }
    return write_folder(Path(folder), files)


def load_model(folder: str | Path) -> tuple[Model, AnyTokenizer]:
    """Read a model folder, in evaluation mode. Nothing in it is executed."""
    files = read_folder(Path(folder), model_files(Path(folder)))
    model = build_model(_config(files, folder)).eval()
    load_weights(model, files[WEIGHTS], Path(folder) / WEIGHTS)
    return model, tokenizer_from(files)


def model_files(folder: Path, weights: Sequence[str] = (WEIGHTS,)) -> tuple[str, ...]:
    """The names of the files that make a model folder: the tokenizer is our own, or one of Marian's."""
    marians = (folder / VOCABULARY).is_file()
    return (*weights, CONFIG, *(FILES if marians else (FILE_NAME,)), CARD)


def tokenizer_from(files: Mapping[str, bytes]) -> AnyTokenizer:
    """The tokenizer among the files of a model folder."""
    if FILE_NAME in files:
        return Tokenizer(files[FILE_NAME])
    return MarianTokenizer(*(files[name] for name in FILES))


def rewrite_card(folder: str | Path, change: Callable[[str], str]) -> None:
    """Write a model folder anew with its card changed, and nothing else."""
    files = read_folder(Path(folder), model_files(Path(folder)))
    write_folder(Path(folder), {**files, CARD: change(files[CARD].decode()).encode()})


def load_weights(model: nn.Module, data: bytes, where: Path) -> None:
    """Put saved weights into a model of the same shape."""
    weights = tensors_from(data, where)
    try:
        model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, strict=True)
    except RuntimeError as error:
        raise CheckpointError(f"the weights in {where} belong to another model: {error}") from None


def tensors_from(data: bytes, where: Path) -> dict[str, Tensor]:
    """Tensors from the bytes of a safetensors file; anything else, a pickle above all, is refused unread."""
    try:
        return load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{where} is not a whole safetensors file ({error}): fetch or write it again") from None


def average(weights: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several checkpoints' weights (section 6.1: the last 5 for base, the last 20 for big)."""
    if not weights:
        raise CheckpointError("there are no checkpoints to average")
    names = set(weights[0])
    if any(set(other) != names for other in weights):
        raise CheckpointError("only checkpoints of one model can be averaged: these have different tensors")
    return {name: torch.stack([one[name].double() for one in weights]).mean(0).float() for name in weights[0]}


def average_of(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoint folders."""
    return average([Checkpoint.load(folder).weights for folder in folders])


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What an exact resume needs: weights, optimiser tensors, and the rest as plain numbers."""

    step: int
    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Tensor]
    random: Tensor  # state of the generator behind dropout
    state: Mapping[str, Any]  # position in the data, learning-rate schedule, scores so far: anything JSON can hold

    def save(self, run: Path) -> Path:
        """Write it into a run's folder."""
        tensors = {**{f"optimiser.{name}": tensor for name, tensor in self.optimiser.items()}, "random": self.random}
        files = {
            WEIGHTS: save(_on_cpu(self.weights)),
            "training.safetensors": save(_on_cpu(tensors)),
            STATE: _json({"step": self.step, **self.state}),
        }
        return write_folder(run / f"step-{self.step:08}", files)

    @classmethod
    def load(cls, folder: Path) -> "Checkpoint":
        """Read and verify one checkpoint."""
        files = read_folder(folder, (WEIGHTS, "training.safetensors", STATE))
        tensors = tensors_from(files["training.safetensors"], folder / "training.safetensors")
        state = json.loads(files[STATE])
        optimiser = {name.removeprefix("optimiser."): tensor for name, tensor in tensors.items() if name != "random"}
        weights = tensors_from(files[WEIGHTS], folder / WEIGHTS)
        return cls(state.pop("step"), weights, optimiser, tensors["random"], state)


def checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; what was never completed is not among them."""
    return sorted(path for path in run.glob("step-*") if path.is_dir() and not path.name.endswith(".part"))


def latest(run: Path) -> Checkpoint | None:
    """The newest checkpoint, or None in a new run. A damaged one is refused, and the one before it is named."""
    found = checkpoints(run)
    if not found:
        return None
    try:
        return Checkpoint.load(found[-1])
    except CheckpointError as error:
        advice = f"delete it to go on from {found[-2].name}" if len(found) > 1 else "there is none before it"
        raise CheckpointError(f"{error}; {advice}") from None


def write_folder(goal: Path, files: Mapping[str, bytes]) -> Path:
    """Write files and their checksums as one folder, which appears complete; an older one of that name is replaced."""
    part, old = _recovered(goal).with_name(goal.name + ".part"), goal.with_name(goal.name + ".old.part")
    for leftover in (part, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        for name, data in {**files, CHECKSUMS: _json(sums)}.items():
            with (part / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise CheckpointError(
            f"{goal} could not be written ({error.strerror}); what was saved before is untouched. Free some space, "
            "or choose another folder"
        ) from error
    if goal.exists():
        goal.rename(old)
    part.rename(goal)
    shutil.rmtree(old, ignore_errors=True)
    return goal


def _recovered(folder: Path) -> Path:
    """The folder; if a program that replaced it was killed between taking the old one away and putting the new one
    there, the old one comes back."""
    old = folder.with_name(folder.name + ".old.part")
    if old.is_dir() and not folder.exists():
        old.rename(folder)
    return folder


def read_folder(folder: Path, expected: Sequence[str]) -> dict[str, bytes]:
    """The files of a folder, each with the checksum it was written with."""
    if not _recovered(folder).is_dir():
        raise CheckpointError(f"there is no folder {folder}")
    missing = [name for name in (*expected, CHECKSUMS) if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(f"{folder} is not a model folder: it has no {', '.join(missing)}")
    files = {name: (folder / name).read_bytes() for name in expected}
    sums = _parsed(folder / CHECKSUMS)
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != sums.get(name):
            raise CheckpointError(f"{folder / name} is damaged: its checksum differs from the one it was written with")
    return files


def _config(files: Mapping[str, bytes], folder: str | Path) -> Config:
    """A Transformer's configuration names no architecture."""
    try:
        values = json.loads(files[CONFIG])
        return config_class(values.get("architecture", "transformer"))(**values)
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{Path(folder) / CONFIG} does not describe a model: {error}") from None


def _parsed(path: Path) -> dict:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is not readable: was it cut short?")
    return found


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
