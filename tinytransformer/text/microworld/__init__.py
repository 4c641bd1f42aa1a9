"""The microworld: an embedded English–German corpus with gold word alignments, trees and pronouns.

``generate("train", count=1000, seed=1)`` yields examples. Read the files in this order; each imports only from those
before it: tables, entries, verb_table, lexicon, morphology, phrases, pronouns, clauses, english, german,
rendering, world, sense, choices, rivals, reasons, sentences, questions, examples, splits, generator.
"""

from tinytransformer.text.microworld.examples import CONSTRUCTIONS, Example
from tinytransformer.text.microworld.generator import generate
from tinytransformer.text.microworld.splits import SPLITS
from tinytransformer.text.microworld.tables import LexiconError

__all__ = ["CONSTRUCTIONS", "SPLITS", "Example", "LexiconError", "generate"]
