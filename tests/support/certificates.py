"""A certificate of one's own for loopback, made by openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    chain: Path
    key: Path


def self_signed(folder: Path, name: str = "server") -> Pair:
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(pair.key), "-out", str(pair.chain)], check=True, capture_output=True)
    return pair
