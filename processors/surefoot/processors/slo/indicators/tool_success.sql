-- tool_success: did a tool call do what it was called for?
--
-- Population   tool calls, of runs, of their sub-runs and outside any run, in the minute of their end
-- Eligible     calls that ran to an end of their own
-- Good         ok
-- Bad          error
-- Unlabelled   unknown, and any outcome that this file does not know
-- Excluded     retry: the tool asked the model to call again with other arguments, and that next call is an event of
--              its own, so counting both would count one wish twice; cancelled (the run did not want the result any
--              more); deferred (waits for an approval); refused (a boundary or a person said no). None of the last
--              three ran to an end that could be good or bad.
-- Labels       at once
-- Verdict from the call's own span
SELECT
  concat(trace_id, '-', span_id) AS event_id,
  trace_id,
  ended_at,
  service_name,
  environment,
  agent_name,
  task_class,
  consequence_class,
  tool_name,
  effect,
  dependency,
  strata,
  coalesce(sample_weight, 1.0) AS weight,
  CASE
    WHEN outcome = 'ok' THEN 'good'
    WHEN outcome = 'error' THEN 'bad'
    WHEN outcome IN ('retry', 'cancelled', 'deferred', 'refused') THEN 'excluded'
    ELSE 'unlabelled'
  END AS class
FROM tool_calls
WHERE date >= $from_date
  AND date <= $to_date
  AND ended_at IS NOT NULL
