"""Word pieces and batches: nothing is lost, nothing is shuffled in secret, little is padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import MULTI30K, needs_multi30k

from tinytransformer.text.batching import ResampledBatches, TokenBatches, collate, padding_share
from tinytransformer.text.corpus import microworld, multi30k
from tinytransformer.text.tokenizer import END, PAD, START, UNKNOWN, Tokenizer, TokenizerError


@pytest.fixture(scope="module")
def train():
    return microworld("train", 3000, seed=5)


@pytest.fixture(scope="module")
def tokenizer(train):
    return Tokenizer.train([*train.source, *train.target], vocab_size=600)


def test_text_survives_the_way_there_and_back(train, tokenizer):
    assert len(tokenizer) == 600
    for text in (*train.source[:300], *train.target[:300]):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not {PAD, START, END, UNKNOWN} & set(ids)
        assert "".join(tokenizer.pieces(ids)).replace("▁", " ").strip() == text
    assert UNKNOWN in tokenizer.encode("漢")


def test_special_ids_are_left_out_and_the_end_is_the_end(tokenizer):
    ids = tokenizer.encode("The dog sleeps.")
    assert tokenizer.decode([START, *ids, END, *ids, PAD, PAD]) == "The dog sleeps."


def test_the_same_sentences_give_the_same_tokenizer_and_it_survives_saving(train, tokenizer, tmp_path):
    again = Tokenizer.train([*train.source, *train.target], vocab_size=600)
    assert again.model == tokenizer.model
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).model == tokenizer.model
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]


def test_bpe_dropout_varies_the_pieces_but_not_the_text(tokenizer):
    text = "The curious grandmother did not understand the difficult sentences."
    variants = {tuple(ids) for ids in tokenizer.encode_at_random([text] * 20, 0.3, seed=1)}
    assert len(variants) > 5
    assert {tokenizer.decode(variant) for variant in variants} == {text}


def test_bpe_dropout_repeats_with_its_seed(train, tokenizer):
    texts = train.source[:50]
    first = tokenizer.encode_at_random(texts, 0.3, seed=1)
    other = tokenizer.encode_at_random(texts, 0.3, seed=2)
    assert first == tokenizer.encode_at_random(texts, 0.3, seed=1) != other


def test_bad_tokenizers(tmp_path):
    with pytest.raises(TokenizerError, match="no vocabulary of 8000 pieces can be learned from this text"):
        Tokenizer.train(["a b c"], vocab_size=8000)
    with pytest.raises(TokenizerError, match="not a sentencepiece model: was the file cut short"):
        Tokenizer(b"nonsense")
    with pytest.raises(TokenizerError, match=r"there is no tokenizer\.model in"):
        Tokenizer.load(tmp_path)


def test_targets_are_shifted_by_one():
    batch = collate([([5, 6, 7], [8, 9]), ([5], [8, 9, 10])])
    assert batch.source.tolist() == [[5, 6, 7, END], [5, END, PAD, PAD]]
    assert batch.target_in.tolist() == [[START, 8, 9, PAD], [START, 8, 9, 10]]
    assert batch.target_out.tolist() == [[8, 9, END, PAD], [8, 9, 10, END]]
    assert batch.num_targets == 7


sentences = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60)


@given(lengths=sentences, budget=st.integers(31, 200), epoch=st.integers(0, 5))
def test_every_pair_comes_once_and_no_batch_is_too_large(lengths, budget, epoch):
    pairs = [([4 + number] * source, [4 + number] * target) for number, (source, target) in enumerate(lengths)]
    plan = TokenBatches(pairs, budget).plan(epoch, seed=3)
    assert sorted(row for batch in plan for row in batch) == list(range(len(pairs)))
    for batch in TokenBatches(pairs, budget).epoch(epoch, seed=3):
        assert max(batch.source.numel(), batch.target_in.numel()) <= budget


@pytest.fixture(scope="module")
def batches(train, tokenizer):
    pairs = [(tokenizer.encode(s), tokenizer.encode(t)) for s, t in zip(train.source, train.target, strict=True)]
    return TokenBatches(pairs, 1024)


def test_epochs_differ_seeds_differ_and_both_repeat(batches):
    assert batches.plan(0, 1) == batches.plan(0, 1)
    assert batches.plan(0, 1) != batches.plan(1, 1)
    assert batches.plan(0, 1) != batches.plan(0, 2)


def test_an_epoch_can_go_on_in_the_middle(batches):
    whole, rest = list(batches.epoch(2, seed=1)), list(batches.epoch(2, seed=1, first=7))
    assert len(rest) == len(whole) - 7
    assert all(torch.equal(a.source, b.source) for a, b in zip(whole[7:], rest, strict=True))


def test_similar_lengths_leave_little_padding(batches):
    """Sorted batches have a fraction of the padding that batches of the same size in random order would have."""
    plan = batches.plan(0, seed=0)
    rows = torch.randperm(len(batches.pairs), generator=torch.Generator().manual_seed(0)).tolist()
    mixed = [collate([batches.pairs[rows.pop()] for _ in batch]) for batch in plan]
    assert padding_share(list(batches.epoch(0, seed=0))) < 0.3 * padding_share(mixed)


@needs_multi30k
def test_padding_on_multi30k_is_below_8_percent():
    train = multi30k("train", folder=MULTI30K)
    tokenizer = Tokenizer.train([*train.source, *train.target], vocab_size=8000)
    pairs = [(tokenizer.encode(s), tokenizer.encode(t)) for s, t in zip(train.source, train.target, strict=True)]
    assert padding_share(list(TokenBatches(pairs, 4096).epoch(0, seed=0))) < 0.08


def test_pairs_encoded_anew_for_each_epoch():
    """The encoder gets one seed per epoch and run, and a plan speaks of the pairs of its own epoch."""
    seeds = []

    def encode(seed):
        seeds.append(seed)
        return [([4 + seed % 7] * 3, [5] * (2 + seed % 5))] * 4

    batches = ResampledBatches(encode, 40)
    for epoch, seed in ((0, 1), (1, 1), (0, 2), (0, 1)):
        batches.plan(epoch, seed)
        assert batches.pairs == encode(seeds[-1])
        assert batches.lengths[:, 1].tolist() == [3 + seeds[-1] % 5] * 4
    assert seeds[1] == seeds[-1]
    assert len(set(seeds)) == 4  # the first look, and three different epochs


def test_global_randomness_is_left_alone(batches):
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    batches.plan(0, 0)
    assert torch.equal(torch.rand(1), expected)


def test_sentences_that_fit_into_no_batch():
    with pytest.raises(ValueError, match="a sentence of 51 tokens does not fit into a batch of 40"):
        TokenBatches([([5] * 50, [6])], 40)
    with pytest.raises(ValueError, match="no sentence pairs"):
        TokenBatches([], 40)
