"""Servers under load, each started as its users start it, on free loopback ports, in a folder of its own.

Peers other than rotel live in environments of their own under ``build/peers``, made with pip when first asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "build" / "peers"
Process = subprocess.Popen[str]


@dataclass
class Server:
    """One server: where it takes spans, its processes by name, and its folder."""

    folder: Path
    grpc: str = ""
    http: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)

    def resident(self) -> dict[str, int]:
        """Resident memory of each process in MB, now."""
        return {name: _resident(process.pid) for name, process in self.processes.items()}


def _resident(pid: int) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    return 0


def free_port() -> int:
    """A loopback port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Ours:
    """Collector, and on demand writer and jobs, over one home; each can be killed and started again."""

    def __init__(self, folder: Path, *, segment_bytes: int = 25 << 20) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.server = Server(folder)
        self._ports = (free_port(), free_port())
        self._segment_bytes = segment_bytes

    @property
    def spool(self) -> Path:
        """The collector's folder."""
        return self.server.folder / "spool"

    @property
    def lake(self) -> Path:
        """The tables' folder."""
        return self.server.folder / "lake"

    def start(self, name: str) -> None:
        """Start ``collector``, ``writer`` or ``jobs`` and wait until it says that it is ready."""
        command = [sys.executable, "-m", f"surefoot.{'collector' if name == 'collector' else f'processors.{name}'}"]
        if name == "collector":
            grpc, http = map(str, self._ports)
            command += ["--spool", str(self.spool), "--port-grpc", grpc, "--port-http", http]
            command += ["--segment-bytes", str(self._segment_bytes), "--status", str(self.server.folder / "status")]
        environment = {**_environment(), "SUREFOOT_HOME": str(self.server.folder)}
        process = _spawn(command, environment, self.server.folder / f"{name}.log")
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready:
            raise RuntimeError((self.server.folder / f"{name}.log").read_text())
        self.server.processes[name] = process
        if name == "collector":
            told = json.loads(ready)
            self.server.grpc, self.server.http = told["grpc"], f"{told['http']}/v1/traces"

    def kill(self, name: str) -> None:
        """``kill -9``."""
        process = self.server.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """SIGTERM, and wait."""
        _stop(self.server.processes.pop(name))

    def drained(self) -> bool:
        """Whether every segment is in the lake."""
        return not any(any(os.scandir(self.spool / folder)) for folder in ("open", "sealed"))


@contextlib.contextmanager
def ours(folder: Path, *names: str, segment_bytes: int = 25 << 20) -> Iterator[Ours]:
    """The named processes of Surefoot."""
    made = Ours(folder, segment_bytes=segment_bytes)
    try:
        for name in names:
            made.start(name)
        yield made
    finally:
        for name in list(made.server.processes):
            made.stop(name)


@contextlib.contextmanager
def rotel(folder: Path) -> Iterator[Server]:
    """Rotel's agent from its wheel; what it takes, it drops."""
    grpc, http = (f"127.0.0.1:{free_port()}" for _ in range(2))
    command = [str(files("rotel") / "rotel-agent"), "start", "--exporter", "blackhole"]
    command += ["--otlp-grpc-endpoint", grpc, "--otlp-http-endpoint", http]
    command += ["--pid-file", str(folder / "rotel.pid"), "--log-file", str(folder / "rotel.log")]
    server = Server(folder, grpc, f"http://{http}/v1/traces")
    with _running(server, "rotel", command, {**_environment(), "ROTEL_TELEMETRY": "false"}, http):
        yield server


@contextlib.contextmanager
def phoenix(folder: Path) -> Iterator[Server]:
    """Arize Phoenix over SQLite."""
    program = _installed("arize-phoenix") / "bin" / "phoenix"
    grpc, http = free_port(), free_port()
    environment = {
        **_environment(),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(http),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    server = Server(folder, f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}/v1/traces")
    with _running(server, "phoenix", [str(program), "serve"], environment, f"127.0.0.1:{http}"):
        yield server


@contextlib.contextmanager
def mlflow(folder: Path) -> Iterator[Server]:
    """MLflow's tracking server over SQLite, one worker."""
    program = _installed("mlflow") / "bin" / "mlflow"
    port = free_port()
    command = [str(program), "server", "--workers", "1", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    server = Server(folder, "", f"http://127.0.0.1:{port}/v1/traces", {"x-mlflow-experiment-id": "0"})
    with _running(
        server, "mlflow", command, {**_environment(), "MLFLOW_DISABLE_TELEMETRY": "true"}, f"127.0.0.1:{port}"
    ):
        yield server


def rows(database: Path, table: str = "spans") -> int:
    """How many rows a peer's SQLite file holds; 0 before there is one."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as con:
            return int(con.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def _installed(package: str) -> Path:
    place = PEERS / package
    if not (place / "bin" / "python").exists():
        venv.create(place, with_pip=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", package], check=True)
    return place


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}


def _spawn(command: list[str], environment: Mapping[str, str], log: Path) -> Process:
    with log.open("a") as out:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=out, text=True, env=dict(environment))


@contextlib.contextmanager
def _running(
    server: Server, name: str, command: list[str], environment: Mapping[str, str], address: str
) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    with (server.folder / f"{name}.out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, text=True, env=dict(environment), cwd=server.folder)
    server.processes[name] = process
    try:
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start:\n{(server.folder / f'{name}.out').read_text()[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        _stop(process)


def _stop(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
