"""Right and wrong answers to the exercises of lesson 11."""

import math
import re
from collections import Counter
from itertools import combinations, permutations
from statistics import fmean, median

# --- counting


def more_by_counting(d, gates, projections):
    n = 0
    while True:
        n += 1
        attention = projections * n * d**2 + 2 * n**2 * d
        if attention > gates * n * (d**2 + d**2):
            return n


def more_by_solving(d, gates, projections):
    """p n d² + 2 n² d > 2 g n d², divided by n · d: 2 n > (2 g - p) d."""
    return max(1, math.floor((2 * gates - projections) * d / 2) + 1)


def more_wrongly(attention=None, recurrent=None, equal=False):
    def costs_more_from(d, gates, projections):
        n = 1
        while True:
            one = attention(n, d, projections) if attention else projections * n * d * d + 2 * n * n * d
            other = recurrent(n, d, gates) if recurrent else 2 * gates * n * d * d
            if one > other or (equal and one == other):
                return n
            n += 1

    return costs_more_from


def layers_in_a_loop(n, kernel, growth):
    seen, layers = 1, 0  # the last position sees itself
    while seen < n:
        seen += (kernel - 1) * growth**layers
        layers += 1
    return layers


def layers_by_walking(n, kernel, growth):
    """Follow the earliest position that each layer reads, from the last one on."""
    place, layers = n, 0
    while place > 1:
        place = max(1, place - (kernel - 1) * growth**layers)
        layers += 1
    return layers


def layers_wrongly(reach, goal=lambda n: n - 1):
    def layers_to_reach(n, kernel, growth):
        total, layers = 0, 0
        while total < goal(n):
            total += reach(kernel, growth, layers)
            layers += 1
        return layers

    return layers_to_reach


def layers_by_logarithm(n, kernel, growth):
    return next(layers for layers in range(100) if kernel**layers >= n)


def share_in_steps(products, pairs, steps, hours, gpus, peak_tflops):
    operations = 2 * products  # a multiply-add is two
    operations *= 3  # once forward, twice as much back
    done = operations * pairs * steps
    possible = hours * 60 * 60 * gpus * peak_tflops * 10**12
    return done / possible


def share_of_a_second(products, pairs, steps, hours, gpus, peak_tflops):
    tflops = 6 * products * pairs * steps / (hours * 3600) / 1e12
    return tflops / gpus / peak_tflops


def share_scaled(factor):
    return lambda *arguments: factor * share_in_steps(*arguments)


# --- labelled F1


def read_line(line):
    stack, spans, word = [], [], 0
    for symbol in line.split():
        if symbol.startswith("("):
            stack.append((symbol[1:], word))
        elif symbol.startswith(")"):
            label, first = stack.pop()
            spans.append((label, first, word))
        else:
            word += 1
    return spans


def f1_with_counters(gold, predicted):
    matched = total = 0
    for right, ours in zip(gold, predicted, strict=True):
        one, other = Counter(read_line(right)), Counter(read_line(ours))
        matched += sum(min(count, other[span]) for span, count in one.items())
        total += sum(one.values()) + sum(other.values())
    return 200 * matched / total


def f1_by_crossing_out(gold, predicted):
    right = of_gold = of_ours = 0
    for line, other in zip(gold, predicted, strict=True):
        left, ours = spans_by_recursion(line), spans_by_recursion(other)
        of_gold, of_ours = of_gold + len(left), of_ours + len(ours)
        for span in ours:
            if span in left:
                left.remove(span)
                right += 1
    precision, recall = right / of_ours, right / of_gold
    return 0.0 if not right else 100 * 2 * precision * recall / (precision + recall)


def spans_by_recursion(line):
    symbols, spans = iter(line.split()), []

    def inside(label, start):
        place = start
        for symbol in symbols:
            if symbol[0] == ")":
                spans.append([label, start, place])
                return place
            place = inside(symbol[1:], place) if symbol[0] == "(" else place + 1
        return place

    inside("", 0)
    return spans


