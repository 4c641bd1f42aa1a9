"""Tables of what came after the paper, for the page of results: what lesson 12 draws from."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from bookmaking.tables import number, table


def families(found: Mapping[str, Any]) -> str:
    writer, reader = found["writer"], found["reader"]
    rows = [
        (f"always “{reader['most_frequent']}”", number(reader["most_frequent_percent"], 1), ""),
        ("decoder only, left side", number(writer["guessed_percent"], 1), number(writer["perplexity"])),
        ("encoder only, both sides", number(reader["guessed_percent"], 1), number(reader["perplexity"])),
    ]
    head = ["model", "hidden tokens guessed, %", "perplexity, each of its own question"]
    return f"{found['settings']['steps']:,} steps on English of the microworld.\n\n" + table(head, rows, "lrr")


def long(found: Mapping[str, Any]) -> str:
    longest = max(found["settings"]["lengths"])
    seconds, peaks = (
        {(row["way"], row["pass"]): row[key] for row in found[part] if row["n"] == longest}
        for part, key in (("times", "seconds"), ("memory", "bytes"))
    )
    rows = [
        (row["way"], row["pass"], number(1000 * median(seconds[row["way"], row["pass"]]), 0),
         number(row["seconds"]["median"], 1), number(peaks[row["way"], row["pass"]] / 1e6, 1), number(row["bytes"], 1))
        for row in found["slopes"]
    ]  # fmt: skip
    head = ["way", "pass", "ms", "time grows as n to the", "peak MB", "memory grows as n to the"]
    return f"At n = {longest:,}. {found['note']}\n\n" + table(head, rows, "llrrrr")


def practice(found: Mapping[str, Any]) -> str:
    rows = [row for row in found["training"] if "missing" not in row]
    plain = median(rows[0]["seconds"])
    lines = [
        (row["way"], f"{median(row['seconds']) / plain:.2f} ×",
         number(row["kept_bytes"] / 1e6, 0) if "kept_bytes" in row else "", number(row["peak_bytes"] / 1e6, 0),
         f"{row['relative_gradient_difference']:.0e}")
        for row in rows
    ]  # fmt: skip
    head = ["a step", "time", "kept for the backward pass, MB", "peak, MB", "gradients off by"]
    return f"{found['note']}\n\n" + table(head, lines, "lrrrr")


def refinement(found: Mapping[str, Any]) -> str:
    speed = {(row["way"], row["together"]): row["sentences_per_second"] for row in found["speed"]}
    rows = [
        (row["split"], row["way"], number(row["bleu"], 1), number(row["passes"], 1), number(speed[row["way"], 1], 0),
         number(speed[row["way"], 64], 0))
        for row in found["rows"]
    ]  # fmt: skip
    head = ["split", "decoding", "BLEU", "passes", "sentences a second, alone", "64 together (both on test)"]
    return f"{found['note']}\n\n" + table(head, rows, "llrrrr")


def exchange(found: Mapping[str, Any]) -> str:
    rows = [
        (f"`{row['model']}`", one["engine"], f"{one['identical']:,} of {one['sentences']:,}", number(one["bleu"]),
         f"{one['bleu'] - one['bleu_ours']:+.2f}", f"{one['faster_than_ours_by']:.2f} ×",
         number(one["bytes_of_weights"] / 1e6))
        for row in found["rows"] for one in row["engines"]
    ]  # fmt: skip
    head = ["model", "engine", "same tokens as ours", "BLEU", "to ours", "faster than ours by", "weights, MB"]
    return f"Beam {found['beam']}, α = {found['alpha']}; {found['note']}.\n\n" + table(head, rows, "llrrrrr")
