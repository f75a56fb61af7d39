"""The packages to install; all else is in pyproject.toml.

``configs/`` lies at the top of the checkout and travels in the wheel as ``mha_lab/configs``: a
mapping beside found packages, which pyproject.toml cannot say.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["mha_lab*"]), "mha_lab.configs"],
    package_dir={"mha_lab.configs": "configs"},
)
