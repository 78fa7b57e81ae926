"""What earlier versions of pyarrow than the newest one cannot do, of which the last for Python 3.10 is one."""

import pyarrow as pa
import pytest

VERSION = int(pa.__version__.partition(".")[0])

READS_NULL_FIXED_LISTS = pytest.mark.skipif(
    VERSION < 26, reason="pyarrow before 26 refuses Parquet files with nulls among lists of fixed size"
)
DECODES_RUNS_OF_STRUCTS = pytest.mark.skipif(
    VERSION < 26, reason="pyarrow before 26 decodes no run ends of structs"
)
