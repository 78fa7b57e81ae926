"""Functions that scripts of tests create by their names."""

from flinkcore.table.udf import udf


@udf(input_types=["BIGINT"], result_type="BIGINT")
def added(value: int) -> int:
    return value + 1


@udf(input_types=["BIGINT"], result_type="BIGINT")
def negated(value: int) -> int:
    return -value
