"""Exercises of lesson 08 about decoding: greedy, and ranking by length penalty."""

from zlib import crc32

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched

START, END, WORDS = 0, 1, 6


def language(seed: int, spread: float = 2.0, ending: float = 0.0):
    """A small language model: ids read so far to log-probabilities of the next of six tokens; 0 never comes again."""

    def next_log_probabilities(ids: list[int]) -> Tensor:
        scores = random(WORDS, seed=seed + crc32(bytes(int(i) for i in ids)) % 10_000_019, spread=spread)
        scores[END] += ending
        scores[START] = -1e4
        return scores.double().log_softmax(-1)

    return next_log_probabilities


def found(arguments: tuple, answer):
    """Ids and a log-probability as two tensors, whatever kinds of list and number they are."""
    if untouched(answer):
        return answer
    ids, log_probability = answer
    return torch.tensor([int(i) for i in ids]), torch.as_tensor(float(log_probability))


# --- greedy


def _greedy_cases() -> list[tuple]:
    free = [(language(seed, ending=-2.0), START, END, 12) for seed in (1, 2, 9)]
    return [*free, (language(3, ending=-9.0), START, END, 5)]


def greedy(
    model, start, end, limit, first=0, last=False, reads=lambda ids: ids, add=lambda v: v, forced=True, count=True
):
    ids, total = [start], 0.0
    while True:
        log_probabilities = model(reads(ids))
        full = len(ids) > limit
        if full and not forced:
            return ids[1 - first :], total
        token = end if full else int(log_probabilities.argmax())
        if token != end or count:
            total += float(add(log_probabilities[token]))
        if token == end:
            return (ids + [end] * last)[1 - first :], total
        ids = [*ids, token]


def _limit_moved(by: int):
    return lambda model, start, end, limit: greedy(model, start, end, limit + by)


GREEDY = Exercise(
    "greedy_search",
    reference=greedy,
    cases=_greedy_cases,
    normal=found,
    mistakes=(
        Mistake("end-returned", "The end token is among the ids. It only says that the sentence is over.",
                lambda *inputs: greedy(*inputs, last=True)),
        Mistake("start-returned", "The start token is among the ids. It is no word of the sentence.",
                lambda *inputs: greedy(*inputs, first=1)),
        Mistake("both-returned", "Start and end token are among the ids. Neither is a word of the sentence.",
                lambda *inputs: greedy(*inputs, first=1, last=True)),
        Mistake("end-not-counted", "The ids are right, the log-probability is not: to stop here was a choice, too, and "
                "has a probability.", lambda *inputs: greedy(*inputs, count=False)),
        Mistake("probabilities-added", "Probabilities are added up. They multiply, so their logarithms add.",
                lambda *inputs: greedy(*inputs, add=torch.exp)),
        Mistake("reads-the-start-only", "The model is asked about the start token each time. It must read what was "
                "written so far.", lambda *inputs: greedy(*inputs, reads=lambda ids: ids[:1])),
        Mistake("reads-the-last-only", "The model is asked about the newest token alone. It must read everything that "
                "was written so far.", lambda *inputs: greedy(*inputs, reads=lambda ids: ids[-1:])),
        Mistake("start-not-read", "The start token is missing from what the model reads.",
                lambda *inputs: greedy(*inputs, reads=lambda ids: ids[1:])),
        Mistake("one-token-short", "A sentence that reaches the limit is one token short. Does the start token count?",
                _limit_moved(-1)),
        Mistake("one-token-long", "A sentence that reaches the limit is one token too long.", _limit_moved(1)),
        Mistake("cut-off-at-the-limit", "At the limit the sentence is cut off. It must end there, and the log-"
                "probability of the end counts.", lambda *inputs: greedy(*inputs, forced=False)),
    ),
)  # fmt: skip


# --- ranking


def _rerank_cases() -> list[tuple]:
    mixed = [-4.62, -4.18, -4.64, -7.5, -3.9, -12.0], [14, 11, 9, 1, 8, 40]
    return [(*mixed, alpha) for alpha in (0.0, 0.6, 1.0, 2.5)] + [([-2.0, -2.2, -1.9], [3, 12, 2], 0.3)]


def _order(score, best_first: bool = True):
    def rerank(log_probabilities: list[float], lengths: list[int], alpha: float) -> list[int]:
        scores = [score(one, length, alpha) for one, length in zip(log_probabilities, lengths, strict=True)]
        return sorted(range(len(scores)), key=lambda i: -scores[i] if best_first else scores[i])

    return rerank


def _by_penalty(log_probability: float, length: int, alpha: float) -> float:
    return log_probability / ((5 + length) / 6) ** alpha


def _ranks(*inputs) -> list[int]:
    order = _order(_by_penalty)(*inputs)
    return [order.index(i) for i in range(len(order))]


RERANK = Exercise(
    "rerank",
    reference=_order(_by_penalty),
    cases=_rerank_cases,
    mistakes=(
        Mistake("upside-down", "The penalty is upside down: the longer a sentence, the worse its score becomes. A log-"
                "probability is negative: dividing it by a larger number brings it nearer to 0.",
                _order(lambda one, length, alpha: one * ((5 + length) / 6) ** alpha)),
        Mistake("worst-first", "The order is reversed: the best comes first, and the best score is the highest.",
                _order(_by_penalty, best_first=False)),
        Mistake("no-penalty", "The log-probabilities are ranked as they are: the lengths change nothing.",
                _order(lambda one, length, alpha: one)),
        Mistake("plain-length", "You divide by the length to the power α. The paper's penalty adds 5 and divides by 6 "
                "first, so that short sentences differ less.", _order(lambda one, length, alpha: one / length**alpha)),
        Mistake("alpha-as-factor", "α is an exponent, not a factor: for α = 0 nothing should change.",
                _order(lambda one, length, alpha: one / (1 + alpha * (5 + length) / 6))),
        Mistake("end-counted-twice", "One token too many in the length: the lengths count the end already.",
                _order(lambda one, length, alpha: _by_penalty(one, length + 1, alpha))),
        Mistake("mean", "You rank by the mean log-probability of a token, whatever α is.",
                _order(lambda one, length, alpha: one / length)),
        Mistake("ranks-returned", "These are the ranks of the sentences in their old order. Asked for is the new "
                "order: first the number of the best one.", _ranks),
        Mistake("scores-returned", "These are the scores. Asked for are the numbers of the sentences, best first.",
                lambda ones, lengths, alpha: [_by_penalty(o, n, alpha) for o, n in zip(ones, lengths, strict=True)]),
    ),
)  # fmt: skip
