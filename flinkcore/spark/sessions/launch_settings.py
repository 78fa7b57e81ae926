"""Settings of the user for a Spark that is not running yet: arguments of its launcher, and its properties file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark

from flinkcore.errors import ConfigurationError

_BLANKS: Final = " \t\f"
_SETTING: Final = re.compile(rf"((?:\\.|[^\\=:{_BLANKS}])*)[{_BLANKS}]*[=:]?[{_BLANKS}]*(.*)", re.S)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_SUBMIT_OPTIONS: Final = {
    "--conf": "",
    "-c": "",
    "--properties-file": "",
    "--master": "spark.master",
    "--remote": "spark.remote",
}
"""Options of spark-submit that name settings, each with the setting that it is."""
_DEFAULTS_TOO: Final = "--load-spark-defaults"
"""Option of Spark 4 with which the defaults count after another properties file."""
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def settings_of_launch() -> dict[str, str]:
    """Return the settings of `PYSPARK_SUBMIT_ARGS`, with which PySpark starts Spark, and of the properties files.

    Raises
    ------
    ConfigurationError
        If a file has an escape that Java refuses, or an argument has no closing quote.
    """
    try:
        words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError as error:
        raise ConfigurationError(f"PYSPARK_SUBMIT_ARGS: {error}") from error
    given: dict[str, str] = {}
    file = None
    has_defaults = False
    waiting = iter(words)
    for word in waiting:
        has_defaults = has_defaults or word == _DEFAULTS_TOO
        option, equals, value = word.partition("=")
        if option not in _SUBMIT_OPTIONS:
            continue
        if not equals:
            value = next(waiting, "")
        if option == "--properties-file":
            file = Path(value)
        elif _SUBMIT_OPTIONS[option]:
            given[_SUBMIT_OPTIONS[option]] = value
        else:
            name, _, value = value.partition("=")
            given[name] = value
    defaults = _settings_in(_defaults_file()) if file is None or has_defaults else {}
    return defaults | ({} if file is None else _settings_in(file)) | given


def _defaults_file() -> Path:
    """`spark-defaults.conf` in `SPARK_CONF_DIR`, or in `conf` of `SPARK_HOME` or of PySpark."""
    # Without SPARK_HOME, Spark's scripts use the installed package.
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    return Path(folder, "spark-defaults.conf")


def _settings_in(file: Path) -> dict[str, str]:
    """Return the settings of a properties file, none if it cannot be read.

    Follows Spark's `Utils.getPropertiesFromFile` and `SparkSubmitArguments`: only names that begin with `spark.`
    count, and values are stripped.
    """
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
