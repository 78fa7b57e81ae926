"""Spark's settings that flinkcore chooses, with the reason of each."""

from collections.abc import Mapping

ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"

SETTINGS: Mapping[str, str] = {
    # Rows of a DataFrame come in fewer, larger batches, and blocks are limited by bytes. Spark's 64 MB exceed the
    # caches, and Python waits longer for the first batch: with 4 MB the exchange takes a fifth less CPU time.
    ROWS_PER_BATCH: "131072",
    BYTES_PER_BATCH: "4m",
    # Event times are instants, which flinkcore's reports show in UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of `configure_spark`, unless the user has set them."""

LOCAL_SETTINGS: Mapping[str, str] = {
    # Shuffle files stay on this machine, and blocks are packed already.
    "spark.shuffle.compress": "false",
}
"""Further settings if the executors run on this machine."""

BLOCKS_PER_BATCH = 32
"""Rows per batch on Spark before 4.0, which cannot limit batches by bytes: a row can be a block."""

MOST_BLOCKS_PER_BATCH = 64
"""Most rows per batch there: of 16 MiB each, they stay below the 2 GiB that a column can hold."""

SHORT_JOB_SETTINGS: Mapping[str, str] = {
    # The rows of a replay's own jobs are few and large: to compile code for them takes longer than it saves, and
    # there is nothing for adaptive execution to adapt.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Spark describes the plan of each job to its UI in detail, which takes as long as to optimize it.
    "spark.sql.ui.explainMode": "simple",
}
"""Settings while a session runs jobs of flinkcore's that are over soon."""

OWN_SHUFFLE_SETTINGS: Mapping[str, str] = {
    # Spark 4.1 and later hashes each byte of a shuffle, to notice tasks that send other rows when they are repeated.
    # Those of a replay send the same, or fail, and their blocks are all bytes: it was two fifths of the JVM's work.
    # It does so if either setting asks for it.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}
"""Settings while a session runs jobs in which only flinkcore's tasks send rows."""
