"""A support desk run by a small agent: what ``surefoot demo`` watches.

Everything is real except the language model, which is scripted: the tools work on a real SQLite database, failures come
from the tools, graders compare the database with what the ticket asked for. The agent uses the public SDK and nothing
else of Surefoot, so it doubles as an example.
"""
