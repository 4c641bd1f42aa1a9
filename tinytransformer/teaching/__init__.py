"""Teaching: a learner's function comes in, a verdict and a hint go out. Notebooks and graders share it.

Read the files in this order: verdicts, exercises, softmax_exercises, attention_exercises, mask_exercises,
reach_exercises, checks.
"""
