"""Assignments: four of them, about three hours each; each task with its reference, its cases and the mistakes it knows.

Read the files in this order: telling, recorded, attention_tasks, mask_tasks, audit_tasks, band_tasks, stream_tasks,
head_tasks, position_tasks, layer_tasks, decoder_tasks, schedule_tasks, loss_tasks, batch_tasks, run_tasks,
search_tasks, table_tasks, bleu_tasks, inside_tasks, antecedent_tasks, assignment1, assignment2, assignment3,
assignment4.
"""
