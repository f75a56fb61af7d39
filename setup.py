"""The packages to install; all else is in pyproject.toml.

``configs/`` and the studies in ``experiments/`` lie at the top of the checkout and travel in the
wheel as ``mha_lab/configs`` and ``mha_lab/experiments``: a mapping beside found packages, which
pyproject.toml cannot say.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["mha_lab*"]), "mha_lab.configs", "mha_lab.experiments"],
    package_dir={"mha_lab.configs": "configs", "mha_lab.experiments": "experiments"},
)
