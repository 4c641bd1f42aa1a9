"""What a learner calls: ``checks.check_entropy(entropy)`` prints a verdict with a hint, and returns it.

`same` and `holds` print the verdicts of the lessons themselves, `self_test` those of lesson 00's questions. Graders
take `EXERCISES` and `judge`, which prints nothing.
"""

from collections.abc import Callable

from tinytransformer.teaching.alignment_exercises import ERROR, LINKS
from tinytransformer.teaching.attention_exercises import ADDITIVE, BY_HAND, SELF_ATTENTION
from tinytransformer.teaching.batch_exercises import CUT, RATES, TEACHER
from tinytransformer.teaching.beam_exercises import BEAM, CACHE
from tinytransformer.teaching.bleu_exercises import AVERAGE, BLEU
from tinytransformer.teaching.bpe_exercises import COUNT_PAIRS, LEARN_BPE, MERGE_PAIR
from tinytransformer.teaching.corpus_exercises import BOOTSTRAP_WINS, CLEAN_PAIRS, UNKNOWN_SHARE
from tinytransformer.teaching.count_exercises import CROSSOVER, LAYERS, SHARE
from tinytransformer.teaching.evidence_exercises import CHANCE, F1_OF_LINES
from tinytransformer.teaching.exercises import Exercise, judge
from tinytransformer.teaching.fading_exercises import CLIP, SLOPES
from tinytransformer.teaching.family_exercises import CORRUPT, SHARED
from tinytransformer.teaching.head_exercises import HEAD_PARTS, LOOP, UNPACK
from tinytransformer.teaching.head_measure_exercises import APART, DISAGREEMENT, MULTIPLICATIONS
from tinytransformer.teaching.layer_exercises import DECODER, EMBED_AND_SCORE, LAYER_NORM
from tinytransformer.teaching.loss_exercises import ACCUMULATE, DROPOUT, LOSS
from tinytransformer.teaching.mask_exercises import CHUNK, MASKED_SOFTMAX, TRANSLATION
from tinytransformer.teaching.model_exercises import COUNT, GRADIENTS, SHAPES
from tinytransformer.teaching.position_exercises import EMBED, ROW, SHIFT, WAVELENGTHS
from tinytransformer.teaching.practice_exercises import HALVES, INT8, MERGE
from tinytransformer.teaching.reach_exercises import INFLUENCE, REACH
from tinytransformer.teaching.recurrence_exercises import LOOK, LSTM, READ
from tinytransformer.teaching.role_exercises import CHOICE, ROLES
from tinytransformer.teaching.rotary_exercises import BLIND, ROTATE
from tinytransformer.teaching.search_exercises import GREEDY, RERANK
from tinytransformer.teaching.self_test import self_test
from tinytransformer.teaching.silence_exercises import PARTS, SILENCE
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


# Lesson 01
check_read_to_the_end = _check(READ)
check_lstm_step = _check(LSTM)
check_slopes_over_distance = _check(SLOPES)
check_clip_gradients = _check(CLIP)
check_look_back = _check(LOOK)
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
# Lesson 04
check_multi_head_by_loop = _check(LOOP)
check_unpack_heads = _check(UNPACK)
check_head_parts = _check(HEAD_PARTS)
check_multiplications = _check(MULTIPLICATIONS)
check_disagreement = _check(DISAGREEMENT)
check_keeps_words_apart = _check(APART)
# Lesson 05
check_position_by_hand = _check(ROW)
check_wavelengths = _check(WAVELENGTHS)
check_embed = _check(EMBED)
check_shift_matrix = _check(SHIFT)
check_rotate = _check(ROTATE)
check_order_blind = _check(BLIND)
# Lesson 06
check_tensor_shapes = _check(SHAPES)
check_embed_and_score = _check(EMBED_AND_SCORE)
check_safe_layer_norm = _check(LAYER_NORM)
check_decoder_block = _check(DECODER)
check_count_parameters = _check(COUNT)
check_gradient_norms = _check(GRADIENTS)
# Lesson 07
check_teacher_pairs = _check(TEACHER)
check_learning_rates = _check(RATES)
check_cut_batches = _check(CUT)
check_my_dropout = _check(DROPOUT)
check_thrifty_loss = _check(LOSS)
check_accumulated_gradient = _check(ACCUMULATE)
# Lesson 08
check_greedy_search = _check(GREEDY)
check_rerank = _check(RERANK)
check_beam_best = _check(BEAM)
check_cached_step = _check(CACHE)
check_bleu_of = _check(BLEU)
check_average = _check(AVERAGE)
# Lesson 09
check_role_masks = _check(ROLES)
check_word_links = _check(LINKS)
check_alignment_error = _check(ERROR)
check_silenced_output = _check(SILENCE)
check_feature_parts = _check(PARTS)
check_choose_and_score = _check(CHOICE)
# Lesson 10
check_count_pairs = _check(COUNT_PAIRS)
check_merge_pair = _check(MERGE_PAIR)
check_learn_bpe = _check(LEARN_BPE)
check_unknown_share = _check(UNKNOWN_SHARE)
check_clean_pairs = _check(CLEAN_PAIRS)
check_bootstrap_wins = _check(BOOTSTRAP_WINS)
# Lesson 11
check_costs_more_from = _check(CROSSOVER)
check_layers_to_reach = _check(LAYERS)
check_share_of_peak = _check(SHARE)
check_f1_of_lines = _check(F1_OF_LINES)
check_chance_of_gap = _check(CHANCE)
# Lesson 12
check_corrupt = _check(CORRUPT)
check_shared_keys_attention = _check(SHARED)
check_merge_blocks = _check(MERGE)
check_int8_rows = _check(INT8)
check_marian_order = _check(HALVES)

__all__ = ["EXERCISES", "Verdict", "holds", "judge", "same", "self_test", *(f"check_{name}" for name in EXERCISES)]
