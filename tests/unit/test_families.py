"""Decoder-only and encoder-only models: writing on, filling in, hiding tokens, and learning in the package's loop."""

import pytest
import torch
from support import VOCAB, max_difference, random_ids, randomise

from tinytransformer import TransformerConfig, record_attention, silence_heads
from tinytransformer.model.families import DecoderOnly, EncoderOnly, LanguageModel, fill_in, generate
from tinytransformer.text.tokenizer import END, PAD, START
from tinytransformer.training.language_model import (
    hidden_token_loss,
    language_loss,
    language_perplexity,
    mask_tokens,
    next_token_loss,
    sentence_batches,
    train_language_model,
)
from tinytransformer.training.loss import smoothed_cross_entropy

BLANK = VOCAB - 1
FAMILIES = [DecoderOnly, EncoderOnly]
SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 24, "num_layers": 2, "max_length": 40, "dropout": 0.0}


def family(kind: type[LanguageModel], **changes) -> LanguageModel:
    torch.manual_seed(0)
    return randomise(kind(TransformerConfig(VOCAB, **{**SIZES, **changes}))).eval()


def test_the_two_families_have_the_same_weights_and_differ_in_the_mask():
    decoder, encoder = family(DecoderOnly), family(EncoderOnly)
    encoder.load_state_dict(decoder.state_dict())
    ids = random_ids(2, 6)
    assert max_difference(decoder(ids), encoder(ids)) > 0.1
    encoder.mask = decoder.mask
    assert torch.equal(decoder(ids), encoder(ids))


@pytest.mark.parametrize(("kind", "name"), [(DecoderOnly, "decoder"), (EncoderOnly, "encoder")])
def test_attention_can_be_recorded_and_silenced(kind, name):
    model, ids = family(kind), random_ids(2, 5)
    with record_attention(model) as records:
        recorded = model(ids)
    assert max_difference(recorded, model(ids)) <= 1e-5
    assert [(record.kind, record.layer) for record in records] == [(name, 0), (name, 1)]
    above = records[0].weights.triu(1).sum()
    assert (above == 0) == (kind is DecoderOnly)
    with silence_heads(model, {(name, 0): [0, 1, 2, 3]}):
        assert max_difference(model(ids), recorded) > 1e-3


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_a_model_refuses(kind):
    with pytest.raises(ValueError, match="tie_embeddings=False is for a source and a target"):
        kind(TransformerConfig(VOCAB, **SIZES, tie_embeddings=False))
    with pytest.raises(ValueError, match=f"input ids run from 3 to {VOCAB}, outside the vocabulary"):
        family(kind)(torch.tensor([[3, VOCAB]]))
    with pytest.raises(ValueError, match="input has 41 tokens but max_length=40"):
        family(kind)(random_ids(1, 41))
    with pytest.raises(NotImplementedError, match="choose DecoderOnly or EncoderOnly"):
        family(LanguageModel)(random_ids(1, 2))


def test_greedy_writing_takes_the_likeliest_token_each_time():
    model, ids = family(DecoderOnly), random_ids(3, 2)
    written = generate(model, ids, 6)
    assert torch.equal(written[:, :2], ids)
    for row in written:
        for place in range(2, written.size(1)):
            if row[place] == PAD:
                break
            logits = model(row[None, :place])[0, -1]
            logits[[PAD, START]] = float("-inf")
            assert row[place] == logits.argmax()


def test_writing_stops_at_the_end_and_fills_up_with_padding():
    class Scripted(DecoderOnly):
        """Ends the first row at once, the second after two more tokens."""

        def forward(self, ids):
            wanted = torch.tensor([END if ids.size(1) == 2 else 8, 7 if ids.size(1) < 4 else END])
            return torch.nn.functional.one_hot(wanted, VOCAB)[:, None].float()

    model = Scripted(TransformerConfig(VOCAB, **SIZES))
    assert generate(model, torch.tensor([[5, 6], [5, 6]]), 9).tolist() == [[5, 6, END, PAD, PAD], [5, 6, 7, 7, END]]
    assert model.training, "it is left as it was"


