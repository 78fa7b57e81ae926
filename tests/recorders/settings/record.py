"""Writes the settings of the Flink that PyFlink has: their keys, older keys and defaults.

    python record.py > ../../golden/settings.json

with the Python of an environment that has PyFlink. Options of connectors and formats of the Table API, and the parts of
keys such as those of metric reporters, are left out: no program of the DataStream API sets them.
"""

import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyflink
from pyflink.java_gateway import get_gateway

LIBRARIES = Path(pyflink.__file__).parent
JARS = ("lib/flink-dist-*.jar", "lib/flink-cep-*.jar", "opt/flink-python-*.jar")
ELSEWHERE = r"shaded/|table/|connector/|formats/|streaming/api/functions/python"
OPTIONS = re.compile(rf"org/apache/flink/(?!{ELSEWHERE})[^$]*Options\.class")
PARTS = re.compile(r"<|(factory|filter|scope)\.|(interval|enabled)$|sink\.(batch|requests|flush-buffer)\.")


def classes() -> list[str]:
    names = set()
    for pattern in JARS:
        for jar in LIBRARIES.glob(pattern):
            names |= {
                name[:-6].replace("/", ".") for name in ZipFile(jar).namelist() if OPTIONS.fullmatch(name)
            }
    return sorted(names)


def text(value: Any) -> str:
    """Return a default, which py4j has made one of Python's if it is a text or a number, as Java shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.toString() if hasattr(value, "toString") else value)


def settings() -> dict[str, Any]:
    jvm = get_gateway().jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    found: dict[str, Any] = {}
    for name in classes():
        for field in jvm.java.lang.Class.forName(name, True, loader).getFields():
            if field.getType().getSimpleName() != "ConfigOption" or PARTS.match(field.get(None).key()):
                continue
            option = field.get(None)
            found[option.key()] = {
                "default": text(option.defaultValue()) if option.hasDefaultValue() else None,
                "older": [older.getKey() for older in option.fallbackKeys()],
            }
    return dict(sorted(found.items()))


if __name__ == "__main__":
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in settings().items())
    print("{\n" + ",\n".join(lines) + "\n}")
