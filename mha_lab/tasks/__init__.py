"""Tasks, one a file, in a folder for each kind; beside the folders, what tasks share."""
