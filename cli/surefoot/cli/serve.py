"""``surefoot serve``: the collector, the writer, the jobs and the web process under one supervisor."""

from __future__ import annotations

import json
import logging
import sys
from functools import partial
from pathlib import Path

import typer

from surefoot.cli.config import load
from surefoot.cli.output import console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(
    home: Path | None = typer.Option(None, help="Folder for lake, spool, slos and status."),
    host: str | None = typer.Option(None, help="Address the collector listens on; loopback by default."),
    port_grpc: int | None = typer.Option(None, help="OTLP/gRPC port; 0 = any free port. Default 4317."),
    port_http: int | None = typer.Option(None, help="OTLP/HTTP port; 0 = any free port. Default 4318."),
    port_web: int | None = typer.Option(None, help="Metrics, page and API port; 0 = any free port. Default 4380."),
    tls_certificate: Path | None = typer.Option(None, help="PEM file: the collector speaks TLS with it."),
    tls_key: Path | None = typer.Option(None, help="PEM file with the certificate's private key."),
    insecure_open: bool | None = typer.Option(
        None, "--insecure-open", help="Open the collector to the network without TLS or tokens all the same."
    ),
    ready_json: bool = typer.Option(False, "--ready-json", help="Print one JSON line with the addresses once ready."),
) -> None:
    """Receive OTLP, keep it, derive runs, judge SLOs, show them. Stops on Ctrl-C or SIGTERM."""
    from surefoot.cli.programs import programs
    from surefoot.cli.supervisor import Supervisor, stop_on_signals
    from surefoot.processors import status

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot: %(levelname)s %(message)s")
    settings = load(
        home=home,
        host=host,
        port_grpc=port_grpc,
        port_http=port_http,
        port_web=port_web,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        insecure_open=insecure_open,
    )
    settings.slos_path.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(programs(settings), partial(status.publish, settings.status_path, "supervisor"))
    with stop_on_signals(supervisor):
        ready = supervisor.start()
        if ready_json:
            typer.echo(json.dumps({key: ready[key] for key in ("grpc", "http", "web")}))
        else:
            _greet(ready["grpc"], ready["http"], ready["web"], settings.slos_path)
        try:
            supervisor.watch()
        finally:
            supervisor.stop()


def _greet(grpc: str, http: str, web: str, slos: Path) -> None:
    out = console()
    out.print(f"OTLP/gRPC   {grpc}")
    out.print(f"OTLP/HTTP   {http}")
    out.print(f"page        [link={web}]{web}[/link]   metrics {web}/metrics")
    out.print(f"SLO files   {slos}")
    where = "" if http == "http://127.0.0.1:4318" else f"OTEL_EXPORTER_OTLP_ENDPOINT={http} "  # where agents send to
    out.print(f"Run an agent: {where}surefoot run python my_agent.py      Stop: Ctrl-C", soft_wrap=True)
