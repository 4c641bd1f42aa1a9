"""The translator: text in, text out, in the right order, with the scores and the attention of the very same model."""

import pytest
import torch
from support import small_model

from tinytransformer import Translator
from tinytransformer.text.corpus import microworld
from tinytransformer.text.tokenizer import END, START, Tokenizer
from tinytransformer.training.checkpoints import CheckpointError, save_model
from tinytransformer.translation import translator as module
from tinytransformer.translation.beam_search import length_penalty
from tinytransformer.translation.translator import Decoding, TranslationError, split_sentences

CORPUS = microworld("train", 300)


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train([*CORPUS.source, *CORPUS.target], vocab_size=200)
    return Translator(small_model(vocab_size=200, max_length=60), tokenizer)


def test_one_text_gives_one_and_a_list_gives_a_list(translator):
    one = translator(CORPUS.source[0])
    assert str(one) == one.text
    assert translator([CORPUS.source[0]]) == [one]
    assert translator([]) == []


def test_many_ragged_sentences_come_back_in_order(translator, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 7)
    texts = list(CORPUS.source[:40])
    together = translator(texts, beam=2, split=False)
    assert [one.source for one in together] == texts
    for text, expected in zip(texts, together, strict=True):
        alone = translator(text, beam=2, split=False)
        assert alone.text == expected.text
        assert alone.score == pytest.approx(expected.score, abs=1e-4)


def test_scores_are_those_of_the_model(translator):
    for beam in (1, 4):
        one = translator(CORPUS.source[3], beam=beam, alpha=0.6)
        ids = [translator.tokenizer._pieces.piece_to_id(piece) for piece in one.tokens]
        source = torch.tensor([[*translator.tokenizer.encode(one.source), END]])
        with torch.no_grad():
            log_probabilities = translator.model(source, torch.tensor([[START, *ids]]))[0].log_softmax(-1)
        expected = log_probabilities.gather(-1, torch.tensor([*ids, END])[:, None]).sum().item()
        assert one.log_probability == pytest.approx(expected, abs=1e-3)
        penalty = length_penalty(len(ids) + 1, 0.6) if beam > 1 else 1.0
        assert one.score == pytest.approx(expected / penalty, abs=1e-3)


def test_attention_comes_on_request_with_its_tokens(translator):
    assert translator(CORPUS.source[0]).records is None
    one = translator(CORPUS.source[0], attention=True)
    layers = translator.model.config.num_layers
    assert len(one.records) == 3 * layers
    cross = one.records.find("cross", layers - 1)
    assert cross.query_tokens == ("<s>", *one.tokens)
    assert cross.key_tokens == (*one.source_tokens, "</s>")
    assert cross.weights.shape[2:] == (len(cross.query_tokens), len(cross.key_tokens))
    encoder = one.records.find("encoder", 0)
    assert encoder.query_tokens == encoder.key_tokens == cross.key_tokens
    decoder = one.records.find("decoder", 0)
    assert decoder.query_tokens == decoder.key_tokens == cross.query_tokens


def test_a_long_text_is_taken_apart_and_joined(translator):
    sentences = CORPUS.source[:3]
    text = f"{sentences[0]} {sentences[1]}\n\n{sentences[2]}"
    whole = translator(text)
    parts = translator(list(sentences))
    assert whole.text == f"{parts[0].text} {parts[1].text}\n\n{parts[2].text}"
    assert [one.text for one in whole.parts] == [one.text for one in parts]
    assert whole.log_probability == pytest.approx(sum(one.log_probability for one in parts), abs=1e-3)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("A dog runs.", ["A dog runs."]),
        ("A dog runs. It is big!  Is it? Yes.", ["A dog runs.", "It is big!", "Is it?", "Yes."]),
        ("Mr. Smith met Dr. J. Brown. They talked.", ["Mr. Smith met Dr. J. Brown.", "They talked."]),
        ("It costs 3.50 dollars. 20 people paid.", ["It costs 3.50 dollars.", "20 people paid."]),
        ('He said "Stop." She did.', ['He said "Stop."', "She did."]),
        ("Der Hund, z.B. Rex, bellt. Ärger!", ["Der Hund, z.B. Rex, bellt.", "Ärger!"]),
        ("one line\nanother line", ["one line", "another line"]),
        ("", [""]),
    ],
)
def test_where_sentences_end(text, sentences):
    found = split_sentences(text)
    assert [sentence for sentence, _ in found] == sentences
    assert "".join(sentence + gap for sentence, gap in found) == text


def test_empty_lines_stay_empty(translator):
    found = translator(["", CORPUS.source[0], "   "])
    assert [bool(one.text) for one in found] == [False, bool(found[1].text), False]


def test_a_sentence_longer_than_the_model_takes_is_named(translator):
    text = "the " * 80
    with pytest.raises(TranslationError, match=r"^text 2: a sentence has \d+ tokens, and the model takes 59: divide"):
        translator(["A dog. A dog.", f"A dog. {text}", "A dog."])


def test_sampling_repeats_with_its_generator(translator):
    def drawn(seed):
        decoding = Decoding(temperature=1.0, generator=torch.Generator().manual_seed(seed))
        return [one.text for one in translator(list(CORPUS.source[:5]), decoding=decoding)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_models_by_folder_and_by_name(translator, tmp_path):
    folder = save_model(tmp_path / "mine", translator.model, translator.tokenizer, "", half=False)
    loaded = Translator.load(folder)
    assert loaded.name == "mine"
    assert loaded("A dog runs.").text == translator("A dog runs.").text
    with pytest.raises(CheckpointError, match="there is no model 'nobody': give a model folder, or one of the shipped"):
        Translator.load("nobody")


def test_a_tokenizer_of_another_model():
    tokenizer = Tokenizer.train([*CORPUS.source, *CORPUS.target], vocab_size=150)
    with pytest.raises(TranslationError, match="the tokenizer has 150 pieces but the model 31"):
        Translator(small_model(), tokenizer)
