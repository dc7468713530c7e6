"""Watches a running deployment, and changes it when measurements say that this pays."""
