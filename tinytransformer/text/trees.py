"""Trees: constituency trees as treebanks write them, as a line of symbols that a translator can write, and back.

The line is that of Vinyals et al. 2015 ("Grammar as a Foreign Language"): an opening bracket with its label, a closing
one with the same label, and XX for every word, whatever its part of speech: ``(S (NP XX )NP (VP XX )VP )S``.

What a model writes need not be a tree. `delinearise` reads it from left to right and repairs it by this rule:
  - XX takes the next word of the sentence; when there is none left, it is dropped;
  - a closing bracket closes the innermost open one with its label, and all that were opened inside that one; where no
    such bracket is open, it is dropped;
  - anything that is neither XX nor a bracket with a label is dropped;
  - at the end, what is open is closed, the words that are left become the last children of the outermost constituent,
    and constituents without a word vanish. If there is not one outermost constituent, a TOP is put around, which no
    score counts; so nothing at all becomes a flat tree.
Each of these is counted. A line that needs none of them is well-formed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

TOP, XX, TRACE = "TOP", "XX", "-NONE-"
_NAME = re.compile(r"[^\s()]+")  # a label, a tag or a word
_SYMBOLS = re.compile(r"[()]|[^\s()]+")
_BRACKET = re.compile(r"([()])([^\s()]+)")  # of a linearised tree: the label belongs to it
_COMMENT = ("#", "%", "*", ";")  # how a comment begins, which is a line between trees


class TreeError(ValueError):
    """A tree cannot be read or made; the message says where and what to do."""


@dataclass(frozen=True)
class Tree:
    """A constituent with its children, or a word under its part-of-speech tag, which is then the label."""

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def __post_init__(self):
        if (self.word is None) != bool(self.children):
            raise TreeError(f"{self.label!r} must have children or a word, and not both")
        for text in (self.label,) if self.word is None else (self.label, self.word):
            if not _NAME.fullmatch(text):
                raise TreeError(f"{text!r} cannot stand in a tree: no spaces, and write brackets as -LRB- and -RRB-")

    def walk(self) -> Iterator[tuple["Tree", bool]]:
        """Every node when it opens (True) and every constituent again when it closes (False), from left to right."""
        # A stack instead of recursion: what a model writes may be nested deeper than Python allows.
        stack = [(self, True)]
        while stack:
            node, opens = stack.pop()
            yield node, opens
            if opens and node.children:
                stack.append((node, False))
                stack += [(child, True) for child in reversed(node.children)]

    def leaves(self) -> list["Tree"]:
        """The words with their tags."""
        return [node for node, _ in self.walk() if node.word is not None]

    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves()]

    def nested(self) -> tuple:
        """Plain values for a drawing: (label, [children]) and (tag, word)."""
        if self.word is not None:
            return self.label, self.word
        return self.label, [child.nested() for child in self.children]

    def __str__(self) -> str:
        """The tree as treebanks write it, in one line."""
        parts = []
        for node, opens in self.walk():
            if node.word is not None:
                parts.append(f" ({node.label} {node.word})")
            else:
                parts.append(f" ({node.label}" if opens else ")")
        return "".join(parts).lstrip()


@dataclass
class _Open:
    """A bracket that has not been closed yet."""

    line: int = 0
    label: str = ""
    word: str | None = None
    children: list[Tree] = field(default_factory=list)
    holds: int = 0  # brackets inside, traces counted: a constituent of traces is dropped, an empty one refused


def read_trees(lines: Iterable[str], name: str = "text") -> Iterator[Tree]:
    """The trees of a text in Penn format, over any number of lines; lines between them may be blank or comments.

    As parsers use them: traces (-NONE-) are left out with the constituents that hold nothing else, labels lose their
    functions (NP-SBJ and NP=2 become NP), and an outer bracket without a label is taken off.
    """
    stack: list[_Open] = []
    for number, line in enumerate(lines, start=1):
        if not stack and line.lstrip().startswith(_COMMENT):
            continue
        for symbol in _SYMBOLS.findall(line):
            where = f"{name}, line {number}"
            if symbol == "(":
                _open(stack, number, where)
            elif symbol == ")":
                tree = _close(stack, where)
                if tree is not None:
                    yield tree
            else:
                _name(stack, symbol, where)
    if stack:
        raise TreeError(f"{name}: the tree that begins in line {stack[0].line} is not closed at the end of the text")


def tree_of(text: str) -> Tree:
    """The one tree of a text."""
    found = list(read_trees(text.splitlines()))
    if len(found) != 1:
        raise TreeError(f"{text[:40]!r} holds {len(found)} trees: give one")
    return found[0]


def _open(stack: list[_Open], line: int, where: str) -> None:
    if stack:
        around = stack[-1]
        if around.word is not None:
            raise TreeError(f"{where}: the word {around.word!r} has no tag of its own: write it as (TAG {around.word})")
        if not around.label and len(stack) > 1:
            raise TreeError(f"{where}: a bracket inside a tree has no label: only the outermost may have none")
        around.holds += 1
    stack.append(_Open(line))


def _name(stack: list[_Open], symbol: str, where: str) -> None:
    """A symbol that is no bracket: the label of the bracket that was just opened, or the word behind a tag."""
    if not stack:
        raise TreeError(f"{where}: {symbol!r} stands outside of every tree; a comment begins with {' '.join(_COMMENT)}")
    inner = stack[-1]
    if inner.holds or inner.word is not None:
        raise TreeError(f"{where}: the word {symbol!r} has no tag of its own: write it as (TAG {symbol})")
    if not inner.label:
        inner.label = symbol
    else:
        inner.word = symbol


def _close(stack: list[_Open], where: str) -> Tree | None:
    """Close the innermost bracket: its tree goes into the bracket around it, or is returned if there is none."""
    if not stack:
        raise TreeError(f"{where}: a closing bracket closes nothing: remove it, or add the opening one")
    inner = stack.pop()
    if inner.word is None and not inner.holds:
        raise TreeError(f"{where}: the bracket {inner.label!r} holds nothing: give it a word or children")
    if inner.word is not None:
        found = None if inner.label == TRACE else Tree(inner.label, word=inner.word)
    else:
        found = _constituent(inner)
    if stack:
        stack[-1].children += [found] if found else []
        return None
    return Tree(TOP, (found,)) if found and found.word is not None else found


def _constituent(inner: _Open) -> Tree | None:
    if not inner.children:
        return None
    if inner.label:
        return Tree(re.match(r".[^-=]*", inner.label)[0], tuple(inner.children))
    return inner.children[0] if len(inner.children) == 1 else Tree(TOP, tuple(inner.children))


def linearise(tree: Tree) -> str:
    """The tree as a line of symbols, without its words and tags."""
    symbols = []
    for node, opens in tree.walk():
        symbols.append(XX if node.word is not None else f"({node.label}" if opens else f"){node.label}")
    return " ".join(symbols)


@dataclass(frozen=True)
class Parse:
    """A tree that was made from a line of symbols, and how often the rule above had to repair what."""

    tree: Tree
    repairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def malformed(self) -> bool:
        return bool(self.repairs)


def delinearise(text: str, words: Sequence[str]) -> Parse:
    """The tree behind a line of symbols, with the words of the sentence in the places of XX, all tagged XX.

    Any text gives a tree over exactly these words; the module's docstring says how it is repaired.
    """
    if not words:
        raise TreeError("a tree without words cannot be made: give the words of the sentence")
    repairs: Counter[str] = Counter()
    waiting = [Tree(XX, word=word) for word in reversed(words)]
    stack = [_Open(label=TOP)]
    for symbol in text.split():
        bracket = _BRACKET.fullmatch(symbol)
        if symbol == XX and waiting:
            stack[-1].children.append(waiting.pop())
        elif symbol == XX:
            repairs["words too many"] += 1
        elif bracket is None:
            repairs["unknown symbols"] += 1
        elif bracket[1] == "(":
            stack.append(_Open(label=bracket[2]))
        else:
            _close_labelled(stack, bracket[2], repairs)
    repairs["brackets not closed"] += len(stack) - 1
    repairs["words missing"] += len(waiting)
    _shut(stack, 1, repairs)
    tree = _outermost(stack[0].children, waiting[::-1], repairs)
    return Parse(tree, {what: count for what, count in repairs.items() if count})


def _close_labelled(stack: list[_Open], label: str, repairs: Counter[str]) -> None:
    places = [place for place, bracket in enumerate(stack) if place and bracket.label == label]
    if not places:
        repairs["closing brackets that fit nothing"] += 1
        return
    repairs["brackets not closed"] += len(stack) - 1 - places[-1]
    _shut(stack, places[-1], repairs)


def _shut(stack: list[_Open], depth: int, repairs: Counter[str]) -> None:
    """Close brackets until ``depth`` are open."""
    while len(stack) > depth:
        inner = stack.pop()
        if inner.children:
            stack[-1].children.append(Tree(inner.label, tuple(inner.children)))
        else:
            repairs["constituents without a word"] += 1


def _outermost(children: list[Tree], left: list[Tree], repairs: Counter[str]) -> Tree:
    if len(children) == 1 and children[0].word is None:
        return Tree(children[0].label, (*children[0].children, *left))
    repairs["not one outermost constituent"] += 1
    return Tree(TOP, (*children, *left))
