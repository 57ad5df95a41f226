"""How to run a collector: every setting, its default, and what it means.

The flags of ``python -m surefoot.collector`` are made from these fields, and ``surefoot serve`` passes on every field
whose name is also a setting: one list, so that flag, environment variable and field cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from surefoot.collector.limits import DEEPEST, Limits


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes are bytes, times seconds; port 0 means any free port."""

    spool: Annotated[Path, "folder in which segments wait for the writer"]
    status: Annotated[Path | None, "folder in which collector.json is published every second"] = None
    host: Annotated[str, "address to listen on; beyond loopback it takes TLS and tokens"] = "127.0.0.1"
    port_grpc: Annotated[int, "OTLP/gRPC port, 0 for any free one"] = 4317
    port_http: Annotated[int, "OTLP/HTTP port, 0 for any free one"] = 4318

    tls_certificate: Annotated[Path | None, "PEM file with the certificate and its chain"] = None
    tls_key: Annotated[Path | None, "PEM file with the certificate's private key"] = None
    tls_client_ca: Annotated[Path | None, "PEM file with authorities; only clients that they signed may connect"] = None
    tokens: Annotated[Path | None, "file of hashed bearer tokens; a sender must show one of them"] = None
    insecure_open: Annotated[bool, "listen beyond loopback without TLS or without tokens all the same"] = False

    cors_origins: Annotated[str, "origins whose web pages may send, comma-separated; * for all, nothing for none"] = ""
    cors_headers: Annotated[str, "request headers that such pages may set besides Content-Type and Authorization"] = ""
    cors_max_age_seconds: Annotated[int, "how long a browser may remember the answer"] = 7200

    max_request_bytes: Annotated[int, "largest request after decompression"] = 64 << 20
    max_attributes: Annotated[int, "attributes of one span, event, link, log record, data point, resource"] = 4096
    max_value_bytes: Annotated[int, "length of one attribute's value or one log record's body"] = 16 << 20
    max_nesting: Annotated[int, "lists and maps inside each other in one value"] = DEEPEST
    max_events: Annotated[int, "events of one span"] = 4096
    max_links: Annotated[int, "links of one span"] = 4096
    max_requests_per_second: Annotated[float, "requests of one source, a second's worth at once; 0 = any number"] = 0.0
    max_connections: Annotated[int, "connections at a time, for each transport"] = 1024
    max_concurrent_streams: Annotated[int, "gRPC calls at a time on one connection; more wait"] = 128
    read_timeout_seconds: Annotated[float, "time in which a request must arrive whole"] = 30.0

    segment_bytes: Annotated[int, "a segment is sealed at this size ..."] = 25 << 20
    segment_seconds: Annotated[float, "... or at this age"] = 2.0
    max_backlog_bytes: Annotated[int, "refuse requests while more than this waits for the lake"] = 2 << 30
    spool_on_network: Annotated[bool, "keep the spool on a network file system all the same"] = False

    @property
    def limits(self) -> Limits:
        """What one span, log record or data point may be."""
        return Limits(
            attributes=self.max_attributes,
            value_bytes=self.max_value_bytes,
            nesting=self.max_nesting,
            events=self.max_events,
            links=self.max_links,
        )
