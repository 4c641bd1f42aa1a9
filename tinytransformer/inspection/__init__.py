"""Looking inside: attention records, or plain arrays and tokens, come in; figures go out. No model is imported here.

First come the static figures of `plots`, then the room within, `explorer`.
"""
