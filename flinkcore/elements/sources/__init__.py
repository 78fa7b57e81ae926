"""Sources: operators of readers and of source functions, outputs of records and watermarks, and alignment."""
