"""What a tuning found, as a page, a table and plots."""
