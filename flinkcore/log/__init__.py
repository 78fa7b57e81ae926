"""Event logs: their files, tables and formats, and the reader of their events. Private."""
