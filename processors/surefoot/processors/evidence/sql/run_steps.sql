-- run_steps: what each run did, in order: its tool calls, and other spans that are a checkpoint or name a domain.
--
-- Whose        the one user-facing run of the trace, so that calls of its sub-runs are its steps too; in a trace with
--              several of them, the run that the call belongs to
-- Kept         spans are deleted long before tool calls: span_kept = 0 says that domain and checkpoint are not known
-- Steps are read from $steps_from on: a run ends after it began.
WITH facing AS (
  SELECT trace_id, min(run_id) AS run_id, count(*) AS runs
  FROM runs
  WHERE date >= $steps_from AND parent_run_id IS NULL
  GROUP BY trace_id
),
marks AS (
  SELECT trace_id, span_id, start_time, end_time, authority_domain, checkpoint
  FROM spans
  WHERE date >= $steps_from
    AND (operation = 'execute_tool' OR authority_domain IS NOT NULL OR checkpoint IS NOT NULL)
)
SELECT
  CASE WHEN facing.runs = 1 THEN facing.run_id ELSE tool_calls.run_id END AS run_id,
  tool_calls.span_id AS span_id,
  tool_calls.tool_name,
  tool_calls.outcome,
  tool_calls.effect,
  tool_calls.dependency,
  tool_calls.started_at,
  tool_calls.ended_at,
  marks.authority_domain,
  marks.checkpoint,
  CASE WHEN marks.span_id IS NULL THEN 0 ELSE 1 END AS span_kept
FROM tool_calls
LEFT JOIN facing ON tool_calls.trace_id = facing.trace_id
LEFT JOIN marks ON tool_calls.trace_id = marks.trace_id AND tool_calls.span_id = marks.span_id
WHERE tool_calls.date >= $steps_from
UNION ALL
SELECT
  CASE WHEN facing.runs = 1 THEN facing.run_id ELSE own.run_id END AS run_id,
  marks.span_id AS span_id,
  NULL AS tool_name,
  NULL AS outcome,
  NULL AS effect,
  NULL AS dependency,
  marks.start_time AS started_at,
  marks.end_time AS ended_at,
  marks.authority_domain,
  marks.checkpoint,
  1 AS span_kept
FROM marks
LEFT JOIN facing ON marks.trace_id = facing.trace_id
LEFT JOIN runs AS own ON marks.trace_id = own.trace_id AND marks.span_id = own.span_id
LEFT JOIN (SELECT trace_id, span_id FROM tool_calls WHERE date >= $steps_from) AS called
  ON marks.trace_id = called.trace_id AND marks.span_id = called.span_id
WHERE (marks.authority_domain IS NOT NULL OR marks.checkpoint IS NOT NULL)
  AND called.span_id IS NULL
