"""Decoders of messages in commands, such as value=json:DDL or value=avro:FILE."""

from __future__ import annotations

import os
from typing import Any, Final

from flinkcore.errors import ConfigurationError

DECODERS: Final = (
    "COLUMN=json:DDL, COLUMN=debezium:DDL, COLUMN=avro:FILE[,header], COLUMN=avro:FOLDER, COLUMN=avro:URL,SUBJECT, "
    "COLUMN=protobuf:FILE,MESSAGE[,header], or debezium"
)
"""Forms of an option, for help texts and messages."""

_DEBEZIUM: Final = "debezium"


def decoders_named(texts: list[str] | None) -> Any:
    """Return `decode=` of `from_event_log` as options give it.

    A folder has schemas of Avro in files such as 17.avsc, by the ids in the headers of the values.

    Parameters
    ----------
    texts : list of str or None
        One for each column with messages, or "debezium" alone, where the columns of the log are the envelope.

    Raises
    ------
    ConfigurationError
        If an option is not of these forms, names a column again, or names a file that cannot be read.

    Examples
    --------
    >>> decoders_named(["debezium"])
    'debezium'
    >>> list(decoders_named(["value=json:user STRING, price DOUBLE"]))
    ['value']
    """
    if not texts:
        return None
    if _DEBEZIUM in texts:
        if len(texts) > 1:
            raise ConfigurationError(
                f"--decode {_DEBEZIUM} is for a log whose columns are the envelope, and excludes other decoders. For "
                f"envelopes in a column of messages write COLUMN={_DEBEZIUM}:DDL"
            )
        return _DEBEZIUM
    decoders: dict[str, Any] = {}
    for text in texts:
        column, equals, named = text.partition("=")
        kind, colon, given = named.partition(":")
        decoder = _decoder(kind, given.strip()) if column and equals and colon and given.strip() else None
        if decoder is None:
            raise ConfigurationError(
                f"--decode {text!r} is not a decoder. Write {DECODERS}, such as 'value=json:user STRING, price DOUBLE'"
            )
        if column in decoders:
            raise ConfigurationError(f"--decode {text!r}: column {column!r} is given twice; leave one out")
        decoders[column] = decoder
    return decoders


def _decoder(kind: str, given: str) -> Any:
    """Return the decoder of a kind; None if what is given is not of its form."""
    from flinkcore.log.decoding.avro_values import avro_values
    from flinkcore.log.decoding.debezium import debezium_values
    from flinkcore.log.decoding.json_values import json_values
    from flinkcore.log.decoding.protobuf_values import protobuf_values

    if kind == "json":
        return json_values(given)
    if kind == _DEBEZIUM:
        return debezium_values(given)
    first, *more = (part.strip() for part in given.split(","))
    has_header = more[-1:] == ["header"]
    names = more[:-1] if has_header else more
    if kind == "avro" and first.startswith(("http://", "https://")) and len(more) == 1:
        return avro_values(registry=first, subject=more[0])
    if kind == "avro" and not names:
        is_folder = os.path.isdir(first)
        return avro_values(schemas=first) if is_folder else avro_values(first, has_header=has_header)
    if kind == "protobuf" and len(names) == 1:
        return protobuf_values(first, names[0], has_header=has_header)
    return None
