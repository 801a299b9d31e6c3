"""The packages of the wheel; everything else stands in pyproject.toml.

Migrations and the list of binary wheels have folders of their own in the repository, and travel inside the package.
"""

from setuptools import find_packages, setup

OUTSIDE = {"service.migrations": "migrations", "service.migrations.versions": "migrations/versions"}
OUTSIDE |= {"service.requirements": "requirements"}

setup(
    packages=[*find_packages(include=["service*"]), *OUTSIDE],
    package_dir=OUTSIDE,
    package_data={
        "service": ["**/*.sql", "**/*.json", "console/static/**", "redaction/**/*.bin"],
        "service.migrations": ["script.py.mako"],
        "service.migrations.versions": ["*.sql"],
        "service.requirements": ["binaries.txt", "model.txt"],
    },
)
