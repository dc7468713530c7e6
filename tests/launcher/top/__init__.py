"""`launcher top`."""
