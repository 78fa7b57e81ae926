"""Programs that do not run under flinkcore yet, each with the names of PyFlink that it needs and flinkcore lacks.

A program that runs to its end must leave this table: the test of the programs says so.
"""

NOT_YET: dict[str, tuple[str, ...]] = {}
