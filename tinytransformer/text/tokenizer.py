"""The tokenizer: one vocabulary of word pieces for both languages (joint BPE), trained on the training split only.

Sentencepiece does the work. Ids 0 to 3 are padding, start, end and unknown, in this order.
"""

import io
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sentencepiece

PAD, START, END, UNKNOWN = 0, 1, 2, 3
FILE_NAME = "tokenizer.model"


class TokenizerError(ValueError):
    """A tokenizer cannot be trained or read; the message says why and what to do."""


class Tokenizer:
    """Text to ids and back."""

    def __init__(self, model: bytes):
        self.model = model
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise TokenizerError("this is not a sentencepiece model: was the file cut short?") from None
        p = self._pieces
        if (p.pad_id(), p.bos_id(), p.eos_id(), p.unk_id()) != (PAD, START, END, UNKNOWN):
            raise TokenizerError("padding, start, end and unknown must be ids 0 to 3: train it with Tokenizer.train")
        self.files = {FILE_NAME: model}  # what a model folder keeps of it

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, whole: Iterable[str] = ()) -> "Tokenizer":
        """Learn joint BPE from sentences of both languages. The same sentences give the same tokenizer.

        ``whole`` are words that shall be one piece each, such as (NP: by itself BPE joins no letters to a bracket.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                character_coverage=1.0,
                pad_id=PAD,
                bos_id=START,
                eos_id=END,
                unk_id=UNKNOWN,
                user_defined_symbols=[f"▁{word}" for word in whole],
                num_threads=1,  # more would not always give the same pieces
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise TokenizerError(
                f"no vocabulary of {vocab_size} pieces can be learned from this text: {reason}"
            ) from None
        return cls(model.getvalue())

    @classmethod
    def load(cls, folder: str | Path) -> "Tokenizer":
        """Read the tokenizer that lies beside a model."""
        path = Path(folder) / FILE_NAME
        if not path.is_file():
            raise TokenizerError(f"there is no {FILE_NAME} in {folder}: is it a model folder?")
        return cls(path.read_bytes())

    def save(self, folder: str | Path) -> Path:
        """Write the tokenizer beside a model; the file appears whole or not at all."""
        path = Path(folder) / FILE_NAME
        part = path.with_name(path.name + ".part")
        part.write_bytes(self.model)
        part.replace(path)
        return path

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """Ids of a sentence, without start and end."""
        return self._pieces.encode(text)

    def encode_at_random(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Ids of sentences whose merges were skipped at random (BPE-dropout, Provilkov et al. 2020), for training."""

        def encode() -> list[list[int]]:
            return [self._pieces.encode(text, enable_sampling=True, alpha=dropout) for text in texts]

        # Sentencepiece takes a seed only for threads that have not drawn yet; a new one makes the draw repeatable.
        sentencepiece.set_random_generator_seed(seed)
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(encode).result()

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; padding, start and end are left out, and everything behind the first end."""
        ids = list(ids)
        if END in ids:
            ids = ids[: ids.index(END)]
        return self._pieces.decode([i for i in ids if i not in (PAD, START)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces behind the ids, as they are shown in pictures: ▁ marks the beginning of a word."""
        return [self._pieces.id_to_piece(int(i)) for i in ids]
