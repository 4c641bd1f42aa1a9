"""Checks know right from wrong, and which wrong: every known mistake is made here, apart from the checks' own code."""

import math

import pytest
import torch
import torch.nn.functional as F
from answers import PLANTED, RIGHT
from answers.blind import BLIND
from answers.lessons_02_03 import masks_in_full

from tinytransformer.model.masks import causal_mask, padding_mask
from tinytransformer.teaching import checks
from tinytransformer.teaching.checks import EXERCISES, judge
from tinytransformer.teaching.exercises import GENERAL, Exercise, Symptom, agree, is_comparable, shapes
from tinytransformer.teaching.verdicts import CORRECT, NOT_ATTEMPTED, STOPPED, WRONG

MISTAKES = [(exercise, known) for exercise in EXERCISES.values() for known in (*exercise.mistakes, *exercise.symptoms)]
every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


# --- right answers, each in two ways or more


@pytest.mark.parametrize(
    ("name", "function"),
    [(name, function) for name, functions in RIGHT.items() for function in functions],
    ids=[f"{name}-{number}" for name, functions in RIGHT.items() for number in range(len(functions))],
)
def test_right_answers_pass_however_they_are_written(name, function):
    assert str(judge(EXERCISES[name], function)) == f"{name}: {CORRECT}"


def test_every_exercise_has_right_answers_in_two_ways():
    assert {name: len(functions) >= 2 for name, functions in RIGHT.items()} == dict.fromkeys(EXERCISES, True)


# --- wrong answers


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=[f"{e.name}-{m.name}" for e, m in MISTAKES])
def test_every_known_mistake_is_named(exercise, mistake):
    verdict = judge(exercise, PLANTED[exercise.name][mistake.name])
    assert (verdict.passed, verdict.mistake) == (False, mistake.name)
    assert isinstance(mistake, Symptom) or (verdict.status, verdict.hint) == (WRONG, mistake.hint)


def test_every_known_mistake_is_planted_and_none_other():
    known = {(exercise.name, mistake.name) for exercise, mistake in MISTAKES}
    assert known == {(name, mistake) for name, planted in PLANTED.items() for mistake in planted}


@pytest.mark.parametrize(("name", "function"), BLIND, ids=[function.__name__ for _, function in BLIND])
def test_answers_that_were_written_blind_are_rejected_with_a_reason(name, function):
    verdict = judge(EXERCISES[name], function)
    assert not verdict.passed
    assert verdict.mistake, verdict.hint


@every_exercise
def test_each_mistake_has_a_name_and_a_hint_of_its_own(exercise):
    for part in ("name", "hint"):
        assert len({getattr(mistake, part) for mistake in exercise.mistakes}) == len(exercise.mistakes)


@every_exercise
def test_no_mistake_is_accepted_by_its_exercise(exercise):
    for mistake in exercise.mistakes:
        assert judge(exercise, mistake.wrong).mistake == mistake.name


# --- whatever a function does, a verdict comes out


def stub(*arguments):
    raise NotImplementedError


@every_exercise
@pytest.mark.parametrize(
    "function", [stub, lambda *arguments: ..., lambda *arguments: None], ids=["raise", "...", "None"]
)
def test_an_unfilled_stub_is_not_attempted_yet(exercise, function):
    verdict = judge(exercise, function)
    assert (verdict.status, verdict.passed) == (NOT_ATTEMPTED, False)


def test_a_missing_return_is_suspected():
    verdict = judge(EXERCISES["entropy"], lambda weights: None)
    assert str(verdict) == "entropy: not attempted yet. It returns nothing: is a return missing?"


@every_exercise
def test_an_error_is_shown_in_one_line(exercise):
    def broken(*arguments):
        return {}["key"]

    verdict = judge(exercise, broken)
    assert (verdict.status, verdict.mistake) == (STOPPED, "error")
    assert "it raised KeyError: 'key'" in verdict.hint
    assert "\n" not in str(verdict)


def test_long_errors_are_cut_and_silent_ones_told():
    def shout(scores):
        raise ValueError("x" * 1000 + "\nand more")

    def whisper(scores):
        raise ValueError

    assert len(str(judge(EXERCISES["my_softmax"], shout))) < 260
    assert str(judge(EXERCISES["my_softmax"], whisper)).endswith("it raised ValueError: without a message")


def test_too_few_parameters():
    assert "TypeError" in judge(EXERCISES["self_attention"], lambda x: x).hint


@pytest.mark.parametrize(
    ("name", "function", "mistake", "words"),
    [
        ("my_softmax", lambda s: s.softmax(-1)[..., :2], "wrong-shape", "(5, 3) it returns (5, 2), wanted is (5, 3)"),
        ("my_softmax", lambda s: "weights", "wrong-shape", "it returns text, wanted is (5, 3)"),
        ("my_softmax", lambda s: (s, s), "wrong-shape", "2 results of shapes (5, 3), (5, 3)"),
        ("my_softmax", lambda s: s.softmax(-1) + s.new_tensor(math.nan), "nan", "holds NaN"),
        ("my_softmax", lambda s: s.softmax(-1) + 0.5, None, "the value at ["),
        ("chunk_mask", lambda n, o: causal_mask(n, o).float(), "not-boolean", "yours holds numbers"),
        ("translation_masks", lambda s, t, p: padding_mask(s, p), "wrong-shape", "wanted is 3 results of shapes"),
        ("translation_masks", lambda s, t, p: [m.int() for m in masks_in_full(s, t, p)], "not-boolean", "numbers"),
        ("self_attention", lambda x, q, k, v: F.scaled_dot_product_attention(x @ q, (x @ k) + 1, x @ v + 1), None, ""),
    ],
)  # fmt: skip
def test_other_wrong_answers_are_described(name, function, mistake, words):
    verdict = judge(EXERCISES[name], function)
    assert (verdict.passed, verdict.mistake) == (False, mistake)
    assert words in verdict.hint


