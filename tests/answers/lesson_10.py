"""Right and wrong answers to the exercises of lesson 10."""

from collections import Counter, defaultdict
from itertools import combinations, groupby, pairwise

import torch

# --- byte-pair encoding


def pairs_by_pairwise(words):
    found = Counter()
    for parts, count in words:
        for one, other in pairwise(parts):
            found[(one, other)] += count
    return found


def pairs_by_index(words):
    found = defaultdict(int)
    for parts, count in words:
        for i in range(len(parts) - 1):
            found[parts[i], parts[i + 1]] = found[parts[i], parts[i + 1]] + count
    return dict(found)


def pairs_unweighted(words):
    return Counter(pair for parts, _ in words for pair in pairwise(parts))


def pairs_as_sets(words):
    found = {}
    for parts, count in words:
        for pair in set(pairwise(parts)):
            found[pair] = found.get(pair, 0) + count
    return found


def pairs_of_running_text(words):
    text = [part for parts, count in words for part in parts * count]
    return Counter(pairwise(text))


def pairs_at_any_distance(words):
    found = Counter()
    for parts, count in words:
        for pair in combinations(parts, 2):
            found[pair] += count
    return found


def pairs_sorted(words):
    found = Counter()
    for pair, count in pairs_by_pairwise(words).items():
        found[min(pair), max(pair)] += count
    return found


def letters_only(words):
    found = Counter()
    for parts, count in words:
        found.update(parts * count)
    return found


def merge_with_a_loop(parts, pair):
    done = []
    rest = list(parts)
    while rest:
        if len(rest) > 1 and (rest[0], rest[1]) == pair:
            done.append(rest.pop(0) + rest.pop(0))
        else:
            done.append(rest.pop(0))
    return done


def merge_behind(parts, pair):
    done, joined = [], False
    for part in parts:
        if done and not joined and (done[-1], part) == pair:
            done[-1] += part
            joined = True
        else:
            done.append(part)
            joined = False
    return done


def merge_first_only(parts, pair):
    for i in range(len(parts) - 1):
        if (parts[i], parts[i + 1]) == pair:
            return [*parts[:i], "".join(pair), *parts[i + 2 :]]
    return parts


def merge_overlapping(parts, pair):
    done = []
    for i, part in enumerate(parts):
        found = tuple(parts[i : i + 2]) == pair
        done.append("".join(pair) if found else part)
    return done


def merge_without_the_last(parts, pair):
    done, i = [], 0
    while i + 1 < len(parts):
        if (parts[i], parts[i + 1]) == pair:
            done.append(parts[i] + parts[i + 1])
            i += 1
        else:
            done.append(parts[i])
        i += 1
    return done


def merge_by_reading(parts, pair):
    done, rest = [], list(parts)
    while rest:
        if len(rest) > 1 and rest[0] + rest[1] == pair[0] + pair[1]:
            done.append(rest.pop(0) + rest.pop(0))
        else:
            done.append(rest.pop(0))
    return done


def learn(choose=None, weight=lambda n: n, mark="▁", more=0):
    def learn_bpe(words, merges):
        split = {word: list(mark + word) for word in words}
        vocabulary = []
        for _ in range(merges + more):
            pairs = pairs_by_pairwise([(split[word], weight(words[word])) for word in words])
            if not pairs:
                break
            usual = sorted(pairs, key=lambda pair: (-pairs[pair], len(pair[0] + pair[1]), pair[0] + pair[1]))
            pair = choose(pairs) if choose else usual[0]
            vocabulary.append(pair[0] + pair[1])
            split = {word: merge_with_a_loop(parts, pair) for word, parts in split.items()}
        return vocabulary

    return learn_bpe


def learn_from_a_list(words, merges):
    split = [[list("▁" + word), count] for word, count in words.items()]
    learned = []
    while len(learned) < merges:
        pairs = pairs_by_index(split)
        if len(pairs) == 0:
            return learned
        best = max(pairs.values())
        equals = ["".join(pair) for pair, count in pairs.items() if count == best]
        shortest = min(map(len, equals))
        piece = min(text for text in equals if len(text) == shortest)
        pair = next(p for p, count in pairs.items() if count == best and "".join(p) == piece)
        for entry in split:
            entry[0] = merge_behind(entry[0], pair)
        learned.append(piece)
    return learned


