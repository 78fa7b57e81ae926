"""Files and folders: locations, free room, spilled columns, text and Avro. Private."""
