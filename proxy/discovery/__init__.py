"""Finds the engines of a Kubernetes cluster: pods that bear certain labels, followed as they come and go."""
