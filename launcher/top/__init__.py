"""`launcher top`: a deployment as it is now, in a terminal."""
