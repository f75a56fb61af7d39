"""The error that a person's data file can cause."""


class DataFileError(ValueError):
    """A data file is missing, unreadable or malformed; the text names the file and the line."""
