"""Searches over hyperparameters: many trials, one study, any number of processes and machines."""
