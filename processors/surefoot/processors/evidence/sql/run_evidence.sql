-- run_evidence: each run as the user saw it, with what its graders said.
--
-- Population   runs without a parent run that ended on these dates; running ones are no attempts yet
-- Verdicts     about the run itself. To each question one is effective: not superseded; final before provisional;
--              human, then executable, then model; the newest; then the greater verdict_id. Questions are: the
--              outcome (kind outcome); each rule (kind process, by name); the signature of the final state (named
--              "outcome signature", its label is the signature); whether the run abstained ("abstention", its label
--              says yes or no). Verdicts are read from $verdicts_from on. Audits of a grader ("audited outcome")
--              measure it and are not among them.
-- Not here     what a missing verdict means: evidence/reading.py decides that
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
    kind,
    verdict,
    label,
    severity,
    finality,
    grader_name,
    grader_version,
    grader_kind,
    occurred_at,
    CASE
      WHEN kind = 'outcome' THEN 'outcome'
      WHEN kind = 'process' THEN 'process ' || coalesce(name, '')
      WHEN lower(replace(replace(replace(coalesce(name, ''), '_', ' '), '-', ' '), '.', ' ')) = 'outcome signature'
        THEN 'signature'
      WHEN lower(coalesce(name, '')) = 'abstention' THEN 'abstention'
      ELSE 'other'
    END AS question
  FROM verdicts
  WHERE date >= $verdicts_from
    AND lower(replace(replace(replace(coalesce(name, ''), '_', ' '), '-', ' '), '.', ' ')) <> 'audited outcome'
    AND run_id IN (SELECT run_id FROM chosen)
),
ranked AS (
  SELECT
    told.run_id,
    told.verdict_id,
    told.question,
    told.verdict,
    told.label,
    told.severity,
    told.grader_name,
    told.grader_version,
    told.grader_kind,
    row_number() OVER (
      PARTITION BY told.run_id, told.question
      ORDER BY
        CASE WHEN told.finality = 'final' THEN 0 ELSE 1 END,
        CASE told.grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
        told.occurred_at DESC NULLS LAST,
        told.verdict_id DESC
    ) AS place
  FROM told
  LEFT JOIN (
    SELECT DISTINCT supersedes AS verdict_id FROM verdicts WHERE date >= $verdicts_from AND supersedes IS NOT NULL
  ) AS replaced
    ON told.verdict_id = replaced.verdict_id
  WHERE replaced.verdict_id IS NULL
    AND told.question <> 'other'
),
effective AS (
  SELECT
    ranked.run_id,
    max(CASE WHEN ranked.question = 'outcome' THEN ranked.verdict_id END) AS verdict_id,
    max(CASE WHEN ranked.question = 'outcome' THEN ranked.verdict END) AS verdict,
    max(CASE WHEN ranked.question = 'outcome' THEN ranked.grader_name END) AS grader_name,
    max(CASE WHEN ranked.question = 'outcome' THEN ranked.grader_version END) AS grader_version,
    max(CASE WHEN ranked.question = 'outcome' THEN ranked.grader_kind END) AS grader_kind,
    sum(CASE WHEN ranked.question LIKE 'process %' AND ranked.verdict = 'pass' THEN 1 ELSE 0 END) AS rules_kept,
    sum(CASE WHEN ranked.question LIKE 'process %' AND ranked.verdict = 'fail' THEN 1 ELSE 0 END) AS rules_broken,
    -- A broken rule whose severity nobody told, or told in an unknown word, counts as such.
    max(
      CASE
        WHEN ranked.question LIKE 'process %' AND ranked.verdict = 'fail'
          THEN CASE lower(coalesce(ranked.severity, ''))
            WHEN 'low' THEN 0.25 WHEN 'medium' THEN 0.5 WHEN 'high' THEN 1.0 WHEN 'critical' THEN 1.0
          END
      END
    ) AS worst_severity,
    sum(
      CASE
        WHEN ranked.question LIKE 'process %' AND ranked.verdict = 'fail'
          AND lower(coalesce(ranked.severity, '')) NOT IN ('low', 'medium', 'high', 'critical') THEN 1
        ELSE 0
      END
    ) AS unknown_severities,
    max(CASE WHEN ranked.question = 'signature' THEN ranked.label END) AS signature,
    max(
      CASE
        WHEN ranked.question = 'signature'
          THEN coalesce(ranked.grader_name, '') || '@' || coalesce(ranked.grader_version, '')
      END
    ) AS comparator,
    max(CASE WHEN ranked.question = 'abstention' THEN lower(ranked.label) END) AS abstention
  FROM ranked
  WHERE ranked.place = 1
  GROUP BY ranked.run_id
),
children AS (
  SELECT parent_run_id AS run_id, count(*) AS sub_runs
  FROM runs
  WHERE parent_run_id IN (SELECT run_id FROM chosen)
  GROUP BY parent_run_id
)
SELECT
  runs.run_id AS run_id,
  runs.service_name,
  runs.environment,
  runs.agent_name,
  runs.agent_version,
  runs.task_class,
  runs.consequence_class,
  runs.task_id,
  runs.run_group,
  runs.repetition,
  runs.variant,
  runs.versions,
  runs.boundary_id,
  runs.mode,
  runs.outcome,
  runs.error_type,
  runs.duration_ns,
  runs.tool_calls,
  runs.tool_errors,
  runs.tool_retries,
  runs.model_calls,
  runs.cost_usd,
  runs.confidence,
  coalesce(children.sub_runs, 0) AS sub_runs,
  effective.verdict_id,
  effective.verdict,
  effective.grader_name,
  effective.grader_version,
  effective.grader_kind,
  coalesce(effective.rules_kept, 0) AS rules_kept,
  coalesce(effective.rules_broken, 0) AS rules_broken,
  effective.worst_severity,
  coalesce(effective.unknown_severities, 0) AS unknown_severities,
  effective.signature,
  effective.comparator,
  effective.abstention
FROM runs
LEFT JOIN effective ON runs.run_id = effective.run_id
LEFT JOIN children ON runs.run_id = children.run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND runs.run_id IN (SELECT run_id FROM chosen)
