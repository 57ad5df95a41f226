"""What senders are answered: OTLP responses and ``google.rpc.Status``, for both transports.

Rule: what a sender may send again is UNAVAILABLE and nothing else, because exporters drop for good whatever they are
told in INTERNAL, UNKNOWN or RESOURCE_EXHAUSTED.
"""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.code_pb2 import INVALID_ARGUMENT, UNAVAILABLE
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from surefoot.collector.receiver import Receipt
from surefoot.collector.segment import Signal
from surefoot.collector.validate import REJECTED_FIELD, RESPONSES

_LONGEST_MESSAGE = 1000  # characters: far below the 4 MiB that a response may have
_LONGEST_REFUSAL = 300  # characters: it stands in a gRPC trailer three times, which may have 8 KiB in all


def success(signal: Signal, receipt: Receipt) -> Message:
    """The response to a request that was kept; ``partial_success`` is set only if something was rejected."""
    if not receipt.rejected:
        return RESPONSES[signal]()
    return RESPONSES[signal](
        partial_success={REJECTED_FIELD[signal]: receipt.rejected, "error_message": receipt.message[:_LONGEST_MESSAGE]}
    )


def failure(code: int, message: str) -> Status:
    """A refusal that says nothing beyond its code and message."""
    return Status(code=code, message=message[:_LONGEST_REFUSAL])


def bad_request(message: str) -> Status:
    """A request that must not be sent again."""
    status = failure(INVALID_ARGUMENT, message)
    violation = BadRequest.FieldViolation(field="body", description=status.message)
    status.details.append(_packed(BadRequest(field_violations=[violation])))
    return status


def unavailable(message: str, retry_seconds: float) -> Status:
    """A request that should be sent again after ``retry_seconds``."""
    status = failure(UNAVAILABLE, message)
    delay = Duration()
    delay.FromNanoseconds(int(retry_seconds * 1e9))
    status.details.append(_packed(RetryInfo(retry_delay=delay)))
    return status


def to_json(message: Message) -> bytes:
    """A response in OTLP/JSON: ``{}`` for a full success."""
    return MessageToJson(message, indent=None).encode()


def _packed(detail: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(detail)
    return packed
