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
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--status", type=Path)
    parser.add_argument("--host")
    for name in ("port-grpc", "port-http", "max-request-bytes", "segment-bytes", "max-backlog-bytes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--segment-seconds", type=float)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    try:
        serve(Config(**given))
    except SurefootError as error:
        logging.getLogger("surefoot.collector").error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
