"""The configuration for an OpenTelemetry Collector hangs together; the Collector itself is not available to tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from surefoot.instrumentation import semconv
from surefoot.processors.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "behind-a-collector.md").read_text()
CONFIGURATION: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "otel-collector.yml").read_text())


def test_pipelines_use_what_is_defined_and_nothing_is_left_over() -> None:
    pipelines = CONFIGURATION["service"]["pipelines"]
    assert set(pipelines) == {"traces", "logs", "metrics"}
    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipeline in pipelines.values() for name in pipeline[kind]} == set(CONFIGURATION[kind])
    assert CONFIGURATION["service"]["extensions"] == list(CONFIGURATION["extensions"])
    assert CONFIGURATION["exporters"]["otlp/surefoot"]["sending_queue"]["storage"] in CONFIGURATION["extensions"]


def test_it_sends_where_we_listen_and_does_not_listen_there_itself() -> None:
    ports = {str(Settings().port_grpc), str(Settings().port_http)}
    assert CONFIGURATION["exporters"]["otlp/surefoot"]["endpoint"] == f"127.0.0.1:{Settings().port_grpc}"
    for protocol in CONFIGURATION["receivers"]["otlp"]["protocols"].values():
        assert protocol["endpoint"].rpartition(":")[2] not in ports


def test_every_trace_with_an_agent_passes_and_a_sampler_of_runs_names_the_weight_that_we_read() -> None:
    keep, rest = CONFIGURATION["processors"]["tail_sampling"]["policies"]
    assert (keep["type"], rest["type"]) == ("ottl_condition", "probabilistic")
    assert 'attributes["gen_ai.operation.name"] != nil' in keep["ottl_condition"]["span"]
    _, _, example = PAGE.partition("```yaml")
    processors = yaml.safe_load(example.partition("```")[0])["processors"]
    (statement,) = processors["transform/weight"]["trace_statements"][0]["statements"]
    weight = 100 / processors["probabilistic_sampler"]["sampling_percentage"]
    assert statement.startswith(f'set(attributes["{semconv.SAMPLE_WEIGHT}"], {weight})')
