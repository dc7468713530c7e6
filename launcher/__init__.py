"""The launcher turns a profile into a plan, and a plan into running processes."""
