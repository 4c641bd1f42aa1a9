"""What a learner calls: ``checks.check_entropy(entropy)`` prints a verdict with a hint, and returns it.

`same` and `holds` print the verdicts of the lessons themselves. Graders take `EXERCISES` and `judge`, which prints
nothing.
"""

from collections.abc import Callable

from tinytransformer.teaching.attention_exercises import ADDITIVE, BY_HAND, SELF_ATTENTION
from tinytransformer.teaching.exercises import Exercise, judge
from tinytransformer.teaching.mask_exercises import CHUNK, MASKED_SOFTMAX, TRANSLATION
from tinytransformer.teaching.reach_exercises import INFLUENCE, REACH
from tinytransformer.teaching.softmax_exercises import ENTROPY, JACOBIAN, SOFTMAX
from tinytransformer.teaching.verdicts import Verdict, holds, report, same

EXERCISES: dict[str, Exercise] = {}  # all of them, by name, in the order of the lessons


def _check(exercise: Exercise) -> Callable[[Callable], Verdict]:
    """The learner's side of an exercise: judge and print."""

    def check(function: Callable) -> Verdict:
        return report(judge(exercise, function))

    check.__name__ = check.__qualname__ = f"check_{exercise.name}"
    check.__doc__ = f"Say whether your `{exercise.name}` is right and, if it is not, what is wrong with it."
    EXERCISES[exercise.name] = exercise
    return check


# Lesson 02
check_attend_by_hand = _check(BY_HAND)
check_my_softmax = _check(SOFTMAX)
check_self_attention = _check(SELF_ATTENTION)
check_entropy = _check(ENTROPY)
check_additive_attention = _check(ADDITIVE)
check_softmax_jacobian = _check(JACOBIAN)
# Lesson 03
check_chunk_mask = _check(CHUNK)
check_translation_masks = _check(TRANSLATION)
check_masked_softmax = _check(MASKED_SOFTMAX)
check_reach_after = _check(REACH)
check_influence = _check(INFLUENCE)

__all__ = ["EXERCISES", "Verdict", "holds", "judge", "same", *(f"check_{name}" for name in EXERCISES)]
