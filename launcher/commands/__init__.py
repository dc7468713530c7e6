"""The verbs of the command line, by what they need: a profile, a machine, or a running deployment."""
