-- graded_runs: what each grader said last about the outcome of each run, and what audits said.
--
-- Population   runs without a parent run that ended on these dates; running ones are no attempts yet
-- Verdicts     about the run itself, of kind outcome, not superseded. An audit is named "audited outcome". Of several
--              by one grader the effective one: final before provisional; the newest; then the greater verdict_id.
--              Verdicts are read from $verdicts_from on.
-- effective    true for the verdict that counts for the run among those that are no audits (or among the audits):
--              final before provisional; human, then executable, then model; the newest; the greater verdict_id
WITH chosen AS (
  SELECT run_id
  FROM runs
  WHERE date >= $from_date
    AND date <= $to_date
    AND parent_run_id IS NULL
    AND ended_at IS NOT NULL
    AND coalesce(outcome, 'unknown') <> 'running'
),
told AS (
  SELECT
    verdict_id,
    run_id,
    verdict,
    finality,
    grader_name,
    grader_version,
    grader_kind,
    occurred_at,
    CASE
      WHEN lower(replace(replace(replace(coalesce(name, ''), '_', ' '), '-', ' '), '.', ' ')) = 'audited outcome' THEN 1
      ELSE 0
    END AS audit
  FROM verdicts
  WHERE date >= $verdicts_from
    AND kind = 'outcome'
    AND run_id IN (SELECT run_id FROM chosen)
),
ranked AS (
  SELECT
    told.verdict_id,
    told.run_id,
    told.verdict,
    told.finality,
    told.grader_name,
    told.grader_version,
    told.grader_kind,
    told.occurred_at,
    told.audit,
    row_number() OVER (
      PARTITION BY told.run_id, told.audit, told.grader_name, told.grader_version, told.grader_kind
      ORDER BY
        CASE WHEN told.finality = 'final' THEN 0 ELSE 1 END,
        told.occurred_at DESC NULLS LAST,
        told.verdict_id DESC
    ) AS place_of_grader,
    row_number() OVER (
      PARTITION BY told.run_id, told.audit
      ORDER BY
        CASE WHEN told.finality = 'final' THEN 0 ELSE 1 END,
        CASE told.grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
        told.occurred_at DESC NULLS LAST,
        told.verdict_id DESC
    ) AS place_of_run
  FROM told
  LEFT JOIN (
    SELECT DISTINCT supersedes AS verdict_id FROM verdicts WHERE date >= $verdicts_from AND supersedes IS NOT NULL
  ) AS replaced
    ON told.verdict_id = replaced.verdict_id
  WHERE replaced.verdict_id IS NULL
)
SELECT
  runs.run_id AS run_id,
  runs.trace_id,
  runs.span_id,
  runs.service_name,
  runs.environment,
  runs.agent_name,
  runs.agent_version,
  runs.task_class,
  runs.consequence_class,
  runs.task_id,
  runs.run_group,
  runs.variant,
  runs.repetition,
  runs.outcome,
  ranked.verdict_id,
  ranked.verdict,
  ranked.finality,
  ranked.grader_name,
  ranked.grader_version,
  ranked.grader_kind,
  ranked.occurred_at,
  ranked.audit,
  CASE WHEN ranked.place_of_run = 1 THEN 1 ELSE 0 END AS effective
FROM runs
JOIN ranked ON runs.run_id = ranked.run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND ranked.place_of_grader = 1
