"""One run: built, begun or gone on with, trained, tested, summed up."""

from mha_lab.run.one_run import train

__all__ = ["train"]