def test_drawing_follows_the_generator_and_the_temperature():
    model, ids = family(DecoderOnly), torch.tensor([[START]]).repeat(4000, 1)
    draw = torch.Generator().manual_seed
    first = generate(model, ids, 1, draw(1))
    assert torch.equal(first, generate(model, ids, 1, draw(1)))
    assert not torch.equal(first, generate(model, ids, 1, draw(2)))
    logits = model(ids[:1])[0, -1].detach()
    logits[[PAD, START]] = float("-inf")
    for temperature in (0.5, 2.0):
        drawn = generate(model, ids, 1, draw(3), temperature)[:, 1]
        shares = torch.bincount(drawn, minlength=VOCAB) / len(drawn)
        assert max_difference(shares, (logits / temperature).softmax(-1)) < 0.03


def test_what_cannot_be_written_on_or_filled_in():
    decoder, encoder, ids = family(DecoderOnly), family(EncoderOnly), random_ids(2, 3)
    with pytest.raises(TypeError, match="EncoderOnly cannot write on: generate needs a DecoderOnly"):
        generate(encoder, ids, 2)
    with pytest.raises(TypeError, match="DecoderOnly sees one side of a blank only"):
        fill_in(decoder, ids, BLANK)
    with pytest.raises(ValueError, match="temperature=0 must be above 0"):
        generate(decoder, ids, 2, torch.Generator(), temperature=0)
    with pytest.raises(ValueError, match=r"the beginning holds padding \(id 0\)"):
        generate(decoder, random_ids(2, 3, padding=1), 2)


def test_filling_in_changes_blanks_only_and_takes_the_likeliest_token():
    model, ids = family(EncoderOnly), random_ids(3, 8, padding=2)
    ids[ids == BLANK] = 5
    ids[:, 1] = ids[0, 4] = BLANK
    filled = fill_in(model, ids, BLANK)
    assert torch.equal(filled[ids != BLANK], ids[ids != BLANK])
    logits = model(ids)[ids == BLANK]
    logits[:, [PAD, START, END, BLANK]] = float("-inf")
    assert torch.equal(filled[ids == BLANK], logits.argmax(-1))


def test_tokens_are_hidden_as_bert_does_it():
    ids = torch.randint(4, BLANK, (400, 50))
    ids[:, 0], ids[:, -2], ids[:, -1] = START, END, PAD
    shown, targets = mask_tokens(ids, BLANK, VOCAB, torch.Generator().manual_seed(1))
    asked = targets != PAD
    assert not asked[:, [0, -2, -1]].any()
    assert torch.equal(targets[asked], ids[asked])
    assert torch.equal(shown[~asked], ids[~asked])
    assert asked[:, 1:-2].float().mean().item() == pytest.approx(0.15, abs=0.01)
    blank, same = shown[asked] == BLANK, shown[asked] == ids[asked]
    assert blank.float().mean().item() == pytest.approx(0.8, abs=0.03)
    # One in 27 of the random tokens is the right one by chance.
    assert same.float().mean().item() == pytest.approx(0.1 + 0.1 / (VOCAB - 4), abs=0.03)
    others = shown[asked][~blank & ~same]
    assert set(others.tolist()) <= set(range(3, BLANK)), "no blank, padding, start or end among the random tokens"
    again = mask_tokens(ids, BLANK, VOCAB, torch.Generator().manual_seed(1))
    assert torch.equal(shown, again[0])


@pytest.mark.parametrize("mask_id", [4, 10, BLANK])
def test_random_tokens_leave_out_the_blank_wherever_it_stands(mask_id):
    ids = torch.full((300, 40), 20)
    shown, _ = mask_tokens(ids, mask_id, VOCAB, torch.Generator().manual_seed(1), share=1.0)
    drawn = shown[(shown != mask_id) & (shown != 20)]
    assert set(drawn.tolist()) == set(range(3, VOCAB)) - {mask_id, 20}


