-- consistent_wrong: did at least one run of a repeated group end acceptably, or was it wrong every time?
--
-- Population   completed run groups, in the minute in which their last run ended. A group is the runs that a user saw
--              (no parent run) with the same service_name, run_group, task_id and variant. Its columns are those of
--              its last run.
-- Eligible     none of its runs is running, and their repetition numbers have no gap and begin at 0 or 1, or none has
--              one. k is how many numbers there are, of a group without numbers how many runs: a number that
--              stands twice was repeated, and both runs count. Groups of fewer runs than planned look complete
--              between two runs: say where k is "3" to wait for the third.
-- Good         the effective outcome verdict of at least one run is pass
-- Bad          that of every run is fail, or it has no verdict and ended in error or was abandoned. Whether the runs
--              were wrong in the same way is not in the tables, so this is an upper bound of the
--              consistent-wrong rate: non-equivalent repeated failures are among it. The profile tells them apart.
-- Unlabelled   no run passed, and at least one has no verdict or an unresolved one
-- Excluded     k is 1: nothing was repeated; no run passed, and at least one was cancelled, deferred or refused
-- Fast         bad when every run failed, or ended in error or abandoned without a pass; good otherwise
-- Repeated     an event is made of several runs, up to $verdicts_from apart
-- Labels       late
-- Verdict from verdicts of kind outcome about each run. One is effective: not superseded; final before provisional;
--              human, then executable, then model; the newest; then the greater verdict_id. Without any verdict a run
--              that ended in error or was abandoned failed. Verdicts and runs are read from $verdicts_from on.
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
    AND told.run_id IN (SELECT run_id FROM runs WHERE date >= $verdicts_from AND run_group IS NOT NULL)
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
attempts AS (
  SELECT
    concat(
      replace(replace(coalesce(runs.service_name, ''), '%', '%25'), '/', '%2F'), '/',
      replace(replace(runs.run_group, '%', '%25'), '/', '%2F'), '/',
      replace(replace(coalesce(runs.task_id, ''), '%', '%25'), '/', '%2F'), '/',
      coalesce(runs.variant, '')
    ) AS event_id,
    runs.run_id,
    runs.repetition,
    CASE
      WHEN runs.ended_at IS NULL OR coalesce(runs.outcome, 'unknown') = 'running' THEN 'open'
      WHEN runs.outcome IN ('cancelled', 'deferred', 'refused') THEN 'void'
      WHEN effective.said = 'pass' THEN 'pass'
      WHEN effective.said = 'fail' THEN 'fail'
      WHEN effective.said IS NULL AND runs.outcome IN ('error', 'abandoned') THEN 'fail'
      WHEN runs.outcome IN ('error', 'abandoned') THEN 'failing'
      ELSE 'missing'
    END AS result,
    effective.labelled_at,
    CASE
      WHEN runs.source LIKE 'import:%' THEN 1
      WHEN effective.imported_at = effective.labelled_at THEN 1
      ELSE 0
    END AS imported,
    row_number() OVER (
      PARTITION BY
        coalesce(runs.service_name, ''), runs.run_group, coalesce(runs.task_id, ''), coalesce(runs.variant, '')
      ORDER BY runs.ended_at DESC NULLS LAST, runs.run_id DESC
    ) AS place
  FROM runs
  LEFT JOIN effective ON runs.run_id = effective.run_id
  WHERE runs.date >= $verdicts_from
    AND runs.parent_run_id IS NULL
    AND runs.run_group IS NOT NULL
),
whole AS (
  SELECT
    event_id,
    max(CASE WHEN place = 1 THEN run_id END) AS last_run_id,
    CASE WHEN count(repetition) = 0 THEN count(*) ELSE count(DISTINCT repetition) END AS k,
    sum(CASE WHEN result = 'open' THEN 1 ELSE 0 END) AS open_runs,
    sum(CASE WHEN result = 'void' THEN 1 ELSE 0 END) AS voids,
    sum(CASE WHEN result = 'pass' THEN 1 ELSE 0 END) AS passes,
    sum(CASE WHEN result = 'fail' THEN 1 ELSE 0 END) AS fails,
    sum(CASE WHEN result = 'failing' THEN 1 ELSE 0 END) AS failing,
    count(*) AS run_count,
    max(CASE WHEN result = 'pass' THEN labelled_at END) AS last_pass_at,
    min(CASE WHEN result = 'pass' THEN labelled_at END) AS first_pass_at,
    max(CASE WHEN result = 'fail' THEN labelled_at END) AS last_fail_at,
    min(CASE WHEN result = 'fail' THEN labelled_at END) AS first_fail_at,
    max(imported) AS any_imported
  FROM attempts
  GROUP BY event_id
  HAVING count(repetition) = 0
    OR (count(repetition) = count(*)
      AND min(repetition) IN (0, 1)
      AND max(repetition) - min(repetition) + 1 = count(DISTINCT repetition))
)
SELECT
  whole.event_id,
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
  runs.run_group,
  CAST(whole.k AS String) AS k,
  runs.strata,
  coalesce(runs.sample_weight, 1.0) AS weight,
  CASE
    WHEN whole.k < 2 THEN 'excluded'
    WHEN whole.passes > 0 THEN 'good'
    WHEN whole.voids > 0 THEN 'excluded'
    WHEN whole.fails = whole.run_count THEN 'bad'
    ELSE 'unlabelled'
  END AS class,
  CASE
    WHEN whole.k < 2 THEN 'excluded'
    WHEN whole.passes > 0 THEN 'good'
    WHEN whole.voids > 0 THEN 'excluded'
    WHEN whole.fails + whole.failing = whole.run_count THEN 'bad'
    ELSE 'good'
  END AS fast_class,
  CASE
    WHEN whole.passes > 0 THEN whole.first_pass_at
    WHEN whole.fails = whole.run_count THEN whole.last_fail_at
  END AS labelled_at,
  whole.any_imported = 1 AS label_imported
FROM whole
INNER JOIN runs ON runs.run_id = whole.last_run_id
WHERE runs.date >= $from_date
  AND runs.date <= $to_date
  AND whole.open_runs = 0
