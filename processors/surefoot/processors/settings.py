"""The one settings model: environment ``SUREFOOT_*``, file ``surefoot.toml``, command-line flags override both.

Rule: a process never reads ``os.environ`` for a Surefoot setting; it takes a ``Settings``. Child processes of
``surefoot serve`` get the same settings through their environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import platformdirs
from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)


class Settings(BaseSettings):
    """Everything that can be set. Durations are seconds, sizes are bytes."""

    model_config = SettingsConfigDict(env_prefix="SUREFOOT_", toml_file="surefoot.toml", extra="forbid", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("surefoot")),
        description="Folder that holds lake/, spool/, slos/ and status/.",
    )
    lake: Path | None = Field(default=None, description="Folder of the Delta tables; default: lake/ in home.")
    host: str = Field(
        default="127.0.0.1", description="Address the collector listens on; beyond loopback it takes TLS and tokens."
    )
    host_web: str = Field(default="127.0.0.1", description="Address that metrics, page and API listen on.")
    port_grpc: int = Field(default=4317, ge=0, le=65535, description="OTLP/gRPC port; 0 = any free port.")
    port_http: int = Field(default=4318, ge=0, le=65535, description="OTLP/HTTP port; 0 = any free port.")
    port_web: int = Field(default=4380, ge=0, le=65535, description="Metrics, page and API port; 0 = any free port.")

    web_hosts: str = Field(
        default="", description="Host names, besides loopback ones, that the web port answers to; comma-separated."
    )

    tls_certificate: Path | None = Field(default=None, description="PEM file; the collector speaks TLS with it.")
    tls_key: Path | None = Field(default=None, description="PEM file with the certificate's private key.")
    tls_client_ca: Path | None = Field(
        default=None, description="PEM file with authorities; only clients that they signed may connect."
    )
    tokens: Path | None = Field(
        default=None, description="File of hashed bearer tokens; default: tokens in home, used if it is there at start."
    )
    insecure_open: bool = Field(
        default=False, description="Open the collector to the network without TLS or tokens all the same."
    )
    cors_origins: str = Field(
        default="", description="Origins whose web pages may send, comma-separated; * = all, nothing = none."
    )
    cors_headers: str = Field(
        default="", description="Request headers that such pages may set besides Content-Type and Authorization."
    )
    cors_max_age_seconds: int = Field(default=7200, ge=0, description="How long a browser may remember the answer.")

    max_request_bytes: int = Field(default=64 << 20, gt=0, description="Largest request after decompression.")
    max_attributes: int = Field(
        default=4096, gt=0, description="Attributes of one span, event, link, log record, data point or resource."
    )
    max_value_bytes: int = Field(
        default=16 << 20, gt=0, description="Length of one attribute's value or one log record's body."
    )
    max_nesting: int = Field(default=47, ge=0, le=47, description="Lists and maps inside each other in one value.")
    max_events: int = Field(default=4096, ge=0, description="Events of one span.")
    max_links: int = Field(default=4096, ge=0, description="Links of one span.")
    max_requests_per_second: float = Field(
        default=0.0, ge=0, description="Requests of one source, a second's worth at once; 0 = any number."
    )
    max_connections: int = Field(default=1024, gt=0, description="Connections at a time, for each transport.")
    max_concurrent_streams: int = Field(default=128, gt=0, description="gRPC calls at a time on one connection.")
    read_timeout_seconds: float = Field(default=30.0, gt=0, description="Time in which a request must arrive whole.")
    spool_on_network: bool = Field(
        default=False,
        description="Keep the spool on a network file system all the same; it may lose what it acknowledged.",
    )
    segment_bytes: int = Field(default=25 << 20, gt=0, description="A segment is sealed at this size ...")
    segment_seconds: float = Field(default=2.0, gt=0, description="... or at this age.")
    max_backlog_bytes: int = Field(
        default=2 << 30, gt=0, description="Bytes not yet in the lake beyond which requests are asked to come again."
    )

    settle_seconds: float = Field(
        default=900.0, gt=0, description="Time after the last sign of life of a trace until it is settled or abandoned."
    )
    jobs_interval_seconds: float = Field(default=5.0, gt=0, description="Pause between two cycles of the jobs process.")
    lookback_days: int = Field(default=8, gt=0, description="How far back the spans of a changed trace are looked for.")

    window_scale: float = Field(
        default=1.0,
        gt=0,
        description="Multiplies every SLO window and the minute that counts are kept in. For tests only: 1/60 turns "
        "the 1 h window into one minute while labels keep saying 1h.",
    )

    retention_days_contents: int = Field(default=7, gt=0, description="Message contents are kept this long.")
    retention_days_spans: int = Field(default=30, gt=0, description="Spans, logs and metric points are kept this long.")
    retention_days_runs: int = Field(default=400, gt=0, description="Runs, calls, verdicts, SLO minutes: this long.")
    vacuum_hours: float = Field(
        default=24.0, ge=0, description="Replaced files stay this long so that open readers finish ..."
    )
    replaced_bytes: int = Field(default=1 << 30, ge=0, description="... or until a table has more bytes of them ...")
    reader_seconds: float = Field(default=120.0, ge=0, description="... but never shorter than this.")
    max_lake_bytes: int | None = Field(
        default=None, gt=0, description="Disk budget of the lake; beyond it the oldest raw days go before their time."
    )

    @field_validator("home", "lake", "tls_certificate", "tls_key", "tls_client_ca", "tokens", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @property
    def lake_path(self) -> Path:
        """Folder of the Delta tables."""
        return self.lake if self.lake is not None else self.home / "lake"

    @property
    def spool_path(self) -> Path:
        """Folder of the collector's segments."""
        return self.home / "spool"

    @property
    def tokens_path(self) -> Path:
        """File of the hashed tokens."""
        return self.tokens if self.tokens is not None else self.home / "tokens"

    @property
    def slos_path(self) -> Path:
        """Folder of the OpenSLO files."""
        return self.home / "slos"

    @property
    def requests_path(self) -> Path:
        """Folder in which commands ask the process that holds the lease (see ``surefoot.processors.requests``)."""
        return self.home / "requests"

    @property
    def status_path(self) -> Path:
        """Folder in which each process publishes what it is doing (see ``surefoot.processors.status``)."""
        return self.home / "status"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then ``surefoot.toml`` in the working folder."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables for a child process."""
        values: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        return {f"SUREFOOT_{name.upper()}": str(value) for name, value in values.items()}
