-- autonomous_coverage: which share of the work did the agent finish alone?
--
-- Population   runs as the user saw them (no parent run), in the minute of their end
-- Eligible     all of them: work that was escalated stays in the denominator
-- Good         ended ok in mode autonomous, and none of its own tool calls was deferred or refused
-- Bad          any other mode; deferred, refused; a tool call of its own was; error, abandoned: not finished at all
-- Unlabelled   ok, but nobody said in which mode it ran; unknown
-- Excluded     cancelled: the user left before it was known who would finish
-- Labels       at once
-- Verdict from the run's mode and its own span, and the spans of its tool calls. Whether the end was acceptable is
--              asked by acceptable_outcome where mode is autonomous: coverage and reliability are two numbers.
WITH stopped AS (
  SELECT DISTINCT run_id
  FROM tool_calls
  WHERE date >= $verdicts_from
    AND date <= $runs_to
    AND run_id IS NOT NULL
    AND outcome IN ('deferred', 'refused')
)
SELECT
  runs.run_id AS event_id,
  runs.trace_id,
  runs.ended_at,
  runs.service_name,
  runs.environment,
  runs.agent_name,
  runs.agent_version,
  runs.task_class,
  runs.consequence_class,
  runs.task_id,
  runs.variant,
  runs.boundary_id,
  runs.mode,
  runs.dialect,
  runs.strata,
  coalesce(runs.sample_weight, 1.0) AS weight,
  CASE
    WHEN runs.outcome = 'cancelled' THEN 'excluded'
    WHEN runs.outcome IN ('error', 'abandoned', 'deferred', 'refused') THEN 'bad'
    WHEN stopped.run_id IS NOT NULL OR coalesce(runs.mode, 'autonomous') <> 'autonomous' THEN 'bad'
    WHEN runs.outcome = 'ok' AND runs.mode = 'autonomous' THEN 'good'
    ELSE 'unlabelled'
  END AS class
FROM runs
LEFT JOIN stopped ON runs.run_id = stopped.run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND runs.parent_run_id IS NULL
  AND runs.ended_at IS NOT NULL
  AND coalesce(runs.outcome, 'unknown') <> 'running'
