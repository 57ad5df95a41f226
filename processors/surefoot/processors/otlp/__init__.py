"""Decode: acknowledged requests in, Arrow tables out, vectorised."""

from surefoot.processors.otlp.decode import decode_logs, decode_metrics, decode_spans

__all__ = ["decode_logs", "decode_metrics", "decode_spans"]
