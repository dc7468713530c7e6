"""How many tokens to draft: measured, chosen by goodput, written into a profile with its evidence."""
