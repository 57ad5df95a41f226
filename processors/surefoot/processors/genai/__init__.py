"""Understand: dialects to canonical columns; whole traces to runs, calls and verdicts."""
