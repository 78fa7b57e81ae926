"""The packages of flinkcore from which programs import."""

from typing import Final

PUBLIC_PACKAGES: Final = frozenset(
    (
        *(
            "analysis",
            "cli",
            "common",
            "datastream",
            "examples",
            "metrics",
            "savepoints",
            "spark",
            "table",
            "testing",
        ),
        "_native",  # its contracts are public: programs cimport them
    )
)
"""All other packages are private, and say so."""
