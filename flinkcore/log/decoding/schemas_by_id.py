"""Schemas of Avro where users have them: in the program, in files, in a folder by id, or in a schema registry."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from flinkcore.errors import ConfigurationError

_SECONDS: Final = 30
_NAMED_BY_ID: Final = re.compile(r"(\d+)\.(avsc|json)")


def schema_of(given: Any) -> Any:
    """Return a schema as it was read from JSON.

    Parameters
    ----------
    given : str, os.PathLike, dict or list
        The schema, its text, or the path of a file with it.
    """
    if isinstance(given, dict | list):
        return given
    if isinstance(given, os.PathLike) or (
        isinstance(given, str) and not given.lstrip().startswith(("{", "[", '"'))
    ):
        path = Path(given)
        try:
            given = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as failure:
            raise ConfigurationError(
                f"the schema of Avro {str(path)!r} cannot be read: {failure}"
            ) from failure
    if not isinstance(given, str):
        raise ConfigurationError(f"a schema of Avro is a dict, its text or the path of a file, not {given!r}")
    try:
        return json.loads(given)
    except ValueError as failure:
        raise ConfigurationError(f"a schema of Avro is not JSON: {failure}: {given!r:.80}") from failure


def schemas_by_id(given: Any) -> dict[int, Any]:
    """Return schemas by their ids.

    Parameters
    ----------
    given : mapping of int to schema, str or os.PathLike
        The schemas, as of `schema_of`, or a folder of files such as ``17.avsc``.
    """
    if isinstance(given, Mapping):
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in given):
            raise ConfigurationError(
                f"schemas= has ids, which are integers, as its keys, not {list(given)!r:.80}"
            )
        return {number: schema_of(schema) for number, schema in given.items()}
    if not isinstance(given, str | os.PathLike):
        raise ConfigurationError(
            f"schemas= is a mapping of ids to schemas, or a folder of files such as 17.avsc, not {given!r}"
        )
    folder = Path(given)
    try:
        named = [(_NAMED_BY_ID.fullmatch(file.name), file) for file in sorted(folder.iterdir())]
    except OSError as failure:
        raise ConfigurationError(
            f"the folder of schemas {str(folder)!r} cannot be read: {failure}"
        ) from failure
    found = {int(name[1]): schema_of(file) for name, file in named if name is not None}
    if not found:
        raise ConfigurationError(
            f"the folder {str(folder)!r} has no schema: name each file by its id, such as 17.avsc"
        )
    return found


def schemas_of_registry(url: str, subject: str) -> dict[int, Any]:
    """Fetch all versions of a subject from a schema registry, by id, the latest one last.

    Parameters
    ----------
    url : str
        URL of the registry; may have a user and a password for basic authentication.
    subject : str
        Name of the subject, such as ``clicks-value``.

    Raises
    ------
    ConfigurationError
        If the registry cannot be reached or refuses, or a schema is not Avro.
    """
    name = f"/subjects/{quote(subject, safe='')}/versions"
    found: dict[int, Any] = {}
    for version in sorted(_fetched(url, name)):
        entry = _fetched(url, f"{name}/{version}")
        if entry.get("schemaType", "AVRO") != "AVRO" or entry.get("references"):
            raise ConfigurationError(
                f"version {version} of {subject!r} in the registry {_shown(url)} is not a schema of Avro that "
                "stands alone: give the schemas by schemas="
            )
        found[int(entry["id"])] = schema_of(entry["schema"])
    return found


def _fetched(url: str, path: str) -> Any:
    parts = _parts(url)
    if parts is None:
        raise ConfigurationError(
            "registry= is a URL such as http://registry:8081 or http://user:password@registry:8081, not "
            f"{_shown(url)!r}. Write signs such as / in a password as %2F"
        )
    user, _, place = parts.netloc.rpartition("@")
    asked = urlunsplit((parts.scheme, place, parts.path.rstrip("/") + path, "", ""))
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
    try:
        with urlopen(Request(asked, headers=headers), timeout=_SECONDS) as answer:
            return json.load(answer)
    except HTTPError as failure:
        failure.close()
        remedy = {401: "give user and password in the URL", 404: "check the name of the subject"}.get(
            failure.code
        )
        raise ConfigurationError(
            f"the schema registry answers {failure.code} to {asked}: {remedy or 'look after the registry'}"
        ) from failure
    except (URLError, HTTPException, OSError, ValueError) as failure:
        raise ConfigurationError(
            f"the schema registry cannot be read at {asked}: {failure}. Check registry="
        ) from failure


def _parts(url: str) -> SplitResult | None:
    """Return the parts of the URL of a registry, or None if it is not one."""
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port, or of brackets around the host
        return None
    return parts if is_sound and "@" not in parts.path else None


def _shown(url: str) -> str:
    """Return a URL, well-formed or not, without the user and the password."""
    scheme, mark, rest = url.rpartition("://")
    credentials, _, place = rest.rpartition("@")
    return f"{scheme}{mark}{'...@' if credentials else ''}{place}"
