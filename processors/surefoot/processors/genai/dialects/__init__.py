"""Dialects: how each instrumentation writes down what the conventions describe.

A dialect is data plus at most a few value functions, one file each. Recognition looks at scope names and marker
attributes before it trusts any operation name, in the order of ``DIALECTS``: a specific dialect stands before the one
it is built on. Adding one is a file here, a capture under tests and a row in the docs.
"""

from __future__ import annotations

from typing import Final

from surefoot.processors.genai.dialects import otel_genai, pydantic_ai
from surefoot.processors.genai.dialects.dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (pydantic_ai.DIALECT, otel_genai.DIALECT)

__all__ = ["DIALECTS", "Dialect"]
