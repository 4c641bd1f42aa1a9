"""Right and wrong answers to the exercises of lesson 09."""

import math
from collections import defaultdict

import torch

# --- wrong answers


def roles(shift=-1, first=None, itself=False, only_back=False, by_row=False, flip=False):
    """The three masks with comparisons of positions; each argument changes one thing."""

    def role_masks(tokens, marks):
        place = torch.arange(len(tokens))
        row, column = place[:, None], place[None, :]
        names = torch.tensor([tokens.index(token) for token in tokens])
        is_mark = torch.tensor([token in set(marks) for token in tokens])
        previous = first(row, column, len(tokens)) if first else column == row + shift
        same = names[:, None] == names[None, :]
        if not itself:
            same = same & (row != column)
        if only_back:
            same = same & (column < row)
        mark = is_mark[:, None].repeat(1, len(tokens)) if by_row else is_mark[None].repeat(len(tokens), 1)
        masks = [previous, same, mark]
        return [mask.logical_not() for mask in masks] if flip else masks

    return role_masks


def links(offset=0, whole=True, pieces=False, skip_end=False, turn=False):
    def word_links(weights, source_words, target_words):
        found = []
        for word in sorted(set(target_words)):
            rows = [n + offset for n, owner in enumerate(target_words) if owner == word]
            rows = rows if whole else rows[:1]
            if pieces:
                totals = [sum(weights[r, c].item() for r in rows) for c in range(weights.shape[1])]
                place = totals.index(max(totals))
                best = "end" if place == len(source_words) else source_words[place]
            else:
                mass = defaultdict(float)
                for c in range(weights.shape[1]):
                    owner = source_words[c] if c < len(source_words) else "end"
                    mass[owner] += sum(weights[r, c].item() for r in rows)
                if skip_end:
                    del mass["end"]
                best = max(mass, key=mass.get)
            if best != "end":
                found.append((word, best) if turn else (best, word))
        return found

    return word_links


def error(rule):
    """From precision-like counts to an error: common, ours, theirs."""

    def alignment_error(found, gold):
        common = sum(len(a.intersection(g)) for a, g in zip(found, gold, strict=True))
        return rule(common, sum(map(len, found)), sum(map(len, gold)))

    return alignment_error


def error_by_sentence(found, gold):
    errors = [1 - 2 * len(a & g) / (len(a) + len(g)) for a, g in zip(found, gold, strict=True)]
    return sum(errors) / len(errors)


def silence(axis=1, keep=False, nothing=False, turn=True, louder=False, after=False):
    def silenced_output(heads, w_o, silent):
        batch, number, length, size = heads.shape
        heard = heads.clone()
        if not nothing and not after:
            chosen = [i for i in range(heads.shape[axis]) if (i in silent) != keep]
            heard.index_fill_(axis, torch.tensor(chosen, dtype=torch.long), 0.0)
        if turn:
            merged = torch.cat([heard[:, h] for h in range(number)], dim=-1)
        else:
            merged = heard.contiguous().view(batch, length, number * size)
        output = torch.einsum("bti,id->btd", merged, w_o)
        if after:
            blocks = output.unflatten(-1, (number, size)).clone()
            blocks[:, :, silent] = 0.0
            output = blocks.flatten(-2)
        return output * (number / (number - len(silent))) if louder else output

    return silenced_output


def choose(chosen_by="valid", scored_by="test", with_itself=False, turn=False, sign=1, fill=None):
    def choose_and_score(valid, test):
        def mean(scores):
            if fill == "nan":
                return scores.sum(0) / len(scores)
            if fill == "zero":
                return torch.where(scores.isnan(), torch.zeros_like(scores), scores).sum(0) / len(scores)
            known = ~scores.isnan()
            return torch.where(known, scores, torch.zeros_like(scores)).sum(0) / known.sum(0)

        means = {"valid": mean(valid), "test": mean(test), "both": mean(torch.cat([valid, test]))}
        table, shown = sign * means[chosen_by], means[scored_by]
        best = max(((i, j) for i in range(3) for j in range(4)), key=lambda place: table[place].item())
        if fill == "nan" and bool(table.isnan().any()):
            best = (0, 0)
        rest = [shown[i, j].item() for i in range(3) for j in range(4) if with_itself or (i, j) != best]
        return (*(best[::-1] if turn else best), shown[best].item(), sum(rest) / len(rest))

    return choose_and_score


def parts(scale=math.sqrt, finish=lambda table: table):
    return lambda query, keys: finish(torch.einsum("d,sd->sd", query, keys) / scale(len(query)))


