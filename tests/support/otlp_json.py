"""Canonical JSON of a segment back to protobuf, with the official library and not with the code under test."""

from __future__ import annotations

import base64
from typing import Any

import orjson
from google.protobuf import json_format
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from surefoot.collector.segment import Encoding, Record

_IDS = ("traceId", "spanId", "parentSpanId")
_OPEN: dict[str, Any] = {"arrayValue": AnyValue, "kvlistValue": KeyValue}


def message_of(record: Record, kind: Any) -> Any:
    """The request that a record holds."""
    if record.encoding is Encoding.PROTOBUF:
        return kind.FromString(record.body)
    return json_format.ParseDict(_official(orjson.loads(record.body)), kind())


def _official(content: Any) -> Any:
    if isinstance(content, list):
        return [_official(item) for item in content]
    if not isinstance(content, dict):
        return content
    return {key: _field(key, value) for key, value in content.items()}


def _field(key: str, value: Any) -> Any:
    if key in _IDS:
        return base64.b64encode(bytes.fromhex(value)).decode()
    if key in _OPEN:
        return {
            "values": [
                json_format.MessageToDict(_OPEN[key].FromString(base64.b64decode(text))) for text in value["values"]
            ]
        }
    return _official(value)
