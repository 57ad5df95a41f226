"""Import: files of telemetry in, requests to a collector out, and the wait until runs and verdicts can be queried."""

from surefoot.processors.importing.reading import Refused, Unit, read_file
from surefoot.processors.importing.sending import Report, Sender
from surefoot.processors.importing.settling import settle_here, wait_for_server

__all__ = ["Refused", "Report", "Sender", "Unit", "read_file", "settle_here", "wait_for_server"]
