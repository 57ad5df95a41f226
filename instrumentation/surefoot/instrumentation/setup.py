"""Puts the parts together, for ``surefoot run`` and for ``init``: pipeline, native emitters, the end of the program."""

from __future__ import annotations

import os
from dataclasses import replace

from surefoot.instrumentation import exit as at_exit
from surefoot.instrumentation import native, pipeline, semconv
from surefoot.instrumentation.redaction import BUILT_IN, Redact, Redaction

_PER_SIGNAL = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")


def set_up(
    *,
    resource_attributes: dict[str, str] | None = None,
    redaction: Redaction | None = BUILT_IN,
    auto_instrumentation_version: str | None = None,
) -> bool:
    """Set everything up; False if that was done before. Raises PipelineError (see ``pipeline.start``)."""
    if pipeline.current() is not None:
        return False
    started = pipeline.start(
        resource_attributes=resource_attributes,
        redaction=redaction,
        auto_instrumentation_version=auto_instrumentation_version,
    )
    at_exit.install(started)
    native.switch_on_when_imported()
    return True


def init(
    *,
    service_name: str | None,
    environment: str | None,
    endpoint: str | None,
    capture_content: bool | None,
    redact: Redaction | Redact | bool,
) -> None:
    """See ``surefoot.instrumentation.init``. Arguments are explicit, so they win over the environment."""
    if pipeline.current() is not None:
        given = (service_name, environment, endpoint, capture_content)
        if any(value is not None for value in given) or redact is not True:
            pipeline.log.warning(
                "Surefoot is set up already, by surefoot run or an earlier init(): this init() changes nothing."
            )
        return
    if endpoint is not None:
        os.environ[pipeline.ENDPOINT] = endpoint
        for variable in _PER_SIGNAL:
            os.environ.pop(variable, None)
    if capture_content is not None:
        os.environ[semconv.CAPTURE_CONTENT_VARIABLE] = "SPAN_AND_EVENT" if capture_content else "NO_CONTENT"
    named = {semconv.SERVICE_NAME: service_name, semconv.ENVIRONMENT: environment}
    attributes = {key: value for key, value in named.items() if value is not None}
    set_up(resource_attributes=attributes, redaction=_redaction(redact))


def _redaction(wanted: Redaction | Redact | bool) -> Redaction | None:
    if isinstance(wanted, bool):
        return BUILT_IN if wanted else None
    return wanted if isinstance(wanted, Redaction) else replace(BUILT_IN, call=wanted)
