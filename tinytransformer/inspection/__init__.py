"""Looking inside: attention records, or plain arrays and tokens, come in; figures go out. No model is imported here.

Read the files in this order: plots, search_plots, head_plots, road_plots, tree_plots, table_plots, run_plots,
practice_plots. Then comes the room within, `explorer`.
"""
