"""What senders are answered: OTLP responses and ``google.rpc.Status``, for both transports.

Rule: what a sender may send again is UNAVAILABLE, or RESOURCE_EXHAUSTED with RetryInfo where it alone sends too often,
and nothing else: exporters drop for good whatever they are told in INTERNAL or UNKNOWN.
"""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.code_pb2 import INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAUTHENTICATED, UNAVAILABLE
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from surefoot.collector.errors import (
    BackloggedError,
    BadRequestError,
    IncompleteError,
    RefusedError,
    RetryableError,
    SlowError,
    ThrottledError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from surefoot.collector.receiver import Receipt
from surefoot.collector.segment import Signal
from surefoot.collector.validate import REJECTED_FIELD, RESPONSES

_LONGEST_MESSAGE = 1000  # characters: far below the 4 MiB that a response may have
_LONGEST_REFUSAL = 300  # characters: it stands in a gRPC trailer three times, which may have 8 KiB in all

_CODES: dict[type[RefusedError], int] = {
    BadRequestError: INVALID_ARGUMENT,
    IncompleteError: INVALID_ARGUMENT,
    TooLargeError: RESOURCE_EXHAUSTED,
    UnauthenticatedError: UNAUTHENTICATED,
    UnavailableError: UNAVAILABLE,
    BackloggedError: UNAVAILABLE,
    SlowError: UNAVAILABLE,
    ThrottledError: RESOURCE_EXHAUSTED,
}


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


def refusal(error: RefusedError) -> Status:
    """What a sender is told: with details about the body, or about when to come again."""
    status = failure(_CODES[type(error)], str(error))
    if isinstance(error, BadRequestError):
        violation = BadRequest.FieldViolation(field="body", description=status.message)
        status.details.append(_packed(BadRequest(field_violations=[violation])))
    if isinstance(error, RetryableError):
        status.details.append(_packed(retry_info(error.retry_seconds)))
    return status


def retry_info(seconds: float) -> RetryInfo:
    """When to come again."""
    delay = Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    return RetryInfo(retry_delay=delay)


def to_json(message: Message) -> bytes:
    """A response in OTLP/JSON: ``{}`` for a full success."""
    return MessageToJson(message, indent=None).encode()


def _packed(detail: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(detail)
    return packed
