"""The meaning of each of Flink's settings for a job of flinkcore: docs/settings.md has these tables.

The settings are in ``flink_settings.json``, by their meaning and by the note that the page has about them: keys, types,
defaults and older keys. Settings that code asks for are constants of this module, and the file has their names.
It is read when the first setting is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flinkcore._internal.io.locations import absolute_location, is_local
from flinkcore.common.config_options import ConfigOption
from flinkcore.common.configuration import Configuration
from flinkcore.common.memory_size import MemorySize
from flinkcore.common.settings.setting_types import (
    BOOLEAN,
    DOUBLE,
    LIST,
    MAP,
    MEMORY_SIZE,
    SIGNED_DURATION,
    STRING,
    SettingType,
    as_text,
    duration,
    integer,
    number,
    one_of,
)
from flinkcore.common.time import Duration
from flinkcore.errors import ConfigurationError, SourceError

T = TypeVar("T")

UPPER_BOUND_MAX_PARALLELISM: Final = 1 << 15
DEFAULT_MAX_PARALLELISM: Final = 128

PARALLELISM_DEFAULT: Final = -1
"""The parallelism that leaves the choice to the executor."""

NUMBER_OF_KEY_GROUPS: Final = integer(1, UPPER_BOUND_MAX_PARALLELISM)


class Meaning(Enum):
    """Effect of a setting's value on a job."""

    OBEYED = "obeyed"
    """It does what it does in Flink."""
    WITHOUT_MEANING = "without meaning"
    """It is checked and given back by its getter; what it is about does not exist here, or changes no result."""
    REFUSED = "refused"
    """Only its default is accepted: a program that sets another value would not get what it asks for."""


@dataclass(frozen=True)
class Setting(ConfigOption[T]):
    """A setting of Flink's, and what it means here.

    Attributes
    ----------
    meaning : Meaning
    note : str
        Effect of the setting here, the reason why it has none, or its replacement.
    """

    meaning: Meaning = Meaning.WITHOUT_MEANING
    note: str = ""


PARALLELISM: Setting[int]
MAX_PARALLELISM: Setting[int]
JOB_NAME: Setting[str]
RUNTIME_MODE: Setting[str]
AUTO_WATERMARK_INTERVAL: Setting[Duration]
ALLOW_UNALIGNED_SOURCE_SPLITS: Setting[bool]
WATERMARK_ALIGNMENT_BUFFER_SIZE: Setting[int]
OPERATOR_CHAINING: Setting[bool]
CHAINING_WITH_DIFFERENT_MAX_PARALLELISM: Setting[bool]
GLOBAL_JOB_PARAMETERS: Setting[dict[str, str]]
AUTO_GENERATE_UIDS: Setting[bool]
RESTORE_PATH: Setting[str]
LATENCY_INTERVAL: Setting[Duration]
LATENCY_GRANULARITY: Setting[str]
LATENCY_HISTORY_SIZE: Setting[int]
PYTHON_FILES: Setting[str]
PYTHON_ARCHIVES: Setting[str]
PYTHON_REQUIREMENTS: Setting[str]
PYTHON_EXECUTABLE: Setting[str]
PYTHON_EXECUTION_MODE: Setting[str]
CLOCK: Setting[str]
PROGRESS: Setting[str]
LATE_SHARE: Setting[float]
ARRIVAL_RATE: Setting[float]
MANAGED_MEMORY_SIZE: Setting[MemorySize | None]
MANAGED_MEMORY_FRACTION: Setting[float]
CHECKPOINTING_INTERVAL: Setting[Duration]
CHECKPOINTING_MODE: Setting[str]
CHECKPOINTING_TIMEOUT: Setting[Duration]
MIN_PAUSE_BETWEEN_CHECKPOINTS: Setting[Duration]
MAX_CONCURRENT_CHECKPOINTS: Setting[int]
TOLERABLE_FAILED_CHECKPOINTS: Setting[int]
CHECKPOINT_RETENTION: Setting[str]
UNALIGNED_CHECKPOINTS: Setting[bool]
FORCE_UNALIGNED_CHECKPOINTS: Setting[bool]
ALIGNED_CHECKPOINT_TIMEOUT: Setting[Duration]
CHECKPOINT_STORAGE: Setting[str]
CHECKPOINTS_DIRECTORY: Setting[str]
SAVEPOINT_DIRECTORY: Setting[str]
SNAPSHOT_COMPRESSION: Setting[bool]
BUFFER_TIMEOUT: Setting[Duration]
BUFFER_TIMEOUT_ENABLED: Setting[bool]
OBJECT_REUSE: Setting[bool]
CLOSURE_CLEANER_LEVEL: Setting[str]
GENERIC_TYPES: Setting[bool]
FORCE_AVRO: Setting[bool]
FORCE_KRYO: Setting[bool]
JARS: Setting[list[str]]
CLASSPATHS: Setting[list[str]]
CACHED_FILES: Setting[list[str]]
TASK_CANCELLATION_INTERVAL: Setting[Duration]
TASK_CANCELLATION_TIMEOUT: Setting[Duration]
STATE_CHANGELOG: Setting[bool]
RESTART_STRATEGY: Setting[str]

if not TYPE_CHECKING:  # a type checker knows the constants

    def __getattr__(name: str) -> Any:
        if name not in __annotations__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _tables().constants[name]


@dataclass(frozen=True)
class _Tables:
    """The content of the data file.

    Attributes
    ----------
    settings : dict of str to Setting
        All settings with a key of their own, by key.
    any_key : dict of str to Setting
        The same, by older keys, too.
    constants : dict of str to Setting
        The settings that are constants of this module, by name.
    families : dict of str to str
        As `families` returns it.
    """

    settings: dict[str, Setting[Any]]
    any_key: dict[str, Setting[Any]]
    constants: dict[str, Setting[Any]]
    families: dict[str, str]


