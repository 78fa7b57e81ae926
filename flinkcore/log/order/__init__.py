"""Orders of rows: by columns, or by content where nothing else orders them. Private."""
