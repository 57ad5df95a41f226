-- intervention_success: where the agent did not go on alone, was the final state acceptable?
--
-- Population   runs as the user saw them (no parent run) with an intervention, in the minute of their end, whenever the
--              verdict came
-- Eligible     an intervention is any of: a mode other than autonomous (deterministic_check, replay, checkpoint,
--              human_approval, refuse); the run ended deferred or refused; one of its own tool calls was
--              deferred or refused
-- Good         the effective outcome verdict is pass. Of a refusal: it was right to refuse
-- Bad          the effective outcome verdict is fail; without any verdict, error and abandoned
-- Unlabelled   the effective verdict is unresolved; no verdict on a run that ended in any other way, deferred and
--              refused included: handing over is no success before somebody says so
-- Excluded     cancelled: the user left
-- Fast         bad as soon as it ended in error, was abandoned or a failing verdict came; good otherwise
-- Labels       late
-- Verdict from verdicts of kind outcome about the run itself. One is effective: not superseded; final before
--              provisional; human, then executable, then model; the newest; then the greater verdict_id.
--              Verdicts are read from $verdicts_from on.
WITH told AS (
  SELECT verdict_id, supersedes, run_id, kind, verdict, finality, grader_kind, occurred_at, received_at, source
  FROM verdicts
  WHERE date >= $verdicts_from
),
ranked AS (
  SELECT
    told.run_id,
    told.verdict,
    CASE WHEN replaced.verdict_id IS NULL THEN 1 ELSE 0 END AS standing,
    CASE WHEN told.verdict IN ('pass', 'fail') THEN told.received_at END AS told_at,
    CASE WHEN told.source LIKE 'import:%' THEN 1 ELSE 0 END AS imported,
    row_number() OVER (
      PARTITION BY told.run_id
      ORDER BY
        CASE WHEN replaced.verdict_id IS NULL THEN 0 ELSE 1 END,
        CASE WHEN told.finality = 'final' THEN 0 ELSE 1 END,
        CASE told.grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
        told.occurred_at DESC NULLS LAST,
        told.verdict_id DESC
    ) AS place
  FROM told
  LEFT JOIN (SELECT DISTINCT supersedes AS verdict_id FROM told WHERE supersedes IS NOT NULL) AS replaced
    ON told.verdict_id = replaced.verdict_id
  WHERE told.kind = 'outcome'
    AND told.run_id IN (SELECT run_id FROM runs WHERE date >= $from_date AND date <= $to_date)
),
effective AS (
  SELECT
    run_id,
    max(CASE WHEN place = 1 AND standing = 1 THEN verdict END) AS said,
    min(told_at) AS labelled_at,
    min(CASE WHEN imported = 1 THEN told_at END) AS imported_at
  FROM ranked
  GROUP BY run_id
),
stopped AS (
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
    WHEN runs.outcome IN ('cancelled') THEN 'excluded'
    WHEN effective.said = 'pass' THEN 'good'
    WHEN effective.said = 'fail' THEN 'bad'
    WHEN effective.said IS NULL AND runs.outcome IN ('error', 'abandoned') THEN 'bad'
    ELSE 'unlabelled'
  END AS class,
  CASE
    WHEN runs.outcome IN ('cancelled') THEN 'excluded'
    WHEN effective.said = 'pass' THEN 'good'
    WHEN effective.said = 'fail' OR runs.outcome IN ('error', 'abandoned') THEN 'bad'
    ELSE 'good'
  END AS fast_class,
  effective.labelled_at,
  CASE
    WHEN runs.source LIKE 'import:%' THEN 1 = 1
    ELSE coalesce(effective.imported_at = effective.labelled_at, 1 = 0)
  END AS label_imported
FROM runs
LEFT JOIN effective ON runs.run_id = effective.run_id
LEFT JOIN stopped ON runs.run_id = stopped.run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND runs.parent_run_id IS NULL
  AND runs.ended_at IS NOT NULL
  AND coalesce(runs.outcome, 'unknown') <> 'running'
  AND (
    coalesce(runs.mode, 'autonomous') <> 'autonomous'
    OR runs.outcome IN ('deferred', 'refused')
    OR stopped.run_id IS NOT NULL
  )
