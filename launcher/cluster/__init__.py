"""The back end for Kubernetes: a plan as the values of the Helm chart."""
