"""Teaching: a learner's function comes in, a verdict and a hint go out. Notebooks and graders share it.

Read the files in this order: verdicts, exercises, self_test, recurrence_exercises, fading_exercises, softmax_exercises,
attention_exercises, mask_exercises, reach_exercises, head_exercises, head_measure_exercises, position_exercises,
rotary_exercises, layer_exercises, model_exercises, batch_exercises, loss_exercises, search_exercises, beam_exercises,
bleu_exercises, role_exercises, alignment_exercises, silence_exercises, bpe_exercises, corpus_exercises,
count_exercises, evidence_exercises, family_exercises, practice_exercises, checks.
"""
