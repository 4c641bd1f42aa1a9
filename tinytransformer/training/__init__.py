"""Training: batches come in, a trained model goes out.

Read the files in this order: loss, schedule, checkpoints, devices, loop, recipe, language_model, processes.
"""
