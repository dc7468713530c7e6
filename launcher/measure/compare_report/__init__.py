"""A comparison as a table, a page and JSON."""
