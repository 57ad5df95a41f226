-- The verdict that counts for each run and kind, of those that nothing supersedes.
--
-- Precedence: final before provisional; then human, executable, model, unnamed graders; then the newest. Two that are
-- equal in all of that are told apart by their id, so the answer never depends on the order of rows. An unresolved
-- verdict counts like any other: a final "cannot tell" outranks a provisional pass.
-- Runs on DuckDB, Spark and ClickHouse. Reads: verdicts.
SELECT run_id, kind, verdict_id, verdict, severity, finality, grader_kind, grader_name, occurred_at, received_at
FROM (
  SELECT
    v.run_id,
    v.kind,
    v.verdict_id,
    v.verdict,
    v.severity,
    v.finality,
    v.grader_kind,
    v.grader_name,
    v.occurred_at,
    v.received_at,
    row_number() OVER (
      PARTITION BY v.run_id, v.kind
      ORDER BY
        CASE v.finality WHEN 'final' THEN 0 ELSE 1 END,
        CASE v.grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
        v.occurred_at DESC,
        v.verdict_id
    ) AS place
  FROM verdicts v
  WHERE v.run_id IS NOT NULL
    AND v.verdict_id NOT IN (SELECT supersedes FROM verdicts WHERE supersedes IS NOT NULL)
) ranked
WHERE place = 1
