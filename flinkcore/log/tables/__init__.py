"""Delta and Iceberg tables as logs. Private."""