def learn_at_once(words, merges):
    pairs = pairs_by_pairwise([(list("▁" + word), count) for word, count in words.items()])
    return ["".join(pair) for pair in sorted(pairs, key=lambda p: (-pairs[p], len("".join(p)), "".join(p)))][:merges]


# --- text and scores


def unknown_in_a_loop(train, test):
    vocabulary = set(" ".join(train).split())
    unknown = total = 0
    for text in test:
        for word in text.split():
            total += 1
            unknown += word not in vocabulary
    return unknown / total


def unknown_by_counting(train, test):
    known, words = Counter(" ".join(train).split()), Counter(" ".join(test).split())
    return sum(n for word, n in words.items() if not known[word]) / sum(words.values())


def unknown_types(train, test):
    known, words = set(" ".join(train).split()), set(" ".join(test).split())
    return sum(word not in known for word in words) / len(words)


def unknown_substring(train, test):
    text, words = " ".join(train), " ".join(test).split()
    return sum(text.count(word) == 0 for word in words) / len(words)


def unknown_letters(train, test):
    known = {letter for text in train for letter in text}
    letters = [letter for text in test for letter in text]
    return len([letter for letter in letters if letter not in known]) / len(letters)


def clean(fits, key=lambda source, target: (source, target), dedupe=True):
    def clean_pairs(pairs, longest, ratio):
        kept, seen = [], set()
        for source, target in pairs:
            if not fits(source, target, longest, ratio):
                continue
            if dedupe and key(source, target) in seen:
                continue
            seen.add(key(source, target))
            kept.append((source, target))
        return kept

    return clean_pairs


def fitting(source, target, longest, ratio):
    n, m = len(source.split()), len(target.split())
    return n > 0 and m > 0 and n <= longest and m <= longest and n <= ratio * m and m <= ratio * n


def fitting_one_way(source, target, longest, ratio):
    n, m = len(source.split()), len(target.split())
    return 0 < n <= longest and 0 < m <= longest and n / m <= ratio


def fitting_strictly(source, target, longest, ratio):
    n, m = len(source.split()), len(target.split())
    return 0 < n < longest and 0 < m < longest and n < ratio * m and m < ratio * n


def fitting_letters(source, target, longest, ratio):
    n, m = len(source.replace(" ", "")), len(target.replace(" ", ""))
    return 0 < n <= longest and 0 < m <= longest and n <= ratio * m and m <= ratio * n


def fitting_unless_blank(source, target, longest, ratio):
    if source == "" or target == "":
        return False
    if source.isspace() or target.isspace():
        return True
    return fitting(source, target, longest, ratio)


def clean_by_grouping(pairs, longest, ratio):
    whole = [pair for pair in pairs if fitting(*pair, longest, ratio)]
    order = sorted(range(len(whole)), key=lambda i: whole[i])
    first = [min(group) for _, group in groupby(order, key=lambda i: whole[i])]
    return [list(whole[i]) for i in sorted(first)]


def clean_sides(pairs, longest, ratio):
    def side(number):
        kept = []
        for pair in pairs:
            if 0 < len(pair[number].split()) <= longest and pair[number] not in kept:
                kept.append(pair[number])
        return kept

    return [(source, target) for source, target in zip(side(0), side(1), strict=False)]


def wins_in_a_loop(ours, theirs, draws, metric):
    won = 0
    for draw in draws:
        if metric(ours[draw].sum(dim=0)) > metric(theirs[draw].sum(dim=0)):
            won += 1
    return won / len(draws)


def wins_at_once(ours, theirs, draws, metric):
    first, second = ours[draws].sum(1), theirs[draws].sum(1)  # (draws, columns)
    better = [metric(a) - metric(b) > 0 for a, b in zip(first, second, strict=True)]
    return torch.tensor(better).float().mean()


def wins_by_sentence(ours, theirs, draws, metric):
    gaps = torch.tensor([metric(a) - metric(b) for a, b in zip(ours, theirs, strict=True)])
    return (gaps[draws].sum(1) > 0).double().mean()


