"""The tables: one Arrow schema each, and nothing else that knows a column.

Types are those that DuckDB, Spark and ClickHouse read alike: text, int64, float64, bool, date32,
timestamp[us, UTC], list, struct, map<string, string>. No timestamp[ns], no unsigned integers. Exact times stand
beside timestamps as ``*_unix_nano`` int64. Columns may be added, never renamed (docs/tables.md).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

TEXT = pa.string()
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
MAP = pa.map_(pa.string(), pa.string())
EVENTS = pa.list_(pa.struct([("name", TEXT), ("time_unix_nano", INT), ("attributes", MAP)]))
LINKS = pa.list_(pa.struct([("trace_id", TEXT), ("span_id", TEXT), ("attributes", MAP)]))

# Columns that every table ends with.
_TAIL: Final = [("received_at", TIME), ("source", TEXT), ("date", pa.date32())]

# What the task attributes of the SDK become, in spans and in runs.
TASK_COLUMNS: Final = [
    ("task_class", TEXT),
    ("task_id", TEXT),
    ("consequence_class", TEXT),
    ("intent_id", TEXT),
    ("run_group", TEXT),
    ("repetition", INT),
    ("variant", TEXT),
]

SPANS: Final = pa.schema(
    [
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("parent_span_id", TEXT),  # null for a root
        ("trace_state", TEXT),
        ("name", TEXT),
        ("kind", TEXT),  # unspecified internal server client producer consumer
        ("start_time", TIME),
        ("end_time", TIME),
        ("start_unix_nano", INT),
        ("end_unix_nano", INT),
        ("duration_ns", INT),  # end - start, signed
        ("clock_skew", BOOL),  # ended before it started, before 2000, or a day after it arrived
        ("status", TEXT),  # unset ok error
        ("status_message", TEXT),
        ("service_name", TEXT),
        ("service_version", TEXT),
        ("environment", TEXT),
        ("scope_name", TEXT),
        ("scope_version", TEXT),
        ("dialect", TEXT),  # null for a span that is not about GenAI
        ("operation", TEXT),
        ("agent_name", TEXT),
        ("agent_id", TEXT),
        ("agent_version", TEXT),
        ("conversation_id", TEXT),
        ("workflow_name", TEXT),
        ("tool_name", TEXT),
        ("tool_call_id", TEXT),
        ("tool_type", TEXT),
        ("provider_name", TEXT),
        ("request_model", TEXT),
        ("response_model", TEXT),
        ("response_id", TEXT),
        ("finish_reasons", TEXT),  # JSON list
        ("output_type", TEXT),
        ("time_to_first_chunk", FLOAT),  # seconds
        ("input_tokens", INT),
        ("output_tokens", INT),
        ("cache_read_tokens", INT),
        ("cache_write_tokens", INT),
        ("reasoning_tokens", INT),
        ("error_type", TEXT),
        *TASK_COLUMNS,
        ("tool_effect", TEXT),
        ("tool_dependency", TEXT),
        ("authority_domain", TEXT),
        ("principal", TEXT),
        ("checkpoint", TEXT),
        ("confidence", FLOAT),
        ("boundary_id", TEXT),
        ("mode", TEXT),
        ("attributes", MAP),  # all of them, contents excepted; lists and nested values as JSON text
        ("resource_attributes", MAP),
        ("events", EVENTS),
        ("links", LINKS),
        ("dropped_attributes_count", INT),
        ("sample_weight", FLOAT),
        ("attribute_count", INT),  # as sent, contents included; tells the richer of two copies; null before format 2
        *_TAIL,
    ]
)

CONTENTS: Final = pa.schema(
    [
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("name", TEXT),  # the attribute's name, such as gen_ai.input.messages
        ("content", TEXT),  # JSON text, reasoning parts removed
        ("start_time", TIME),
        *_TAIL,
    ]
)

LOGS: Final = pa.schema(
    [
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("event_name", TEXT),
        ("time", TIME),
        ("time_unix_nano", INT),
        ("observed_unix_nano", INT),
        ("severity_number", INT),
        ("severity_text", TEXT),
        ("body", TEXT),  # text as it is, anything else as JSON
        ("service_name", TEXT),
        ("service_version", TEXT),
        ("environment", TEXT),
        ("scope_name", TEXT),
        ("attributes", MAP),
        ("resource_attributes", MAP),
        ("fingerprint", INT),  # hash of the row as sent: the same one sent twice is one row; null before format 2
        *_TAIL,
    ]
)

METRIC_POINTS: Final = pa.schema(
    [
        ("metric_name", TEXT),
        ("metric_type", TEXT),  # gauge sum histogram exponential_histogram summary
        ("unit", TEXT),
        ("temporality", TEXT),  # delta cumulative unspecified
        ("monotonic", BOOL),
        ("time", TIME),
        ("time_unix_nano", INT),
        ("start_unix_nano", INT),
        ("value", FLOAT),  # gauge and sum
        ("count", INT),
        ("sum", FLOAT),
        ("min", FLOAT),
        ("max", FLOAT),
        ("bucket_counts", pa.list_(INT)),
        ("explicit_bounds", pa.list_(FLOAT)),
        ("service_name", TEXT),
        ("environment", TEXT),
        ("scope_name", TEXT),
        ("attributes", MAP),
        ("resource_attributes", MAP),
        ("fingerprint", INT),  # hash of the row as sent: the same one sent twice is one row; null before format 2
        *_TAIL,
    ]
)

RUNS: Final = pa.schema(
    [
        ("run_id", TEXT),  # trace_id-span_id of the run's own span
        ("parent_run_id", TEXT),
        ("intent_id", TEXT),
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("service_name", TEXT),
        ("environment", TEXT),
        ("agent_name", TEXT),
        ("agent_version", TEXT),
        ("task_class", TEXT),
        ("consequence_class", TEXT),
        ("task_id", TEXT),
        ("run_group", TEXT),
        ("repetition", INT),
        ("variant", TEXT),
        ("conversation_id", TEXT),
        ("versions", MAP),
        ("strata", MAP),  # surefoot.stratum.<name>
        ("boundary_id", TEXT),
        ("mode", TEXT),
        ("started_at", TIME),
        ("ended_at", TIME),  # null while running; of an abandoned run: last sign of life + settle time
        ("started_unix_nano", INT),
        ("ended_unix_nano", INT),
        ("duration_ns", INT),
        ("outcome", TEXT),  # ok error cancelled abandoned deferred refused running unknown
        ("error_type", TEXT),
        ("tool_calls", INT),
        ("tool_errors", INT),
        ("tool_retries", INT),
        ("model_calls", INT),
        ("input_tokens", INT),
        ("output_tokens", INT),
        ("cache_read_tokens", INT),
        ("cache_write_tokens", INT),
        ("reasoning_tokens", INT),
        ("cost_usd", FLOAT),  # null if a price is not known
        ("confidence", FLOAT),
        ("recovered", BOOL),  # a tool failed and the run still ended well
        ("settled", BOOL),
        ("dialect", TEXT),
        ("sample_weight", FLOAT),
        *_TAIL,
    ]
)

TOOL_CALLS: Final = pa.schema(
    [
        ("run_id", TEXT),  # null outside a run
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("service_name", TEXT),
        ("environment", TEXT),
        ("agent_name", TEXT),
        ("task_class", TEXT),
        ("consequence_class", TEXT),
        ("tool_name", TEXT),
        ("tool_call_id", TEXT),
        ("outcome", TEXT),  # ok error retry cancelled deferred refused unknown
        ("error_type", TEXT),
        ("effect", TEXT),  # read write irreversible unknown
        ("dependency", TEXT),
        ("strata", MAP),
        ("started_at", TIME),
        ("ended_at", TIME),
        ("duration_ns", INT),
        ("settled", BOOL),
        ("sample_weight", FLOAT),
        *_TAIL,
    ]
)

MODEL_CALLS: Final = pa.schema(
    [
        ("run_id", TEXT),  # null outside a run
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("service_name", TEXT),
        ("environment", TEXT),
        ("agent_name", TEXT),
        ("response_id", TEXT),
        ("provider_name", TEXT),
        ("request_model", TEXT),
        ("response_model", TEXT),
        ("outcome", TEXT),  # ok error cancelled unknown
        ("error_type", TEXT),
        ("input_tokens", INT),
        ("output_tokens", INT),
        ("cache_read_tokens", INT),
        ("cache_write_tokens", INT),
        ("reasoning_tokens", INT),
        ("cost_usd", FLOAT),
        ("possible_duplicate", BOOL),  # may be a second report of a call that another row stands for
        ("started_at", TIME),
        ("ended_at", TIME),
        ("duration_ns", INT),
        ("settled", BOOL),
        ("sample_weight", FLOAT),
        *_TAIL,
    ]
)

VERDICTS: Final = pa.schema(
    [
        ("verdict_id", TEXT),  # content hash: the same verdict sent twice is one row
        ("supersedes", TEXT),
        ("run_id", TEXT),  # null until its run is known
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("response_id", TEXT),
        ("service_name", TEXT),
        ("name", TEXT),
        ("kind", TEXT),  # outcome process other
        ("verdict", TEXT),  # pass fail unresolved
        ("score", FLOAT),
        ("label", TEXT),
        ("severity", TEXT),
        ("finality", TEXT),  # provisional final
        ("grader_name", TEXT),
        ("grader_version", TEXT),
        ("grader_kind", TEXT),  # human executable model
        ("explanation", TEXT),
        ("occurred_at", TIME),
        ("settled", BOOL),
        *_TAIL,
    ]
)

SLO_MINUTES: Final = pa.schema(
    [
        ("slo", TEXT),
        ("generation", TEXT),  # hash of the SLO's definition without its target
        ("view", TEXT),  # fast matured
        ("stratum_key", TEXT),  # "" is the roll-up; else "dimension=value,dimension=value" in the order of `by`
        ("minute", TIME),
        ("good", INT),
        ("bad", INT),
        ("unlabelled", INT),
        ("excluded", INT),
        # Sums of sample weights in millionths: integers, so that no order of adding changes them. Null before format 3.
        ("good_micros", INT),
        ("bad_micros", INT),
        ("unlabelled_micros", INT),
        ("computed_at", TIME),
        ("date", pa.date32()),
    ]
)

SLO_GENERATIONS: Final = pa.schema(
    [
        ("slo", TEXT),
        ("generation", TEXT),
        ("definition", TEXT),  # JSON: the SLO as the engine took it
        ("objective", FLOAT),
        ("first_seen_at", TIME),
        ("computed_at", TIME),  # when the past was counted by it
        ("date", pa.date32()),
    ]
)

SLO_ACTIONS: Final = pa.schema(
    [
        ("policy", TEXT),
        ("slo", TEXT),
        ("stratum_key", TEXT),  # "" is the roll-up
        ("action", TEXT),  # notify freeze_rollout tighten_mode require_approval
        ("mode", TEXT),  # of tighten_mode
        ("started_at", TIME),
        ("ended_at", TIME),  # null in the row that says that it began
        ("evidence", TEXT),
        ("date", pa.date32()),
    ]
)

PROFILES: Final = pa.schema(
    [
        ("profile_id", TEXT),  # content hash
        ("name", TEXT),
        ("task_class", TEXT),
        ("consequence_class", TEXT),
        ("horizon", TEXT),
        ("created_at", TIME),
        ("document", TEXT),  # JSON
        ("date", pa.date32()),
    ]
)

DECISIONS: Final = pa.schema(
    [
        ("decision_id", TEXT),
        ("profile_id", TEXT),
        ("boundary_id", TEXT),
        ("allowed", BOOL),
        ("mode", TEXT),
        ("reasons", TEXT),  # JSON list
        ("decided_at", TIME),
        ("document", TEXT),  # JSON
        ("date", pa.date32()),
    ]
)

# Tables that the writer fills, in the order in which it commits them.
RAW_TABLES: Final = ("contents", "spans", "logs", "metric_points")
# Tables that jobs derive from a whole trace and replace by trace.
TRACE_TABLES: Final = ("runs", "tool_calls", "model_calls", "verdicts")

TABLES: Final[dict[str, pa.Schema]] = {
    "spans": SPANS,
    "contents": CONTENTS,
    "logs": LOGS,
    "metric_points": METRIC_POINTS,
    "runs": RUNS,
    "tool_calls": TOOL_CALLS,
    "model_calls": MODEL_CALLS,
    "verdicts": VERDICTS,
    "slo_minutes": SLO_MINUTES,
    "slo_generations": SLO_GENERATIONS,
    "slo_actions": SLO_ACTIONS,
    "profiles": PROFILES,
    "decisions": DECISIONS,
}

# What says what was promised and decided, and why: kept for ever.
KEPT: Final = ("slo_generations", "profiles", "decisions")

# Written into the lake's own marker file; a newer one than this program knows is refused. It rises when a table gets a
# column, because a program that does not know the column cannot commit to the table any more. 2: spans.attribute_count,
# logs.fingerprint, metric_points.fingerprint, and tokens by kind, cost and more of runs and model_calls. 3: sums of
# weights in slo_minutes, and the tables slo_generations, slo_actions, profiles and decisions.
FORMAT: Final = 3
