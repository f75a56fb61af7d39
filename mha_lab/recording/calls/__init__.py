"""From a call of an attention function to its scores."""
