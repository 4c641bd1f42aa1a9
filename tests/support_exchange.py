"""What the tests of exchange share: small tokenizers, and Marian folders as OPUS-MT ships them, with random weights."""

import io
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import sentencepiece
import torch
from support import randomise

from tinytransformer import Translator
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import microworld
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.translation.beam_search import beam_search

PIECES = 150
Ids = list[tuple[int, ...]]


def power(length: int, alpha: float) -> float:
    """The length penalty of most libraries."""
    return length**alpha


def in_batches(translator: Translator, texts: Sequence[str], size: int = 50) -> list[torch.Tensor]:
    """The ids of texts, each with its end, padded together."""
    ids = [[*translator.tokenizer.encode(text), translator.model.config.end_id] for text in texts]
    return [pad(ids[first : first + size], translator.model.config.pad_id) for first in range(0, len(ids), size)]


def searched(translator: Translator, texts: Sequence[str]) -> Ids:
    """What our beam search finds with the length penalty of the others."""
    found = [beam_search(translator.model, batch, penalty=power) for batch in in_batches(translator, texts)]
    return [hypotheses[0].ids for batch in found for hypotheses in batch]


@cache
def tokenizer() -> Tokenizer:
    """A joint tokenizer of ours."""
    corpus = microworld("valid", 200)
    return Tokenizer.train([*corpus.source, *corpus.target], 200)


@cache
def marian_tokenizer_files() -> dict[str, bytes]:
    """Two sentencepiece models and a vocabulary in OPUS-MT's order: end, unknown, pieces of both, padding last."""
    corpus = microworld("valid", 200)
    files, pieces = {}, {"</s>": 0, "<unk>": 1}
    for name, texts in (("source.spm", corpus.source), ("target.spm", corpus.target)):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=model, vocab_size=PIECES, minloglevel=2, num_threads=1
        )
        files[name] = model.getvalue()
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        for number in range(len(processor)):
            pieces.setdefault(processor.id_to_piece(number), len(pieces))
    del pieces["<s>"]
    ids = {piece: number for number, piece in enumerate([*pieces, "<pad>"])}
    return {**files, "vocab.json": json.dumps(ids).encode()}


def marian_folder(folder: Path, **changes) -> Path:
    """A folder as OPUS-MT's: pad as start symbol, SiLU, a bias on the output; random weights, small unless said."""
    import transformers

    files = marian_tokenizer_files()
    size = len(json.loads(files["vocab.json"]))
    sizes = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
    config = transformers.MarianConfig(
        **{
            "vocab_size": size,
            "d_model": 32,
            **{f"{stack}_{name}": value for stack in ("encoder", "decoder") for name, value in sizes.items()},
            "activation_function": "swish",
            "max_position_embeddings": 64,
            "scale_embedding": True,
            "pad_token_id": size - 1,
            "eos_token_id": 0,
            "bos_token_id": 0,
            "decoder_start_token_id": size - 1,
            "forced_eos_token_id": 0,
            **changes,
        }
    )
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    tables = [stack.embed_positions.weight.clone() for stack in (model.model.encoder, model.model.decoder)]
    randomise(model)
    with torch.no_grad():
        for stack, table in zip((model.model.encoder, model.model.decoder), tables, strict=True):
            stack.embed_positions.weight.copy_(table)
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, 0] = 2.5  # random models rarely come to an end
    model.save_pretrained(folder)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
