"""What people ask of a running project: logs, attempts, instances, `doctor`, `audit`, backfill."""
