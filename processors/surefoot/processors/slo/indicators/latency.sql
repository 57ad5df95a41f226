-- latency: was a run that ended well quick enough?
--
-- Population   runs as the user saw them (no parent run), in the minute of their end
-- Eligible     those that ended ok
-- Good         ok within $threshold_ns, the threshold itself included
-- Bad          ok, but slower
-- Unlabelled   ok without a usable duration: missing, or negative because two clocks disagree
-- Excluded     every other outcome: a quick failure is not quick service, and availability counts it already
-- Threshold    seconds
-- Labels       at once
-- Verdict from the run's own span: end minus start
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
    WHEN coalesce(outcome, 'unknown') <> 'ok' THEN 'excluded'
    WHEN duration_ns IS NULL OR duration_ns < 0 THEN 'unlabelled'
    WHEN duration_ns <= $threshold_ns THEN 'good'
    ELSE 'bad'
  END AS class
FROM runs
WHERE date >= $from_date
  AND date <= $to_date
  AND parent_run_id IS NULL
  AND ended_at IS NOT NULL
  AND coalesce(outcome, 'unknown') <> 'running'
