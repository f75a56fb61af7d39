"""What ``mha_lab new`` starts from: working options, one file each, that pass their checks."""