def f1_wrongly(read=read_line, collect=list, score=lambda right, gold, ours: 2 * right / (gold + ours)):
    def f1_of_lines(gold, predicted):
        right = of_gold = of_ours = 0
        for line, other in zip(gold, predicted, strict=True):
            left, ours = collect(read(line)), collect(read(other))
            of_gold, of_ours = of_gold + len(left), of_ours + len(ours)
            left = list(left)
            for span in ours:
                if span in left:
                    left.remove(span)
                    right += 1
        return 100 * score(right, of_gold, of_ours)

    return f1_of_lines


def f1_lengths_by_lists(gold, predicted):
    right = total = 0
    for line, other in zip(gold, predicted, strict=True):
        one, two = read_line(line), read_line(other)
        right, total = right + len(set(one).intersection(two)), total + len(one) + len(two)
    return 200 * right / total


def f1_in_one_bag(gold, predicted):
    bags = [Counter(span for line in lines for span in read_line(line)) for lines in (gold, predicted)]
    return 200 * sum(min(count, bags[1][span]) for span, count in bags[0].items()) / sum(map(Counter.total, bags))


def read_with_a_dictionary(line):
    starts, spans, word = {}, [], 0
    for symbol in line.split():
        if symbol.startswith("("):
            starts[symbol[1:]] = word
        elif symbol.startswith(")"):
            spans.append((symbol[1:], starts[symbol[1:]], word))
        else:
            word += 1
    return spans


def read_by_symbols(line):
    stack, spans = [], []
    for number, symbol in enumerate(line.split()):
        if symbol.startswith("("):
            stack.append((symbol[1:], number))
        elif symbol.startswith(")"):
            spans.append((*stack.pop(), number))
    return spans


def f1_matched_again(gold, predicted):
    right = total = 0
    for line, other in zip(gold, predicted, strict=True):
        left, ours = read_line(line), read_line(other)
        right += len([span for span in ours if span in left])
        total += len(left) + len(ours)
    return 100 * 2 * right / total


def f1_of_means(gold, predicted):
    return fmean(f1_with_counters([line], [other]) for line, other in zip(gold, predicted, strict=True))


def with_words(line):
    return read_line(re.sub("XX", "(XX XX )XX", line))


# --- is a gap chance?


def chance_by_choosing(ours, theirs):
    scores = [*ours, *theirs]
    real = abs(fmean(ours) - fmean(theirs))
    found = []
    for chosen in combinations(range(len(scores)), len(ours)):
        one = [scores[i] for i in chosen]
        other = [scores[i] for i in range(len(scores)) if i not in chosen]
        found.append(abs(fmean(one) - fmean(other)) > real - 1e-9)
    return sum(found) / len(found)


def chance_by_permuting(ours, theirs):
    """All orders: each division comes up equally often."""
    scores, size = [*ours, *theirs], len(ours)
    real = abs(sum(ours) / size - sum(theirs) / len(theirs))
    hits = total = 0
    for order in permutations(scores):
        gap = abs(sum(order[:size]) / size - sum(order[size:]) / len(theirs))
        hits += gap + 1e-9 >= real
        total += 1
    return hits / total


def chance_wrongly(middle=fmean, size=abs, counts=lambda gap, real: gap >= real - 1e-9, share=True, real_one=True):
    def chance_of_gap(ours, theirs):
        scores, real = [*ours, *theirs], size(middle(ours) - middle(theirs))
        hits = total = 0
        for chosen in combinations(range(len(scores)), len(ours)):
            if not real_one and chosen == tuple(range(len(ours))):
                continue
            one, other = [scores[i] for i in chosen], [s for i, s in enumerate(scores) if i not in chosen]
            hits += counts(size(middle(one) - middle(other)), real)
            total += 1
        return hits / total if share else hits

    return chance_of_gap


def chance_of_pairs(ours, theirs):
    better, worse = (ours, theirs) if fmean(ours) >= fmean(theirs) else (theirs, ours)
    lost = [one <= other for one in better for other in worse]
    return sum(lost) / len(lost)


