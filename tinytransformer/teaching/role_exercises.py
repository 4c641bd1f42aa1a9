"""Exercises of lesson 09 about what heads do: masks of three jobs, and a fair choice of a head."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched

# --- where a head with a job would look


def _roles_cases() -> list[tuple]:
    first = "the dog saw the cat and the dog ran , but the cat slept .".split()
    return [(first, [".", ","]), ("a b , a ?".split(), [",", "?", "."]), ("no no no".split(), ["."])]


def _table(tokens: list[str], rule) -> Tensor:
    n = len(tokens)
    return torch.tensor([[bool(rule(i, j)) for j in range(n)] for i in range(n)])


def _roles(tokens, marks, previous=None, same=None, mark=None) -> tuple[Tensor, Tensor, Tensor]:
    previous = previous or (lambda i, j: j == i - 1)
    same = same or (lambda i, j: i != j and tokens[i] == tokens[j])
    mark = mark or (lambda i, j: tokens[j] in marks)
    return tuple(_table(tokens, rule) for rule in (previous, same, mark))


ROLES = Exercise(
    "role_masks",
    reference=_roles,
    cases=_roles_cases,
    mistakes=(
        Mistake("next-token", "The first mask marks the next token, not the previous one: rows are the words that "
                "look.", lambda t, m: _roles(t, m, previous=lambda i, j: j == i + 1)),
        Mistake("token-itself", "The first mask marks the token itself. The previous one stands one column before.",
                lambda t, m: _roles(t, m, previous=lambda i, j: j == i)),
        Mistake("all-before", "The first mask marks all tokens before, as a causal mask does. Asked for is one.",
                lambda t, m: _roles(t, m, previous=lambda i, j: j < i)),
        Mistake("previous-wraps-around", "The first token has no previous one, but in your mask it looks at the last.",
                lambda t, m: _roles(t, m, previous=lambda i, j: j == (i - 1) % len(t))),
        Mistake("same-word-itself", "In the second mask every token marks itself, too. Every word is the same as "
                "itself: that tells nothing about a head.", lambda t, m: _roles(t, m, same=lambda i, j: t[i] == t[j])),
        Mistake("same-word-backwards-only", "The second mask only looks back. In an encoder a word sees later ones, "
                "too.", lambda t, m: _roles(t, m, same=lambda i, j: j < i and t[i] == t[j])),
        Mistake("marks-look", "In the third mask the rows of the marks are filled: these are the marks that look. They "
                "shall be looked at.", lambda t, m: _roles(t, m, mark=lambda i, j: t[i] in m)),
        Mistake("transposed", "Rows and columns are exchanged: the row looks, the column is looked at.",
                lambda t, m: tuple(mask.mT for mask in _roles(t, m))),
        Mistake("inverted", "True and False are exchanged.", lambda t, m: tuple(~mask for mask in _roles(t, m))),
    ),
)  # fmt: skip


# --- choose on one text, score on another


def _choice_cases() -> list[tuple]:
    def scores(sentences: int, seed: int, holes: bool = False) -> Tensor:
        found = random(sentences, 3, 4, seed=seed).sigmoid()
        if holes:
            found[::2] = torch.nan  # the role does not occur in these sentences
        return found

    return [(scores(5, 1), scores(4, 2)), (scores(6, 3, holes=True), scores(5, 4)), (scores(4, 5), scores(6, 6, True))]


def _choose(
    valid,
    test,
    select=None,
    score=None,
    swap=False,
    others=True,
    by_layers=False,
    mean=lambda scores: scores.nanmean(0),
):
    by_valid, by_test = mean(valid), mean(test)
    chosen = by_valid if select is None else select(by_valid, by_test)
    number = int(chosen.nan_to_num(nan=-1.0).argmax())
    layer, head = divmod(number, valid.size(2))
    shown = by_test if score is None else score(by_valid, by_test)
    rest = shown.clone()
    if others:
        rest[layer, head] = torch.nan
    answer = [head, layer] if swap else [layer, head]
    answer = list(divmod(number, valid.size(1))) if by_layers else answer
    return torch.tensor([*answer, shown[layer, head], rest.nanmean()])


CHOICE = Exercise(
    "choose_and_score",
    reference=_choose,
    cases=_choice_cases,
    normal=lambda arguments, answer: answer if untouched(answer) else torch.tensor([float(part) for part in answer]),
    mistakes=(
        Mistake("chosen-on-test", "The head is chosen on the test sentences. Of many heads one always looks good there "
                "by chance: choose on the validation sentences.",
                lambda v, t: _choose(v, t, select=lambda by_valid, by_test: by_test)),
        Mistake("chosen-on-both", "The head is chosen on all sentences, the test sentences among them.",
                lambda v, t: _choose(v, t, select=lambda *_: torch.cat([v, t]).nanmean(0))),
        Mistake("scored-on-valid", "The head is chosen well, but the score is the one on validation sentences, the "
                "very one that made it win.", lambda v, t: _choose(v, t, score=lambda by_valid, by_test: by_valid)),
        Mistake("chosen-head-among-the-others", "The mean of the other heads holds the chosen one.",
                lambda v, t: _choose(v, t, others=False)),
        Mistake("layer-and-head-swapped", "Layer and head are exchanged.", lambda v, t: _choose(v, t, swap=True)),
        Mistake("divided-by-layers", "The number of the head was divided by the number of layers. There are `heads` of "
                "them in each layer: divide by that.", lambda v, t: _choose(v, t, by_layers=True)),
        Mistake("worst-head", "This is the head that does it least.",
                lambda v, t: _choose(v, t, select=lambda by_valid, by_test: -by_valid)),
        Mistake("nan-as-zero", "A sentence in which the role does not occur counts as 0. It should not count.",
                lambda v, t: _choose(v, t, mean=lambda scores: scores.nan_to_num(nan=0.0).mean(0))),
        Mistake("nan", "Sentences in which the role does not occur are NaN, and so are your means.",
                lambda v, t: _choose(v, t, mean=lambda scores: scores.mean(0))),
    ),
)  # fmt: skip
