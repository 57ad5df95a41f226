"""What ``surefoot doctor`` finds out: what would be recorded in this environment, what not and why, and where it goes.

It only looks: instrumentors are imported, none is activated, and the one request that is sent is an empty export.
"""

from __future__ import annotations

import importlib.metadata
import logging
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal

from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from surefoot.instrumentation import choosing, content, distro, native, pipeline
from surefoot.instrumentation.delivery import Export

State = Literal["active", "skipped", "broken"]
PROBE_SECONDS: Final = 3.0
_PACKAGES: Final = (
    "surefoot",
    "opentelemetry-api",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-proto-grpc",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One instrumentor, library or distro: ``state`` is what would become of it, ``reason`` why, in words."""

    name: str
    package: str
    state: State
    reason: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where telemetry goes, and what came back when an empty export was sent there."""

    url: str
    protocol: str
    answers: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found. ``versions``: package -> version, without packages that are not installed."""

    python: str
    versions: dict[str, str]
    distros: list[Finding]
    configurators: list[Finding]
    instrumentors: list[Finding]
    native: list[Finding]
    capture_on_spans: bool
    capture_on_events: bool
    endpoint: Endpoint


def diagnose(environ: Mapping[str, str], endpoint: str | None = None) -> Diagnosis:
    """Look at this environment. ``endpoint`` is an OTLP base address to try instead of the one from ``environ``."""
    settings = dict(environ)
    pipeline.set_defaults(settings)
    capture = content.capture_mode(environ)
    return Diagnosis(
        python=platform.python_version(),
        versions=_versions(),
        distros=_entries(environ, distro.DISTRO_GROUP, distro.DISTRO_VARIABLE),
        configurators=_entries(environ, distro.CONFIGURATOR_GROUP, distro.CONFIGURATOR_VARIABLE),
        instrumentors=_instrumentors(environ),
        native=[_native(emitter) for emitter in native.NATIVE],
        capture_on_spans=capture.spans,
        capture_on_events=capture.events,
        endpoint=_endpoint(settings, endpoint),
    )


def _versions() -> dict[str, str]:
    found = {package: _version(package) for package in _PACKAGES}
    return {package: version for package, version in found.items() if version is not None}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def _entries(environ: Mapping[str, str], group: str, variable: str) -> list[Finding]:
    """The distros or configurators, as ``opentelemetry-instrument`` would treat them; ``surefoot run`` names ours."""
    why_not_ours = distro.why_inert(environ, variable)
    named = environ.get(variable)
    used = distro.NAME if why_not_ours is None else named or next((e.name for e in distro.others(group)), None)
    findings = [_entry(entry, used, named, why_not_ours, variable) for entry in entry_points(group=group)]
    if named and named not in {finding.name for finding in findings}:
        findings.append(Finding(named, "not installed", "broken", f"{variable} names it"))
    return findings


def _entry(entry: EntryPoint, used: str | None, named: str | None, why_not_ours: str | None, variable: str) -> Finding:
    if entry.name == used:
        reason = f"{variable} names it" if named else "the only one" if why_not_ours is None else "the first found"
        return Finding(entry.name, _package(entry), "active", reason)
    if entry.name == distro.NAME and why_not_ours is not None:
        return Finding(entry.name, _package(entry), "skipped", f"{why_not_ours}; surefoot run would use it")
    return Finding(entry.name, _package(entry), "skipped", f"{used} is used")


def _instrumentors(environ: Mapping[str, str]) -> list[Finding]:
    entries = entry_points(group=choosing.GROUP)
    try:
        choices = choosing.choose(entries, environ)
    except ValueError as error:
        return [Finding(choosing.VARIABLE, "", "broken", str(error)), *_instrumentors({})]
    return [_instrumentor(entry, environ, choices[choosing.key(entry)]) for entry in entries]


def _instrumentor(entry: EntryPoint, environ: Mapping[str, str], choice: choosing.Choice) -> Finding:
    disabled = [name.strip() for name in environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")]
    if entry.name in disabled or "*" in disabled:
        return Finding(entry.name, _package(entry), "skipped", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names it")
    if choice.why_off is not None:
        return Finding(entry.name, _package(entry), "skipped", choice.why_off)
    if entry.dist is not None and (conflict := get_dist_dependency_conflicts(entry.dist)) is not None:
        return Finding(entry.name, _package(entry), "skipped", str(conflict))
    try:
        entry.load()
    except ModuleNotFoundError as error:
        return Finding(entry.name, _package(entry), "skipped", f"its library is not installed: {error.name}")
    except Exception as error:  # noqa: BLE001 - finding out what crashes is the purpose
        return Finding(entry.name, _package(entry), "broken", f"{type(error).__name__}: {error}")
    return Finding(entry.name, _package(entry), "active", "instruments its library when the program starts")


def _native(emitter: native.NativeEmitter) -> Finding:
    version = _version(emitter.distribution)
    if version is None:
        return Finding(emitter.module, emitter.distribution, "skipped", "not installed")
    how = "emits by itself" if emitter.switch_on is None else "switched on when the program imports it"
    return Finding(emitter.module, f"{emitter.distribution} {version}", "active", how)


def _endpoint(settings: Mapping[str, str], given: str | None) -> Endpoint:
    protocol = settings.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or settings[pipeline.PROTOCOL]
    own = None if given else settings.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = given or settings.get(pipeline.ENDPOINT) or "http://127.0.0.1:4318"
    url = own or (f"{base.rstrip('/')}/v1/traces" if protocol == "http/protobuf" else base)
    try:
        exporter = _exporter(protocol, url)
    except (ImportError, ValueError) as error:
        return Endpoint(url, protocol, answers=False, detail=str(error))
    try:
        trouble = _probe(exporter)
    finally:
        exporter.shutdown()
    return Endpoint(url, protocol, answers=trouble is None, detail=trouble or "accepted an empty export")


def _exporter(protocol: str, url: str) -> SpanExporter:
    arguments: dict[str, Any] = {"endpoint": url, "timeout": PROBE_SECONDS}
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(**arguments)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(**arguments)
    raise ValueError(f"the protocol {protocol!r} is not supported; use http/protobuf or grpc")


def _probe(exporter: SpanExporter) -> str | None:
    """Send an empty export as the pipeline would; None if it was accepted, else the reason. Its log stays silent."""
    send: Export[Any] = Export(exporter, exporter.export, SpanExportResult.SUCCESS)
    loggers = [logging.getLogger(kind.__module__) for kind in type(exporter).__mro__]
    for logger in loggers:
        logger.addFilter(_nothing)
    try:
        return send([])
    finally:
        for logger in loggers:
            logger.removeFilter(_nothing)


def _nothing(_record: logging.LogRecord) -> bool:
    return False
