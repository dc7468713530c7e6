"""What people are told of a deployment."""
