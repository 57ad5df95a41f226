-- acceptable_outcome: was the final state that the run left acceptable?
--
-- Population   runs as the user saw them (no parent run), in the minute of their end, whenever the verdict came
-- Good         the effective outcome verdict is pass
-- Bad          the effective outcome verdict is fail; without any verdict, error and abandoned: no grader is needed to
--              know that nothing acceptable was left
-- Unlabelled   the effective verdict is unresolved; no verdict on a run that ended in any other way
-- Excluded     cancelled, deferred, refused: nobody judges an end that the run did not come to
-- Verdict from verdicts of kind outcome about the run itself. One is effective: not superseded; final before
--              provisional; human, then executable, then model; the newest; then the greater verdict_id.
--              Verdicts are read from $verdicts_from on.
WITH told AS (
  SELECT verdict_id, supersedes, run_id, kind, verdict, finality, grader_kind, occurred_at
  FROM verdicts
  WHERE date >= $verdicts_from
),
ranked AS (
  SELECT
    told.run_id,
    told.verdict,
    row_number() OVER (
      PARTITION BY told.run_id
      ORDER BY
        CASE WHEN told.finality = 'final' THEN 0 ELSE 1 END,
        CASE told.grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
        told.occurred_at DESC NULLS LAST,
        told.verdict_id DESC
    ) AS place
  FROM told
  LEFT JOIN (SELECT DISTINCT supersedes AS verdict_id FROM told WHERE supersedes IS NOT NULL) AS replaced
    ON told.verdict_id = replaced.verdict_id
  WHERE replaced.verdict_id IS NULL
    AND told.kind = 'outcome'
    AND told.run_id IN (SELECT run_id FROM runs WHERE date >= $from_date AND date <= $to_date)
),
effective AS (
  SELECT run_id, verdict FROM ranked WHERE place = 1
)
SELECT
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
  CASE
    WHEN runs.outcome IN ('cancelled', 'deferred', 'refused') THEN 'excluded'
    WHEN effective.verdict = 'pass' THEN 'good'
    WHEN effective.verdict = 'fail' THEN 'bad'
    WHEN effective.verdict IS NULL AND runs.outcome IN ('error', 'abandoned') THEN 'bad'
    ELSE 'unlabelled'
  END AS class
FROM runs
LEFT JOIN effective ON runs.run_id = effective.run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND runs.parent_run_id IS NULL
  AND runs.ended_at IS NOT NULL
  AND coalesce(runs.outcome, 'unknown') <> 'running'
