"""Which technique helps with which bottleneck, with figures and reasons; it can say no."""
