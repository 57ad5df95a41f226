"""The ``surefoot`` command: parses, calls, prints. No logic of its own."""
