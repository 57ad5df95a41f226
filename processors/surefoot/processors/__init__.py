"""From segments to tables to runs to SLOs: decode, understand, keep, judge."""
