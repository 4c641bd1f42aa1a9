"""Scores equal those of sacreBLEU's own command, and the microworld's measures count what they say."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from support import small_model

from tinytransformer import Translator
from tinytransformer.model.recording import AttentionRecords
from tinytransformer.text.batching import collate
from tinytransformer.text.microworld import generate
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.translation import evaluation
from tinytransformer.translation.evaluation import (
    alignment_error_rate,
    alignment_errors,
    bleu_by_construction,
    perplexity,
    pieces_of_words,
    pronoun_accuracy,
    pronouns_of,
    score,
)

EXAMPLES = list(generate("test", 60, seed=4))
REFERENCES = [example.target for example in EXAMPLES]
# Made worse in several ways: words dropped, words swapped, other case.
HYPOTHESES = [
    " ".join(text.split()[::-1]) if i % 5 == 0 else text.lower() if i % 3 == 0 else text.replace("die", "der")
    for i, text in enumerate(REFERENCES)
]


@pytest.fixture(scope="module")
def translator():
    texts = [text for example in EXAMPLES for text in (example.source, example.target)]
    return Translator(small_model(vocab_size=250, max_length=120), Tokenizer.train(texts, vocab_size=250))


def sacrebleu(folder, *options: str) -> dict:
    """What sacreBLEU's own command says about the same files."""
    (folder / "references").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    (folder / "hypotheses").write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", "hypotheses", "--width", "8", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_scores_equal_those_of_sacrebleus_command(tmp_path):
    ours = score(HYPOTHESES, REFERENCES)
    cased, lowercase = sacrebleu(tmp_path), sacrebleu(tmp_path, "-lc")
    chrf = sacrebleu(tmp_path, "-m", "chrf")
    assert ours.bleu == pytest.approx(cased["score"], abs=1e-6)
    assert ours.signature == cased["signature"]
    assert ours.bleu_lowercase_tokenised == pytest.approx(lowercase["score"], abs=1e-6)
    assert ours.signature_lowercase_tokenised == lowercase["signature"]
    assert ours.chrf == pytest.approx(chrf["score"], abs=1e-6)
    assert ours.signature_chrf == chrf["signature"]
    assert 10 < ours.bleu < ours.bleu_lowercase_tokenised < 100
    assert ours.sentences == 60


def test_bad_scores():
    with pytest.raises(ValueError, match="1 translations but 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="nothing to score"):
        score([], [])


def test_perplexity_is_that_of_torchs_cross_entropy(translator):
    pairs = [([5, 6, 7], [8, 9]), ([10], [11, 12, 13, 14])]
    batch = collate(pairs)
    with torch.no_grad():
        logits = translator.model(batch.source, batch.target_in).flatten(0, 1)
    expected = F.cross_entropy(logits, batch.target_out.flatten(), ignore_index=0).exp().item()
    assert perplexity(translator.model, pairs) == pytest.approx(expected, rel=1e-4)


def test_pronouns_are_words_of_the_sentence():
    assert pronouns_of("Er sah sie, weil es ihm gefiel. Erst ihre Siege?") == ["er", "sie", "es", "ihm"]


def test_pronoun_accuracy_counts_sentences_with_pronouns_only():
    examples = [*generate("test_pronoun", 10, seed=1), *(e for e in EXAMPLES if not e.pronouns)]
    right = [example.target for example in examples]
    assert pronoun_accuracy(right, examples) == 1.0
    wrong = [*right[1::-1], *right[2:8], "", "", *right[10:]]  # one contrastive pair exchanged, two lost
    assert pronoun_accuracy(wrong, examples) == 0.6
    assert pronoun_accuracy([], []) is None


def test_bleu_by_construction():
    found = bleu_by_construction(REFERENCES, EXAMPLES)
    assert len(found) > 15
    assert all(value == pytest.approx(100) for value in found.values())
    broken = ["x" if "question" in example.constructions else example.target for example in EXAMPLES]
    found = bleu_by_construction(broken, EXAMPLES)
    assert found["question"] < 1
    assert found["article"] > 50


def test_alignment_error_rate():
    gold = [{(0, 0), (1, 1)}, {(0, 1)}]
    assert alignment_error_rate(gold, gold) == 0.0
    assert alignment_error_rate([{(0, 0)}, set()], gold) == pytest.approx(1 - 2 * 1 / 4)
    assert alignment_error_rate([{(5, 5)}, {(6, 6)}], gold) == 1.0


def test_every_piece_belongs_to_the_word_it_is_part_of(translator):
    for example in EXAMPLES[:20]:
        for words in (example.source_words, example.target_words):
            ids, owners = pieces_of_words(translator, words)
            pieces = translator.tokenizer.pieces(ids)
            rebuilt = [
                "".join(piece for piece, owner in zip(pieces, owners, strict=True) if owner == number)
                for number in range(len(words))
            ]
            assert [word.replace("▁", "") for word in rebuilt] == words


def test_a_head_that_looks_at_the_gold_links_has_no_error(translator, monkeypatch):
    """One head is given the gold alignment as its weights, the others look at the first word."""
    example = next(e for e in EXAMPLES if len(e.alignment) == len({j for _, j in e.alignment}) == len(e.target_words))
    (source, source_words), (target, target_words) = (
        pieces_of_words(translator, words) for words in (example.source_words, example.target_words)
    )
    gold = {j: i for i, j in example.alignment}
    records = AttentionRecords(replace(r, weights=r.weights.clone()) for r in translator.record(source, target))
    for record in records:
        record.weights.zero_()[..., 0] = 1.0
    perfect = records.find("cross", 1).weights[0, 2].zero_()
    for row, word in enumerate(target_words):
        perfect[row, source_words.index(gold[word])] = 1.0
    monkeypatch.setattr(type(translator), "record", lambda self, source, target: records)
    errors = alignment_errors(translator, [example])
    assert errors[1, 2] == 0.0
    assert all(error > 0.5 for place, error in errors.items() if place != (1, 2))
    assert len(errors) == 2 * (4 + 1)


def test_microworld_scores_of_a_perfect_translation(translator):
    found = evaluation.microworld_scores(translator, EXAMPLES[:10], REFERENCES[:10])
    assert found["pronoun_accuracy"] in (1.0, None)
    assert 0 <= found["alignment_error"] <= 1
    assert not math.isnan(found["alignment_error"])