PLANTED = {
    "role_masks": {
        "next-token": roles(shift=1),
        "token-itself": roles(shift=0),
        "all-before": roles(first=lambda row, column, n: column < row),
        "previous-wraps-around": roles(first=lambda row, column, n: (column + 1) % n == row),
        "same-word-itself": roles(itself=True),
        "same-word-backwards-only": roles(only_back=True),
        "marks-look": roles(by_row=True),
        "inverted": roles(flip=True),
        "transposed": lambda tokens, marks: [mask.T for mask in roles()(tokens, marks)],
    },
    "word_links": {
        "one-row-late": links(offset=1),
        "first-piece-only": links(whole=False),
        "best-piece": links(pieces=True),
        "end-passed-over": links(skip_end=True),
        "swapped": links(turn=True),
    },
    "alignment_error": {
        "score-not-error": error(lambda common, ours, theirs: 2 * common / (ours + theirs)),
        "precision-only": error(lambda common, ours, theirs: (ours - common) / ours),
        "recall-only": error(lambda common, ours, theirs: (theirs - common) / theirs),
        "not-doubled": error(lambda common, ours, theirs: 1 - common / (ours + theirs)),
        "union": error(lambda common, ours, theirs: 1 - common / (ours + theirs - common)),
        "mean-of-sentences": error_by_sentence,
        "percent": error(lambda common, ours, theirs: 100 - 200 * common / (ours + theirs)),
    },
    "silenced_output": {
        "nothing-silenced": silence(nothing=True),
        "others-silenced": silence(keep=True),
        "positions-silenced": silence(axis=2),
        "features-silenced": silence(axis=3),
        "silenced-too-late": silence(after=True),
        "merged-without-transpose": silence(turn=False),
        "rescaled": silence(louder=True),
    },
    "feature_parts": {
        "no-scale": parts(scale=lambda d: 1),
        "scale-d_k": parts(scale=lambda d: d),
        "added-up": parts(finish=lambda table: table.sum(1)),
        "softmax": parts(finish=lambda table: torch.softmax(table, 1)),
        "softmax-over-keys": parts(finish=lambda table: torch.softmax(table, 0)),
        "transposed": parts(finish=lambda table: table.t()),
        "sizes-only": parts(finish=torch.abs),
    },
    "choose_and_score": {
        "chosen-on-test": choose(chosen_by="test"),
        "chosen-on-both": choose(chosen_by="both"),
        "scored-on-valid": choose(scored_by="valid"),
        "chosen-head-among-the-others": choose(with_itself=True),
        "layer-and-head-swapped": choose(turn=True),
        "worst-head": choose(sign=-1),
        "nan-as-zero": choose(fill="zero"),
        "nan": choose(fill="nan"),
    },
}


# --- right answers


def roles_with_lists(tokens, marks):
    n = range(len(tokens))
    previous = [[j + 1 == i for j in n] for i in n]
    same = [[tokens[i] == tokens[j] and i != j for j in n] for i in n]
    mark = [[token in marks for token in tokens] for _ in n]
    return tuple(map(torch.tensor, (previous, same, mark)))


def links_with_matrices(weights, source_words, target_words):
    source = torch.nn.functional.one_hot(torch.tensor([*source_words, max(source_words) + 1])).float()
    target = torch.nn.functional.one_hot(torch.tensor(target_words)).float()
    mass = target.T @ weights[:-1] @ source  # (target words, source words and the end)
    best = mass.argmax(-1).tolist()
    return {(one, word) for word, one in enumerate(best) if one <= max(source_words)}


def silence_head_by_head(heads, w_o, silent):
    size = heads.shape[3]
    output = torch.zeros(heads.shape[0], heads.shape[2], w_o.shape[1])
    for head in range(heads.shape[1]):
        if head not in silent:
            output = output + heads[:, head] @ w_o[head * size : (head + 1) * size]
    return output


def choose_with_tensors(valid, test):
    table, shown = torch.nanmean(valid, 0), torch.nanmean(test, 0).clone()
    place = torch.unravel_index(table.argmax(), table.shape)
    score = shown[place].item()
    return (*place, score, (shown.sum() - score) / (shown.numel() - 1))


RIGHT = {
    "role_masks": [roles(), roles_with_lists],
    "word_links": [links(), links_with_matrices],
    "alignment_error": [
        error(lambda common, ours, theirs: (ours + theirs - 2 * common) / (ours + theirs)),
        lambda found, gold: (
            sum(len(a ^ g) for a, g in zip(found, gold, strict=True)) / (sum(map(len, found)) + sum(map(len, gold)))
        ),
    ],
    "silenced_output": [silence(), silence_head_by_head],
    "feature_parts": [parts(), lambda query, keys: (keys * query) * len(query) ** -0.5],
    "choose_and_score": [choose(), choose_with_tensors],
}
