-- cost: did a run cost no more than it may?
--
-- Population   runs as the user saw them (no parent run), in the minute of their end, each with the cost of its
--              sub-runs down to the third level
-- Eligible     all of them, however they ended: money that a failed run spent is spent
-- Good         its model calls cost at most $threshold US dollars, the threshold itself included
-- Bad          what is known of the cost is more than that
-- Unlabelled   a price is not known; no model call was reported at all; abandoned, so there may be more
-- Excluded     nothing
-- Threshold    USD
-- Labels       at once
-- Verdict from cost_usd: the tokens of the model calls at the prices of genai-prices, by the model that answered
WITH subs AS (
  SELECT
    run_id,
    parent_run_id,
    cost_usd,
    CASE
      WHEN cost_usd IS NOT NULL THEN 0
      WHEN coalesce(model_calls, 0) > 0 OR coalesce(input_tokens, 0) > 0 OR coalesce(output_tokens, 0) > 0 THEN 1
      ELSE 0
    END AS unpriced
  FROM runs
  WHERE date >= $verdicts_from
    AND date <= $runs_to
    AND parent_run_id IS NOT NULL
),
below AS (
  SELECT one.parent_run_id AS root_id, one.cost_usd, one.unpriced
  FROM subs AS one
  UNION ALL
  SELECT one.parent_run_id AS root_id, two.cost_usd, two.unpriced
  FROM subs AS one
  INNER JOIN subs AS two ON two.parent_run_id = one.run_id
  UNION ALL
  SELECT one.parent_run_id AS root_id, three.cost_usd, three.unpriced
  FROM subs AS one
  INNER JOIN subs AS two ON two.parent_run_id = one.run_id
  INNER JOIN subs AS three ON three.parent_run_id = two.run_id
),
spent AS (
  SELECT root_id, sum(cost_usd) AS dollars, sum(unpriced) AS unknown FROM below GROUP BY root_id
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
    WHEN coalesce(runs.cost_usd, 0.0) + coalesce(spent.dollars, 0.0) > $threshold THEN 'bad'
    WHEN runs.outcome = 'abandoned' THEN 'unlabelled'
    WHEN coalesce(spent.unknown, 0) > 0 THEN 'unlabelled'
    WHEN runs.cost_usd IS NOT NULL THEN 'good'
    WHEN coalesce(runs.model_calls, 0) > 0 OR coalesce(runs.input_tokens, 0) > 0 OR coalesce(runs.output_tokens, 0) > 0
      THEN 'unlabelled'
    WHEN spent.dollars IS NOT NULL THEN 'good'
    ELSE 'unlabelled'
  END AS class
FROM runs
LEFT JOIN spent ON runs.run_id = spent.root_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND runs.parent_run_id IS NULL
  AND runs.ended_at IS NOT NULL
  AND coalesce(runs.outcome, 'unknown') <> 'running'
