"""Our model is CTranslate2's: exported it gives the same probabilities and the same translations there."""

import pytest
import torch
from support import MULTI30K, max_difference, needs_multi30k, small_model
from support_exchange import searched, tokenizer

from tinytransformer import Translator
from tinytransformer.text.corpus import microworld, multi30k
from tinytransformer.training.checkpoints import find_model, load_model
from tinytransformer.translation.exchange.ctranslate import export_ctranslate2
from tinytransformer.translation.exchange.formats import ExchangeError

ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is in requirements-exchange.txt")


def opened(folder):
    return ctranslate2.Translator(str(folder), "cpu", compute_type="float32", inter_threads=1, intra_threads=1)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("activation", "output_bias"), [("relu", False), ("gelu", True), ("silu", True)])
def test_probabilities_of_given_translations(norm, activation, output_bias, tmp_path):
    pieces = tokenizer()
    ours = small_model(vocab_size=len(pieces), norm=norm, activation=activation, output_bias=output_bias)
    theirs = opened(export_ctranslate2(ours, pieces, tmp_path / "out"))
    source, target = (torch.randint(3, len(pieces), (4, length)) for length in (7, 5))
    texts = [[pieces.pieces(row) for row in ids.tolist()] for ids in (source, target)]
    found = torch.tensor([result.log_probs for result in theirs.score_batch(*texts)])
    with torch.no_grad():
        logits = ours(source, torch.cat([torch.full((4, 1), 1), target], 1))
    wanted = torch.cat([target, torch.full((4, 1), 2)], 1)[..., None]
    assert max_difference(found, logits.log_softmax(-1).gather(-1, wanted)[..., 0]) <= 1e-4


def translated(ours: Translator, folder, texts) -> list[tuple[int, ...]]:
    """Their search. By default it takes no empty translation; ours may, so we ask for the same there."""
    pieces = ours.tokenizer.pieces(range(len(ours.tokenizer)))
    ids = {piece: number for number, piece in enumerate(pieces)}
    given = [[*(pieces[number] for number in ours.tokenizer.encode(text)), pieces[2]] for text in texts]
    settings = {"beam_size": 4, "length_penalty": 0.6, "max_batch_size": 50, "min_decoding_length": 0}
    found = opened(folder).translate_batch(given, **settings)
    return [tuple(ids[piece] for piece in one.hypotheses[0]) for one in found]


def test_two_hundred_sentences_token_for_token(tmp_path):
    ours, texts = Translator.load("microworld-en-de", "cpu"), microworld("test", 200).source
    folder = export_ctranslate2(ours.model, ours.tokenizer, tmp_path / "out")
    assert translated(ours, folder, texts) == searched(ours, texts)


@needs_multi30k
def test_photo_captions_token_for_token(tmp_path):
    ours, texts = Translator.load("multi30k-en-de", "cpu"), multi30k("test_2016_flickr", folder=MULTI30K).source[:300]
    folder = export_ctranslate2(ours.model, ours.tokenizer, tmp_path / "out")
    assert translated(ours, folder, texts) == searched(ours, texts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "rotary"}, "CTranslate2 cannot run this model: positions='rotary', and only 'sinusoidal'"),
        ({"tie_embeddings": False}, "tie_embeddings=False, and only True is possible there"),
        ({"window": 3}, "window=3, and only None is possible there"),
        ({"d_v": 8}, "d_v=8, and only None is possible there"),
    ],
)
def test_what_the_engine_has_no_part_for_is_not_exported(changes, message, tmp_path):
    with pytest.raises(ExchangeError, match=message):
        export_ctranslate2(small_model(vocab_size=len(tokenizer()), **changes), tokenizer(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_older_kind_of_model_is_not_exported(tmp_path):
    with pytest.raises(ExchangeError, match="it is a lstm, not a Transformer"):
        export_ctranslate2(*load_model(find_model("microworld-lstm")), tmp_path / "out")
