"""``python -m surefoot.collector``: flags to Config, errors to sentences and exit codes."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from surefoot.collector.server import Config, serve
from surefoot.errors import SurefootError


def main() -> int:
    """Run a collector; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot collector: %(levelname)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m surefoot.collector", description="Receive OTLP into a spool.")
    parser.add_argument("--spool", type=Path, required=True, help="folder in which segments wait for the writer")
    parser.add_argument("--status", type=Path, help="folder in which collector.json is published every second")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port-grpc", type=int, help="OTLP/gRPC port (4317), 0 for any free one")
    parser.add_argument("--port-http", type=int, help="OTLP/HTTP port (4318), 0 for any free one")
    parser.add_argument("--max-request-bytes", type=int, help="largest request after decompression (64 MiB)")
    parser.add_argument("--segment-bytes", type=int, help="a segment is sealed at this size (25 MiB) ...")
    parser.add_argument("--segment-seconds", type=float, help="... or at this age (2)")
    parser.add_argument("--max-backlog-bytes", type=int, help="refuse requests while more than this waits (2 GiB)")
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    try:
        serve(Config(**given))
    except SurefootError as error:
        logging.getLogger("surefoot.collector").error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
