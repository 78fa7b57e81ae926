"""Every error that flinkcore raises on purpose: the message names the row, column or setting, and what to do."""


class FlinkcoreError(Exception):
    """Base of all errors raised by flinkcore."""


class ConfigurationError(FlinkcoreError, ValueError):
    """A setting, or a combination of settings, that has no meaning."""


class SchemaError(FlinkcoreError, TypeError):
    """A column that is missing, has an unsupported type, or differs between files."""


class DataError(FlinkcoreError, ValueError):
    """A row that cannot be processed; the message names its split, position and column."""


class SourceError(FlinkcoreError, OSError):
    """A file that cannot be read: truncated, of another format, or missing."""
