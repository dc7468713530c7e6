"""Back end 1: the plan as processes on this machine."""
