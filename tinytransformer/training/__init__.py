"""Training: batches come in, a trained model goes out.

Read the files in this order: loss, schedule, checkpoints, devices, interrupts, loop, recipe, recipes, preparing,
language_model, processes.
"""
