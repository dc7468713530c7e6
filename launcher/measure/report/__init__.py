"""Reports of measurements: a table, one page, and the same figures for programs."""
