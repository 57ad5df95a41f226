"""One list of settings: what the collector takes, the server can set, with the same name and the same default."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli.programs import programs
from surefoot.collector.__main__ import parser
from surefoot.collector.config import Config
from surefoot.processors.settings import Settings

FIELDS = {field.name: field.default for field in dataclasses.fields(Config)}


def started_with(settings: Settings) -> Config:
    """What the collector makes of the flags that the server starts it with."""
    module, name, *flags = programs(settings)[0].argv({})
    assert (module, name) == ("-m", "surefoot.collector")
    return Config(**{name: value for name, value in vars(parser().parse_args(flags)).items() if value is not None})


def test_every_field_is_a_setting_with_the_same_default(tmp_path: Path) -> None:
    assert set(FIELDS) - set(Settings.model_fields) == {"spool", "status"}
    settings = Settings(home=tmp_path)
    assert started_with(settings) == Config(tmp_path / "spool", tmp_path / "status")


def test_every_field_reaches_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: dict[str, Any] = {
        name: not default
        if isinstance(default, bool)
        else default + 1
        if isinstance(default, (int, float))
        else default
        for name, default in FIELDS.items()
        if name not in ("spool", "status")
    }
    wanted |= {name: tmp_path / name for name in ("tls_certificate", "tls_key", "tls_client_ca", "tokens")}
    wanted |= {"max_nesting": 5, "host": "::1", "cors_origins": "-odd,*", "cors_headers": "X-A, X-B"}
    assert all(wanted[name] != default for name, default in FIELDS.items() if name in wanted)
    for name, value in wanted.items():
        monkeypatch.setenv(f"SUREFOOT_{name.upper()}", str(value))
    assert started_with(Settings(home=tmp_path)) == Config(tmp_path / "spool", tmp_path / "status", **wanted)


def test_tokens_in_the_home_are_used_and_the_page_stays_on_loopback(tmp_path: Path) -> None:
    (tmp_path / "tokens").touch()
    settings = Settings(home=tmp_path, host="10.1.2.3")
    assert started_with(settings).tokens == tmp_path / "tokens"
    collector, *_, web = programs(settings)
    assert started_with(settings).host == "10.1.2.3"
    assert (collector.environment["SUREFOOT_HOST"], web.environment["SUREFOOT_HOST"]) == ("10.1.2.3", "127.0.0.1")
