"""Results in formats of other programs: Arrow, Parquet, pandas, LaTeX."""
