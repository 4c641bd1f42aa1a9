"""The tokenizer of Marian's models: a sentencepiece model for each language, and a vocabulary of its own beside them.

OPUS-MT's translators come with it. Sentencepiece only cuts a sentence into pieces here; which id a piece has stands in
``vocab.json``, and a piece that is not there is unknown. All three files are data: nothing in them is executed.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from tinytransformer.text.tokenizer import TokenizerError

SOURCE, TARGET, VOCABULARY = "source.spm", "target.spm", "vocab.json"
FILES = (SOURCE, TARGET, VOCABULARY)
_SPECIAL = ("<pad>", "</s>", "<unk>")


class MarianTokenizer:
    """Text to ids and back, with the methods of `Tokenizer`. Sentences are read with the source language's pieces."""

    def __init__(self, source: bytes, target: bytes, vocabulary: bytes):
        self.files = {SOURCE: source, TARGET: target, VOCABULARY: vocabulary}
        self._source, self._target = (_processor(name, self.files[name]) for name in (SOURCE, TARGET))
        self._ids = _vocabulary(vocabulary)
        self._names = [piece for piece, _ in sorted(self._ids.items(), key=lambda item: item[1])]
        self.pad_id, self.end_id, self.unknown_id = (self._ids[piece] for piece in _SPECIAL)

    @classmethod
    def load(cls, folder: str | Path) -> "MarianTokenizer":
        """Read the three files of a folder."""
        missing = [name for name in FILES if not (Path(folder) / name).is_file()]
        if missing:
            raise TokenizerError(f"there is no {', '.join(missing)} in {folder}: Marian's tokenizer needs all three")
        return cls(*((Path(folder) / name).read_bytes() for name in FILES))

    def __len__(self) -> int:
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        """Ids of a sentence of the source language, without the end. It may begin with a target language: >>fr<<."""
        code = re.match(r">>.*?<<", text)
        pieces = [code.group()] if code else []
        pieces += self._source.encode(text[code.end() :] if code else text, out_type=str)
        return [self._ids.get(piece, self.unknown_id) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids of the target language; padding is left out, and everything from the first end on."""
        ids = list(ids)
        if self.end_id in ids:
            ids = ids[: ids.index(self.end_id)]
        return self._target.decode_pieces([self._names[i] for i in ids if i != self.pad_id])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces behind the ids, as they are shown in pictures: ▁ marks the beginning of a word."""
        return [self._names[int(i)] for i in ids]


def _processor(name: str, data: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=data)
    except RuntimeError:
        raise TokenizerError(f"{name} is not a sentencepiece model: was the file cut short?") from None


def _vocabulary(data: bytes) -> dict[str, int]:
    """Pieces and their ids, which are 0, 1, 2, … without a gap."""
    try:
        ids = json.loads(data)
    except ValueError as error:
        raise TokenizerError(f"{VOCABULARY} is not JSON ({error}): was the file cut short?") from None
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise TokenizerError(f"{VOCABULARY} must be one object that gives every piece its id")
    if sorted(ids.values()) != list(range(len(ids))):
        raise TokenizerError(f"the {len(ids)} ids of {VOCABULARY} must be 0 … {len(ids) - 1}, each once")
    missing = [piece for piece in _SPECIAL if piece not in ids]
    if missing:
        raise TokenizerError(f"{VOCABULARY} has no {', '.join(missing)}: it does not belong to a Marian model")
    return ids
