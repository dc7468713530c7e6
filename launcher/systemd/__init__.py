"""Back end 2: the plan as units of systemd."""