def test_what_cannot_be_hidden():
    with pytest.raises(ValueError, match=r"share=0 is outside \(0, 1\]: BERT uses 0.15"):
        mask_tokens(random_ids(1, 3), BLANK, VOCAB, share=0)
    with pytest.raises(ValueError, match=f"mask_id={VOCAB} is outside the vocabulary"):
        mask_tokens(random_ids(1, 3), VOCAB, VOCAB)


def sentences() -> list[list[int]]:
    """Counting up in steps of one or two: what comes next is half known, what stands between is known."""
    generator = torch.Generator().manual_seed(5)
    found = []
    for _ in range(300):
        first, step, length = (
            int(torch.randint(*span, (1,), generator=generator)) for span in ((4, 10), (1, 3), (4, 9))
        )
        found.append(list(range(first, first + step * length, step)))
    return found


def test_the_losses_ask_for_the_right_tokens():
    batch = next(sentence_batches(sentences(), 60).epoch(0, 0))
    decoder = family(DecoderOnly)
    loss, count = next_token_loss(decoder, batch, 0.1)
    assert count == batch.num_targets
    real = batch.target_out != PAD
    formula = smoothed_cross_entropy(decoder(batch.target_in)[real], batch.target_out[real], 0.1)
    assert loss.item() == pytest.approx(formula.item(), rel=1e-5)
    assert language_perplexity(decoder, [(batch.target_in, batch.target_out)]) == pytest.approx(
        (smoothed_cross_entropy(decoder(batch.target_in)[real], batch.target_out[real], 0.0) / count).exp().item(),
        rel=1e-5,
    )

    encoder, draw = family(EncoderOnly), torch.Generator().manual_seed
    shown, targets = mask_tokens(batch.target_out, BLANK, VOCAB, draw(2))
    asked = targets != PAD
    summed, number = language_loss(encoder, shown, targets)
    assert number == asked.sum()
    assert summed.item() == pytest.approx(
        smoothed_cross_entropy(encoder(shown)[asked], targets[asked], 0.0).item(), rel=1e-5
    )
    loss, count = hidden_token_loss(encoder, batch, mask_id=BLANK, generator=draw(2))
    assert (loss / count).item() == pytest.approx((summed / number).item(), rel=1e-5)


def test_both_learn_in_the_packages_loop():
    rows = sentences()
    for kind in FAMILIES:
        model = family(kind, d_model=32, d_ff=64, norm="pre")
        losses = train_language_model(model, sentence_batches(rows, 200), 150, BLANK, peak=1e-2, warmup=20)
        assert len(losses) == 150
        assert not model.training
        assert sum(losses[-10:]) / 10 < 0.6 * sum(losses[:5]) / 5
        if kind is DecoderOnly:
            assert generate(model, torch.tensor([[START, 5, 7]]), 3)[0, 3:5].tolist() == [9, 11]
        else:
            assert fill_in(model, torch.tensor([[6, 8, BLANK, 12, END]]), BLANK).tolist() == [[6, 8, 10, 12, END]]


def test_a_run_with_a_folder_goes_on(tmp_path):
    rows = sentences()
    whole, halves = family(EncoderOnly), family(EncoderOnly)
    batches = sentence_batches(rows, 200)
    train_language_model(whole, batches, 6, BLANK, warmup=2)
    train_language_model(halves, batches, 6, BLANK, warmup=2, run=tmp_path)
    assert train_language_model(halves, batches, 6, BLANK, warmup=2, run=tmp_path) == []
    for one, other in zip(whole.parameters(), halves.parameters(), strict=True):
        assert torch.equal(one, other)


def test_what_cannot_be_trained():
    batch = next(sentence_batches(sentences(), 60).epoch(0, 0))
    with pytest.raises(ValueError, match="an EncoderOnly learns from blanks: give mask_id"):
        train_language_model(family(EncoderOnly), sentence_batches(sentences()), 1)
    with pytest.raises(ValueError, match="agreement=4 is for translation"):
        next_token_loss(family(DecoderOnly), batch, agreement=4)
