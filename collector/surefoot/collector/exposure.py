"""Whether a collector may listen where it is told to: beyond loopback only with TLS and tokens.

Rule: nobody opens it by accident. What is missing is named, and only ``insecure_open`` goes without, loudly.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from surefoot.collector.config import Config
from surefoot.collector.errors import ExposureError

log = logging.getLogger("surefoot.collector")


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: the server's chain and key, and the authorities of its clients if they must show a certificate."""

    chain: Path
    key: Path
    client_ca: Path | None


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_exposure(config: Config) -> None:
    """Raise ExposureError if strangers could reach the collector; warn if that is wanted."""
    if is_loopback(config.host):
        return
    missing = []
    if config.tls_certificate is None or config.tls_key is None:
        missing.append("a TLS certificate and its key (SUREFOOT_TLS_CERTIFICATE, SUREFOOT_TLS_KEY)")
    if config.tokens is None:
        missing.append("bearer tokens (`surefoot token add NAME`)")
    if not missing:
        return
    if not config.insecure_open:
        raise ExposureError(
            f"The collector is not opened to the network on {config.host} without {' and '.join(missing)}. "
            "Add them, listen on 127.0.0.1, or say --insecure-open if something else keeps strangers out."
        )
    log.warning(
        "INSECURE: listening on %s without %s. Whoever reaches this address can send and fill the disk%s.",
        config.host,
        " and ".join(missing),
        ", and whoever is on the way can read" if config.tls_certificate is None else "",
    )


def certificates(config: Config) -> Certificates | None:
    """The files of a set-up with TLS, or None. Raises ExposureError if they cannot be used together."""
    if config.tls_certificate is None and config.tls_key is None:
        if config.tls_client_ca is not None:
            raise ExposureError("A client authority (tls_client_ca) needs tls_certificate and tls_key as well.")
        return None
    if config.tls_certificate is None or config.tls_key is None:
        raise ExposureError("TLS takes both a certificate (tls_certificate) and its key (tls_key); one is missing.")
    found = Certificates(config.tls_certificate, config.tls_key, config.tls_client_ca)
    tls_context(found)
    return found


def tls_context(files: Certificates) -> ssl.SSLContext:
    """For the HTTP side. Raises ExposureError if a file cannot be used; also tells that gRPC will take them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.chain, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # SSLError is one
        named = f"{files.chain}, {files.key}" + (f", {files.client_ca}" if files.client_ca else "")
        raise ExposureError(
            f"Cannot use {named} for TLS: {error}. They must be PEM files that belong together."
        ) from error
    return context
