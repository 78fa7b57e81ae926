"""The settings of `spark-defaults.conf`, a Java properties file, read as Spark's launcher reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark

from flinkcore.errors import ConfigurationError

_BLANKS: Final = " \t\f"
_SETTING: Final = re.compile(rf"((?:\\.|[^\\=:{_BLANKS}])*)[{_BLANKS}]*[=:]?[{_BLANKS}]*(.*)", re.S)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def default_settings() -> dict[str, str]:
    """Return the settings of `spark-defaults.conf` in `SPARK_CONF_DIR`, or in `conf` of `SPARK_HOME` or of PySpark.

    Follows Spark's `Utils.getPropertiesFromFile` and `SparkSubmitArguments`: only names that begin with `spark.`
    count, and values are stripped.

    Raises
    ------
    ConfigurationError
        If the file has an escape that Java refuses.
    """
    # Without SPARK_HOME, Spark's scripts use the installed package.
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    file = Path(folder, "spark-defaults.conf")
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    try:
        properties = read_properties(text)
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    return {name: value.strip() for name, value in properties.items() if name.startswith("spark.")}


def read_properties(text: str) -> dict[str, str]:
    r"""Return the settings of a Java properties file that have names, as `java.util.Properties.load` reads them.

    Raises
    ------
    ValueError
        If `\u` is not followed by four hexadecimal digits.

    Examples
    --------
    >>> read_properties("# a comment\na = 1\nb:2\nc\t3, \\\n   4")
    {'a': '1', 'b': '2', 'c': '3, 4'}
    """
    properties = {}
    for line in _logical_lines(text):
        setting = _SETTING.match(line)
        assert setting is not None
        name, value = (_unescaped(part) for part in setting.groups())
        if name:
            properties[name] = value
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines; a backslash at the end joins a line with the next."""
    line = ""
    for part in re.split(r"\r\n|\r|\n", text):
        part = part.lstrip(_BLANKS)
        if not line and (not part or part[0] in "#!"):
            continue
        backslashes = len(part) - len(part.rstrip("\\"))
        goes_on = backslashes % 2 == 1
        line += part[:-1] if goes_on else part
        if line and not goes_on:
            yield line
            line = ""
    if line:
        yield line


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code, other = escape.groups()
        if code is not None:
            return chr(int(code, 16))
        if other == "u":
            raise ValueError(rf"\u is not followed by four hexadecimal digits in {text!r}")
        return _CONTROLS.get(other, other)

    return _ESCAPE.sub(character, text)