def test_every_general_symptom_is_met_above():
    assert [symptom.name for symptom in GENERAL] == ["error", "wrong-shape", "not-boolean", "nan"]


def test_a_wrong_one_of_several_results_is_counted():
    def shifted(source, target, pad_id):
        encoder, decoder, cross = masks_in_full(source, target, pad_id)
        return encoder, decoder.roll(1, dims=2), cross

    assert "result number 2 is wrong: the value at [" in judge(EXERCISES["translation_masks"], shifted).hint


def test_right_results_do_not_excuse_a_changed_input():
    def in_place(scores):
        scores -= scores.amax(-1, keepdim=True)
        scores.exp_()
        return scores / scores.sum(-1, keepdim=True)

    verdict = judge(EXERCISES["my_softmax"], in_place)
    assert (verdict.mistake, "work on a copy" in verdict.hint) == ("changes-its-input", True)


def test_the_function_is_wanted_not_its_result():
    assert "without parentheses, not 3" in judge(EXERCISES["entropy"], 3).hint


def test_judging_prints_nothing_and_a_check_prints_its_verdict(capsys):
    judge(EXERCISES["entropy"], stub)
    assert capsys.readouterr().out == ""
    verdict = checks.check_entropy(stub)
    assert capsys.readouterr().out == "entropy: not attempted yet\n"
    assert verdict._ipython_display_() is None, "a notebook must not show the verdict a second time"


def test_there_is_a_check_for_every_exercise():
    for name in EXERCISES:
        assert getattr(checks, f"check_{name}").__name__ in checks.__all__
        assert name in getattr(checks, f"check_{name}").__doc__


def test_an_exercise_without_known_mistakes_still_judges():
    plain = Exercise("double", reference=lambda x: 2 * x, cases=lambda: [(1.0,), (2.5,)])
    assert judge(plain, lambda x: x + x).passed
    assert judge(plain, lambda x: x**2).hint == "For arguments 1.0 the value at [] is 1, not 2."


# --- the verdicts of the lessons can be failures


def test_same_says_so_and_can_fail(capsys):
    one = torch.tensor([1.0, 2.0])
    assert checks.same("a and b", one, one + 1e-7).status == "the same to 1e-05"
    assert checks.same("a and b", one, one + 0.1).status == "DIFFERENT"
    assert checks.same("a and b", one, one[:1]).status == "DIFFERENT"
    assert checks.same("pairs", (one, one), (one, one + 1)).status == "DIFFERENT"
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "a and b: the same to 1e-05"
    assert printed[1].startswith("a and b: DIFFERENT. Tensor-likes are not close!")
    assert len(printed) == 4


@pytest.mark.parametrize(
    ("truth", "word"),
    [(True, "yes"), (False, "NO"), (torch.tensor([True, False]), "NO"), ([True, True], "yes"), ([True, False], "NO")],
)
def test_claims_can_fail(truth, word, capsys):
    checks.holds("rows sum to one", truth)
    assert capsys.readouterr().out == f"rows sum to one: {word}\n"


# --- dictionaries, ragged lists, infinities


def told(wanted, got) -> str:
    exercise = Exercise("answer", reference=lambda x: wanted, cases=lambda: [(torch.tensor([[3, 4]]),)])
    return judge(exercise, lambda x: got).hint


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ({"a": torch.ones(2)}, {"a": torch.ones(2), "b": 1}),
        ({"a": torch.ones(2)}, {"a": torch.zeros(2)}),
        ([[1], [2, 3]], [[1], [2, 4]]),
        ([torch.ones(2), [1.0]], [torch.ones(2), [2.0]]),
        ({1, 2}, {1, 3}),
        (object(), object()),
        (torch.ones(2), None),
    ],
    ids=range(7),
)
def test_what_is_not_one_tensor_is_compared_part_by_part(wanted, got):
    assert not agree(got, wanted)
    assert told(wanted, got)
    assert agree(wanted, wanted) or not is_comparable(wanted)


def test_the_difference_is_looked_for_in_the_right_place():
    infinite = torch.tensor([-torch.inf, 1.0])
    hint = told(infinite, infinite + torch.tensor([0.0, 1.0]))
    assert hint == "For arguments [[3, 4]] the value at [1] is 2, not 1."
    assert "what stands at 'a' is wrong: the value at [0]" in told({"a": torch.ones(2)}, {"a": torch.zeros(2)})
    assert "other keys" in told({"a": torch.ones(2)}, {"b": torch.ones(2)})
    assert "a dictionary of 1" in shapes(({"a": torch.ones(2)},))
    assert "None" in shapes((None, 3))
