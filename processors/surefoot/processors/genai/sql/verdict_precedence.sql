-- Every verdict on a run that nothing supersedes, with its place in the order of precedence.
--
-- Precedence: final before provisional; then human, executable, model, other graders; then the newest; then the greater
-- verdict_id, so the answer never depends on the order of rows. An unresolved verdict has its place like any other: a
-- final "cannot tell" stands before a provisional pass.
-- place_in_kind = 1 is the verdict of a run's outcome (kind outcome); place_in_name = 1 is the one that counts of each
-- rule (kind process), where one broken rule is not healed by others that were kept.
-- The text runs on DuckDB, Spark and ClickHouse. It reads the table verdicts.
SELECT
  run_id,
  kind,
  name,
  verdict_id,
  verdict,
  severity,
  finality,
  grader_kind,
  occurred_at,
  row_number() OVER (
    PARTITION BY run_id, kind
    ORDER BY
      CASE WHEN finality = 'final' THEN 0 ELSE 1 END,
      CASE grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
      occurred_at DESC,
      verdict_id DESC
  ) AS place_in_kind,
  row_number() OVER (
    PARTITION BY run_id, kind, name
    ORDER BY
      CASE WHEN finality = 'final' THEN 0 ELSE 1 END,
      CASE grader_kind WHEN 'human' THEN 0 WHEN 'executable' THEN 1 WHEN 'model' THEN 2 ELSE 3 END,
      occurred_at DESC,
      verdict_id DESC
  ) AS place_in_name
FROM verdicts
WHERE run_id IS NOT NULL
  AND verdict_id NOT IN (SELECT supersedes FROM verdicts WHERE supersedes IS NOT NULL)
