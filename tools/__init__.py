"""What can be done to a target; knows nothing of brains."""
