"""Tasks of assignment 1 about masks: one for a decoder's mask without blank rows and one for packed sentences."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Case, Task


def _words(rows: int, length: int, dice: torch.Generator, low: int = 3, high: int = 30) -> Tensor:
    return torch.randint(low, high, (rows, length), generator=dice)


def _number(low: int, high: int, dice: torch.Generator) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return int(torch.randint(low, high + 1, (), generator=dice))


def _earlier(length: int, shift: int = 0) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril(shift)


# --- a decoder's mask without blank rows


def _blank_rows_closed(mask: Tensor) -> Tensor:
    blank = ~mask.any(dim=-1, keepdim=True)
    return mask | (blank & torch.eye(mask.size(-1), dtype=torch.bool))


def _decoder_mask(ids: Tensor, pad_id: int, shift: int = 0, repair=_blank_rows_closed) -> Tensor:
    real = (ids != pad_id)[:, None, None, :]
    return repair(_earlier(ids.size(1), shift) & real)


def _every_padding_sees_itself(ids: Tensor, pad_id: int) -> Tensor:
    padded = (ids == pad_id)[:, None, :, None] & torch.eye(ids.size(1), dtype=torch.bool)
    return _decoder_mask(ids, pad_id, repair=lambda mask: mask) | padded


def _past_opened(mask: Tensor) -> Tensor:
    return mask | (~mask.any(dim=-1, keepdim=True) & _earlier(mask.size(-1)))


def _first_row_only(mask: Tensor) -> Tensor:
    first = torch.zeros_like(mask)
    first[..., 0, 0] = True
    return mask | first


def _causal_only(ids: Tensor, pad_id: int) -> Tensor:
    return _earlier(ids.size(1)).expand(len(ids), 1, -1, -1)


def _padding_on_queries(ids: Tensor, pad_id: int) -> Tensor:
    return _blank_rows_closed(_earlier(ids.size(1)) & (ids != pad_id)[:, None, :, None])


def _decoder_mask_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length = _number(5, 11, dice)
    behind, front, empty = (_words(2, length, dice) for _ in range(3))
    behind[0, _number(2, length - 2, dice) :] = 0
    front[1, : _number(2, length - 2, dice)] = 0
    empty[0] = 0
    other = _words(3, length, dice, high=9)
    other[:, length // 2] = 0  # here 0 is a word
    other[0, -2:], other[1, :2] = 1, 1
    return [
        Case("padding behind the words", (behind, 0)),
        Case("padding in front of the words", (front, 0)),
        Case("a sentence that is all padding", (empty, 0)),
        Case("another padding id, on both sides", (other, 1)),
        Case("one token only", (_words(2, 1, dice), 0)),
    ]


DECODER_MASK = Task(
    Exercise(
        "decoder_mask",
        reference=_decoder_mask,
        cases=lambda: [
            (torch.tensor([[5, 6, 7, 0], [0, 0, 8, 9], [4, 0, 0, 0]]), 0),
            (torch.tensor([[0, 5, 6]]), 0),
            (torch.tensor([[1, 1, 0, 5, 6], [3, 0, 4, 1, 1], [1, 1, 1, 1, 1]]), 1),
        ],
        mistakes=(
            Mistake("blank-rows", "A row of padding in front of the words sees nothing at all. Such a row was to see "
                    "itself.", lambda ids, p: _decoder_mask(ids, p, repair=lambda mask: mask)),
            Mistake("every-padding-sees-itself", "Padding behind the words sees itself, too. It has earlier words to "
                    "look at: only a row that sees nothing is changed.", _every_padding_sees_itself),
            Mistake("blank-rows-see-all", "A row that saw nothing now sees everything. It was to see itself only.",
                    lambda ids, p: _decoder_mask(
                        ids, p, repair=lambda mask: mask | ~mask.any(dim=-1, keepdim=True))),
            Mistake("blank-rows-see-the-past", "A row that saw nothing now sees all positions up to its own, which are "
                    "padding. It was to see itself only.",
                    lambda ids, p: _decoder_mask(ids, p, repair=_past_opened)),
            Mistake("first-row-only", "Only the first row is repaired. Several rows can be blank.",
                    lambda ids, p: _decoder_mask(ids, p, repair=_first_row_only)),
            Mistake("causal-only", "The future is hidden, padding is not.", _causal_only),
            Mistake("padding-on-queries", "The padding's rows are hidden, not its columns: real words still look at "
                    "padding.", _padding_on_queries),
            Mistake("not-causal", "Padding is hidden, the future is not.",
                    lambda ids, p: _decoder_mask(ids, p, shift=ids.size(1))),
            Mistake("padding-is-always-zero", "Right when the padding's id is 0. The id is an argument: use it.",
                    lambda ids, p: _decoder_mask(ids, 0)),
            Mistake("inverted", "True and False are exchanged: here True means \"may attend\".",
                    lambda ids, p: ~_decoder_mask(ids, p)),
        ),
    ),
    points=10,
    minutes=15,
    hidden=_decoder_mask_hidden,
)  # fmt: skip


# --- several sentences in one row


def _packed(
    ids: Tensor, end_id: int, pad_id: int, shift: int = 0, inclusive: bool = False, rows: bool = True
) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - (0 if inclusive else ends)
    real = ids != pad_id
    allowed = (sentence[:, :, None] == sentence[:, None, :]) & _earlier(ids.size(1), shift) & real[:, None, :]
    return allowed & real[:, :, None] if rows else allowed


def _all_earlier(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    real = ids != pad_id
    return _earlier(ids.size(1)) & real[:, None, :] & real[:, :, None]


def _first_end_only(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    """The first sentence, and all others as if they were one."""
    ends = ids == end_id
    return _packed(torch.where(ends & (ends.cumsum(dim=1) > 1), int(ids.max()) + 1, ids), end_id, pad_id)


def _cut_off_forgotten(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    """What comes after the last end is taken for padding."""
    closed = (ids == end_id).flip(1).cumsum(dim=1).flip(1) > 0
    return _packed(ids, end_id, pad_id) & closed[:, :, None]


def _padding_sees_itself(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    padding = (ids == pad_id)[:, None, :] & torch.eye(ids.size(1), dtype=torch.bool)
    return _packed(ids, end_id, pad_id) | padding


def _ends_hidden(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    words = ids != end_id
    return _packed(ids, end_id, pad_id) & words[:, None, :] & words[:, :, None]


def _row(parts: list[int], padding: int, cut: bool, ids: tuple[int, int], dice: torch.Generator) -> Tensor:
    """Sentences of so many words each, every one with its end, the last perhaps without; then padding."""
    end_id, pad_id = ids
    pieces = [torch.cat([_words(1, size, dice)[0], torch.tensor([end_id])]) for size in parts]
    if cut:
        pieces[-1] = pieces[-1][:-1]
    return torch.cat([*pieces, torch.full((padding,), pad_id)])


def _packed_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    first, second, third = (_number(1, 6, dice) for _ in range(3))
    usual, other = (2, 0), (0, 1)
    whole = _row([first, second + 1, third], 0, False, usual, dice)
    padded = _row([second + 1, first], 3, False, usual, dice)
    cut = _row([third, first + 1], 2, True, usual, dice)
    pair = torch.stack([_row([first, 7 - first], 2, False, other, dice), _row([10], 1, True, other, dice)])
    return [
        Case("three sentences that fill the row", (whole[None], *usual)),
        Case("two sentences and padding", (padded[None], *usual)),
        Case("a last sentence that was cut off, then padding", (cut[None], *usual)),
        Case("two rows, with other ids for end and padding", (pair, *other)),
        Case("a sentence of its end alone, between two others", (_row([first, 0, second], 0, False, usual, dice)[None],
                                                                 *usual)),
    ]  # fmt: skip


PACKED_MASK = Task(
    Exercise(
        "packed_mask",
        reference=_packed,
        cases=lambda: [
            (torch.tensor([[5, 6, 2, 7, 2, 0, 0], [8, 2, 9, 4, 3, 5, 0]]), 2, 0),
            (torch.tensor([[5, 6, 2, 7, 8, 2, 0]]), 2, 0),
            (torch.tensor([[5, 2, 2, 6, 2, 7]]), 2, 0),
            (torch.tensor([[7, 3, 0, 6, 2, 0, 1]]), 0, 1),
        ],
        mistakes=(
            Mistake("end-belongs-to-the-next", "The end token is counted with the sentence after it. It closes its own "
                    "sentence.", lambda ids, e, p: _packed(ids, e, p, inclusive=True)),
            Mistake("sentences-mixed", "A word sees the sentences before its own: this is a plain causal mask.",
                    _all_earlier),
            Mistake("first-end-only", "Only the first end token counts: all that comes behind it is taken for one "
                    "sentence. Every end token closes a sentence.", _first_end_only),
            Mistake("cut-off-forgotten", "What comes after the last end token sees nothing. A sentence that was cut "
                    "off is a sentence, too.", _cut_off_forgotten),
            Mistake("not-causal", "Words of one sentence see each other, the later ones, too: the causal rule is "
                    "missing.", lambda ids, e, p: _packed(ids, e, p, shift=ids.size(1))),
            Mistake("padding-rows", "Padding looks at the last sentence where that was cut off. Its rows were to be "
                    "False.", lambda ids, e, p: _packed(ids, e, p, rows=False)),
            Mistake("padding-sees-itself", "Padding sees itself. Here its rows stay False, unlike in task 2.",
                    _padding_sees_itself),
            Mistake("padding-forgotten", "Padding takes part like a word.",
                    lambda ids, e, p: _packed(ids, e, min(-1, int(ids.min()) - 1))),
            Mistake("ends-hidden", "The end tokens are left out. They are tokens of their sentences: they look and are "
                    "looked at.", _ends_hidden),
            Mistake("inverted", "True and False are exchanged: here True means \"may attend\".",
                    lambda ids, e, p: ~_packed(ids, e, p)),
        ),
    ),
    points=12,
    minutes=20,
    hidden=_packed_hidden,
)  # fmt: skip
