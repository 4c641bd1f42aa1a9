"""Looking inside: attention records, or plain arrays and tokens, come in; figures go out. No model is imported here."""