@cache
def _tables() -> _Tables:
    import json

    with open(os.path.join(os.path.dirname(__file__), "flink_settings.json"), encoding="utf-8") as file:
        content = json.load(file)
    settings: dict[str, Setting[Any]] = {}
    any_key: dict[str, Setting[Any]] = {}
    constants: dict[str, Setting[Any]] = {}
    for meaning in Meaning:
        for note, rows in content.get(meaning.value, {}).items():
            for row in rows:
                key, kind, default = row["key"], _type(row["type"]), row.get("default")
                value = None if default is None else kind.value(key, default)
                setting = Setting(key, kind, value, tuple(row.get("before", ())), meaning, note)
                settings[key] = setting
                any_key |= dict.fromkeys((*setting.fallback_keys, key), setting)
                if "constant" in row:
                    constants[row["constant"]] = setting
    families = {key: note for note, keys in content["families"].items() for key in keys}
    return _Tables(settings, any_key, constants, families)


def _parallelism(value: Any) -> int:
    subtasks = integer().read(value)
    return subtasks if subtasks == PARALLELISM_DEFAULT else NUMBER_OF_KEY_GROUPS.read(subtasks)


_TYPES: Final[Mapping[str, SettingType[Any]]] = {
    "boolean": BOOLEAN,
    "count": integer(0, (1 << 31) - 1),
    "duration": duration(0),
    "integer": integer(),
    "list": LIST,
    "map": MAP,
    "memory size": MEMORY_SIZE,
    "number": DOUBLE,
    "parallelism": SettingType(
        f"{NUMBER_OF_KEY_GROUPS.expected}, or {PARALLELISM_DEFAULT} for the default", _parallelism
    ),
    "signed duration": SIGNED_DURATION,
    "text": STRING,
}
_BOUNDED_TYPES: Final[Mapping[str, Callable[..., SettingType[Any]]]] = {
    "duration": duration,
    "integer": integer,
    "number": number,
}


def _type(spelled: Any) -> SettingType[Any]:
    """Return the type that the file names: a word, the values that there are, or a word with bounds."""
    if isinstance(spelled, list):
        return one_of(*spelled)
    if isinstance(spelled, dict):
        ((kind, bounds),) = spelled.items()
        return _BOUNDED_TYPES[kind](*bounds)
    return _TYPES[spelled]


def all_settings() -> Mapping[str, Setting[Any]]:
    """Return all settings with a key of their own, by key."""
    return _tables().settings


def families() -> Mapping[str, str]:
    """Return keys that have no meaning here, and why: all that begin so where it ends with a dot, else this one.

    A key with a meaning of its own comes first.
    """
    return _tables().families


def check_settings(configuration: Configuration) -> None:
    """Raise a ConfigurationError if a setting of a configuration is invalid, or is refused."""
    for _ in settings_of(configuration):
        pass


def settings_of(configuration: Configuration) -> Iterator[tuple[Setting[Any], Any]]:
    """Yield the settings of a configuration that have a key of their own, with their values.

    Raises
    ------
    ConfigurationError
        If a value is invalid, or refused.
    """
    any_key = _tables().any_key
    for key, given in configuration.entries():
        setting = any_key.get(key)
        if setting is None:
            continue
        if key != setting.name and configuration.contains_key(setting.name):
            continue  # as in Flink, an older key counts where the newer one is not set
        value = setting.type.value(key, given)
        if setting.meaning is Meaning.REFUSED and value != setting.default:
            raise ConfigurationError(f"{key} cannot be {as_text(value)!r}. {setting.note}")
        yield setting, value


def check_cached_files(entries: Sequence[str]) -> None:
    """Check the files of ``pipeline.cached-files``: ``name:words,path:'file:///data/words.txt',executable:false``.

    Raises
    ------
    ConfigurationError
        If one has no name or path, or two have one name.
    SourceError
        If a local file is not there.
    """
    names = set()
    for entry in entries:
        file = MAP.value("pipeline.cached-files", entry)
        if not {"name", "path"} <= file.keys() <= {"name", "path", "executable"} or not file["name"]:
            raise ConfigurationError(f"a cached file is name:NAME,path:PATH, not {entry!r}")
        if file["name"] in names:
            raise ConfigurationError(
                f"two cached files have the name {file['name']!r}: give each one of its own"
            )
        names.add(file["name"])
        path = absolute_location(file["path"])
        if is_local(path) and not os.path.exists(path):
            raise SourceError(f"there is no file {file['path']} to be cached as {file['name']!r}")


def is_of_family(key: str) -> bool:
    """Return whether a key is one of `families`."""
    return any(key.startswith(family) if family.endswith(".") else key == family for family in families())


def unknown_settings(configuration: Configuration) -> dict[str, str]:
    """Return warnings of keys that are not settings, by key."""
    unknown = (key for key, _ in configuration.entries() if key not in _tables().any_key)
    return {key: warning for key in unknown if (warning := _warning_of(key)) is not None}


def _warning_of(key: str) -> str | None:
    from difflib import get_close_matches

    any_key = _tables().any_key
    if is_of_family(key):
        with_meaning = [
            each for each, setting in any_key.items() if setting.meaning is not Meaning.WITHOUT_MEANING
        ]
        near = get_close_matches(key, with_meaning, 1, 0.85)  # a slip, where keys of Flink have 0.75 at most
        if not near:
            return None
    else:
        near = get_close_matches(key, any_key, 1, 0.75)
    hint = (
        f"did you mean {near[0]}?" if near else "functions read a pipeline.global-job-parameters of your own"
    )
    return f"there is no setting {key}, which is ignored: {hint}"
