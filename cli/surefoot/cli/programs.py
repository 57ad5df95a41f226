"""The four programs of ``surefoot serve``: how each is started from the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from surefoot.cli.supervisor import Program
from surefoot.processors.settings import Settings


def programs(settings: Settings) -> list[Program]:
    """Collector, writer, jobs and web, in the order in which they start and stop."""
    environment = {**os.environ, **settings.to_environment(), "PYTHONUNBUFFERED": "1"}
    # The servers are not agents: instrumentation that was meant for the agent must not load into them.
    environment.pop("OTEL_PYTHON_DISTRO", None)
    environment.pop("OTEL_PYTHON_CONFIGURATOR", None)

    def collector(ready: Mapping[str, Any]) -> list[str]:
        grpc = _port(f"grpc://{ready['grpc']}") if "grpc" in ready else settings.port_grpc
        http = _port(ready["http"]) if "http" in ready else settings.port_http
        return [
            *("-m", "surefoot.collector"),
            *("--spool", str(settings.spool_path)),
            *("--status", str(settings.status_path)),
            *("--host", settings.host),
            *("--port-grpc", str(grpc)),
            *("--port-http", str(http)),
            *("--max-request-bytes", str(settings.max_request_bytes)),
            *("--segment-bytes", str(settings.segment_bytes)),
            *("--segment-seconds", str(settings.segment_seconds)),
            *("--max-backlog-bytes", str(settings.max_backlog_bytes)),
        ]

    def writer(_ready: Mapping[str, Any]) -> list[str]:
        return ["-m", "surefoot.processors.writer"]

    def jobs(_ready: Mapping[str, Any]) -> list[str]:
        return ["-m", "surefoot.processors.jobs"]

    web_environment = dict(environment)

    def web(ready: Mapping[str, Any]) -> list[str]:
        if "web" in ready:
            web_environment["SUREFOOT_PORT_WEB"] = str(_port(ready["web"]))
        return ["-m", "surefoot.dashboards.web"]

    return [
        Program("collector", collector, environment),
        Program("writer", writer, environment),
        Program("jobs", jobs, environment),
        Program("web", web, web_environment),
    ]


def _port(url: str) -> int:
    port = urlsplit(url).port
    if port is None:
        raise ValueError(f"A program reported an address without a port: {url}")
    return port
