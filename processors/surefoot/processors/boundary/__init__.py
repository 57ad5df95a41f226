"""Decide: a reliability profile and a boundary that was declared before it, to the mode that is allowed."""
