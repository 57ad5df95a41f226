"""The four programs of ``surefoot serve``: how each is started from the settings."""

from __future__ import annotations

import dataclasses
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
        return ["-m", "surefoot.collector", *_collector_flags(settings, port_grpc=grpc, port_http=http)]

    def writer(_ready: Mapping[str, Any]) -> list[str]:
        return ["-m", "surefoot.processors.writer"]

    def jobs(_ready: Mapping[str, Any]) -> list[str]:
        return ["-m", "surefoot.processors.jobs"]

    # The page asks for no password: it leaves loopback only by a setting of its own.
    web_environment = {**environment, "SUREFOOT_HOST": settings.host_web}

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


def _collector_flags(settings: Settings, **ports: int) -> list[str]:
    """A flag for each field of the collector's Config that is a setting too, and for its folders."""
    from surefoot.collector.config import Config

    values = {
        **{field.name: getattr(settings, field.name, None) for field in dataclasses.fields(Config)},
        "spool": settings.spool_path,
        "status": settings.status_path,
        "tokens": settings.tokens_path if settings.tokens is not None or settings.tokens_path.exists() else None,
        **ports,
    }
    flags: list[str] = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            flags.append(f"--{flag}={value}")  # in one word: a value may begin with a dash
    return flags


def _port(url: str) -> int:
    port = urlsplit(url).port
    if port is None:
        raise ValueError(f"A program reported an address without a port: {url}")
    return port
