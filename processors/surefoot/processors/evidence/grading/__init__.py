"""Measure the graders: audit samples in, their error by task class and what it does to the numbers out."""
