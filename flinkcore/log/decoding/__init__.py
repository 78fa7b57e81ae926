"""Private: values of columns that are messages in JSON, Avro or Protobuf, decoded where a log is read."""
