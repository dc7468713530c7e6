"""What is told to people: the present of the deployment, its last ten minutes and its last failures."""