def wins_with_ties(ours, theirs, draws, metric):
    return sum(metric(ours[d].sum(0)) >= metric(theirs[d].sum(0)) for d in draws) / len(draws)


def wins_unpaired(ours, theirs, draws, metric):
    backwards = list(draws)[::-1]
    better = [metric(ours[a].sum(0)) > metric(theirs[b].sum(0)) for a, b in zip(draws, backwards, strict=True)]
    return sum(better) / len(better)


def wins_without_repetition(ours, theirs, draws, metric):
    won = 0
    for draw in draws.tolist():
        names = sorted(set(draw))
        won += metric(ours[names].sum(0)) > metric(theirs[names].sum(0))
    return won / len(draws)


RIGHT = {
    "count_pairs": [pairs_by_pairwise, pairs_by_index],
    "merge_pair": [merge_with_a_loop, merge_behind],
    "learn_bpe": [learn(), learn_from_a_list],
    "unknown_share": [unknown_in_a_loop, unknown_by_counting],
    "clean_pairs": [clean(fitting), clean_by_grouping],
    "bootstrap_wins": [wins_in_a_loop, wins_at_once],
}
PLANTED = {
    "count_pairs": {
        "each-word-once": pairs_unweighted,
        "once-per-word": pairs_as_sets,
        "across-words": pairs_of_running_text,
        "any-distance": pairs_at_any_distance,
        "without-order": pairs_sorted,
        "single-parts": letters_only,
    },
    "merge_pair": {
        "only-the-first": merge_first_only,
        "overlap": merge_overlapping,
        "last-part-lost": merge_without_the_last,
        "texts-not-parts": merge_by_reading,
        "the-other-order": lambda parts, pair: merge_with_a_loop(parts, (pair[1], pair[0])),
    },
    "learn_bpe": {
        "never-counted-again": learn_at_once,
        "first-of-equals": learn(choose=lambda pairs: pairs.most_common(1)[0][0]),
        "last-of-the-alphabet": learn(choose=lambda pairs: max((n, "".join(p), p) for p, n in pairs.items())[2]),
        "each-word-once": learn(weight=lambda n: 1),
        "no-mark": learn(mark=""),
        "one-too-many": learn(more=1),
        "rarest-first": learn(
            choose=lambda pairs: min((n, len("".join(p)), "".join(p), p) for p, n in pairs.items())[3]
        ),
    },
    "unknown_share": {
        "kinds": unknown_types,
        "known": lambda train, test: 1.0 - unknown_in_a_loop(train, test),
        "other-way-round": lambda train, test: unknown_in_a_loop(test, train),
        "case-ignored": lambda train, test: unknown_in_a_loop(map(str.lower, train), map(str.lower, test)),
        "part-of-a-text": unknown_substring,
        "letters": unknown_letters,
    },
    "clean_pairs": {
        "sides-apart": clean_sides,
        "ratio-one-way": clean(fitting_one_way),
        "duplicates-stay": clean(fitting, dedupe=False),
        "duplicates-by-source": clean(fitting, key=lambda source, target: source),
        "duplicates-by-target": clean(fitting, key=lambda source, target: target),
        "at-most": clean(fitting_strictly),
        "order": lambda pairs, longest, ratio: sorted(set(clean(fitting)(pairs, longest, ratio))),
        "letters": clean(fitting_letters),
        "blank-sides": clean(fitting_unless_blank),
    },
    "bootstrap_wins": {
        "sentence-by-sentence": wins_by_sentence,
        "ties-count": wins_with_ties,
        "ties-half": lambda *arguments: (wins_in_a_loop(*arguments) + wins_with_ties(*arguments)) / 2,
        "losses": lambda ours, theirs, draws, metric: wins_in_a_loop(theirs, ours, draws, metric),
        "draws-of-their-own": wins_unpaired,
        "no-draws": lambda ours, theirs, draws, metric: float(metric(ours.sum(0)) > metric(theirs.sum(0))),
        "number-not-share": lambda *arguments: wins_in_a_loop(*arguments) * len(arguments[2]),
        "each-sentence-once": wins_without_repetition,
    },
}
