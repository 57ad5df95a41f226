-- availability: did the run end as an answer?
--
-- Population   runs as the user saw them (no parent run), in the minute of their end. A running run is no event yet.
-- Eligible     all that came to their own end
-- Good         ok
-- Bad          error; abandoned: nothing ended the run within the settle time, so nobody got an answer
-- Unlabelled   unknown, and any outcome that this file does not know
-- Excluded     cancelled (the user changed their mind), deferred (waits for an approval or a later turn),
--              refused (a boundary said no, as it should)
-- Labels       at once
-- Verdict from the run's own span, or its absence
SELECT
  run_id AS event_id,
  trace_id,
  ended_at,
  service_name,
  environment,
  agent_name,
  agent_version,
  task_class,
  consequence_class,
  task_id,
  variant,
  boundary_id,
  mode,
  dialect,
  strata,
  coalesce(sample_weight, 1.0) AS weight,
  CASE
    WHEN outcome = 'ok' THEN 'good'
    WHEN outcome IN ('error', 'abandoned') THEN 'bad'
    WHEN outcome IN ('cancelled', 'deferred', 'refused') THEN 'excluded'
    ELSE 'unlabelled'
  END AS class
FROM runs
WHERE date >= $from_date
  AND date <= $to_date
  AND parent_run_id IS NULL
  AND ended_at IS NOT NULL
  AND coalesce(outcome, 'unknown') <> 'running'