RIGHT = {
    "costs_more_from": [more_by_counting, more_by_solving],
    "layers_to_reach": [layers_in_a_loop, layers_by_walking],
    "share_of_peak": [share_in_steps, share_of_a_second],
    "f1_of_lines": [f1_with_counters, f1_by_crossing_out],
    "chance_of_gap": [chance_by_choosing, chance_by_permuting],
}
PLANTED = {
    "costs_more_from": {
        "as-much": more_wrongly(equal=True),
        "papers-terms": lambda d, gates, projections: d + 1,
        "without-mixtures": more_wrongly(lambda n, d, p: p * n * d**2 + n**2 * d),
        "half-the-gates": more_wrongly(recurrent=lambda n, d, g: g * n * d**2),
        "one-gate": more_wrongly(recurrent=lambda n, d, g: 2 * n * d**2),
        "projections-of-one-word": more_wrongly(lambda n, d, p: p * d**2 + 2 * n**2 * d),
        "without-projections": more_wrongly(lambda n, d, p: 2 * n**2 * d),
        "below-one": lambda d, gates, projections: math.floor((gates - projections / 2) * d) + 1,
    },
    "layers_to_reach": {
        "kernel-itself": layers_wrongly(lambda k, g, layer: k * g**layer),
        "n-positions": layers_wrongly(lambda k, g, layer: (k - 1) * g**layer, lambda n: n),
        "kernel-and-n": layers_wrongly(lambda k, g, layer: k * g**layer, lambda n: n),
        "always-the-logarithm": layers_by_logarithm,
        "dilation-too-early": layers_wrongly(lambda k, g, layer: (k - 1) * g ** (layer + 1)),
        "never-dilated": lambda n, kernel, growth: math.ceil((n - 1) / (kernel - 1)),
        "centred": layers_wrongly(lambda k, g, layer: (k - 1) / 2 * g**layer),
    },
    "share_of_peak": {
        "multiply-adds": share_scaled(1 / 2),
        "forward-only": share_scaled(1 / 3),
        "forward-multiply-adds": share_scaled(1 / 6),
        "backward-as-forward": share_scaled(2 / 3),
        "hours-as-seconds": share_scaled(3600),
        "one-gpu": lambda products, pairs, steps, hours, gpus, peak: share_in_steps(
            products, pairs, steps, hours, 1, peak
        ),
        "tera": share_scaled(1e12),
        "inverted": lambda *arguments: share_in_steps(*arguments) ** -1,
        "percent": share_scaled(100),
    },
    "f1_of_lines": {
        "sets": f1_wrongly(collect=set),
        "sets-for-matches": f1_lengths_by_lists,
        "across-sentences": f1_in_one_bag,
        "no-stack": f1_wrongly(read_with_a_dictionary),
        "symbols-counted": f1_wrongly(read_by_symbols),
        "top-left-out": f1_wrongly(lambda line: [span for span in read_line(line) if span[0] != "TOP"]),
        "matched-again": f1_matched_again,
        "mean-of-sentences": f1_of_means,
        "unlabelled": f1_wrongly(lambda line: [(first, end) for _, first, end in read_line(line)]),
        "labels-only": f1_wrongly(lambda line: [label for label, _, _ in read_line(line)]),
        "starts-only": f1_wrongly(lambda line: [(label, first) for label, first, _ in read_line(line)]),
        "words-counted": f1_wrongly(with_words),
        "precision": f1_wrongly(score=lambda right, gold, ours: right / ours),
        "recall": f1_wrongly(score=lambda right, gold, ours: right / gold),
        "arithmetic-mean": f1_wrongly(score=lambda right, gold, ours: fmean([right / gold, right / ours])),
        "share": lambda gold, predicted: f1_with_counters(gold, predicted) / 100,
    },
    "chance_of_gap": {
        "one-sided": chance_wrongly(size=lambda gap: gap),
        "larger-only": chance_wrongly(counts=lambda gap, real: gap > real + 1e-9),
        "no-tolerance": chance_wrongly(lambda scores: sum(scores) / len(scores), counts=lambda gap, real: gap >= real),
        "without-the-real-one": chance_wrongly(real_one=False),
        "pairs": chance_of_pairs,
        "the-rest": lambda ours, theirs: 1 - chance_by_choosing(ours, theirs),
        "medians": chance_wrongly(middle=median),
        "sums": chance_wrongly(middle=sum),
        "number-not-share": chance_wrongly(share=False),
    },
}
