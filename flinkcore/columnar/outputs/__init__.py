"""Writers of results: Parquet, Delta and Iceberg, and the rows of each output. Private."""
