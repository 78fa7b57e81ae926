"""File systems of locations: which scheme is read with which library, and with which settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.io.locations import absolute_location, shown_location, utf_8_paths
from flinkcore._internal.io.object_stores import (
    HadoopSetting,
    azure_file_system,
    deltalake_options,
    fsspec_file_system,
    gcs_file_system,
    hdfs_file_system,
    not_set,
    pyiceberg_properties,
    s3_file_system,
)
from flinkcore.errors import ConfigurationError, SourceError

T = TypeVar("T")

_URI: Final = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]+)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)
_DBFS: Final = "dbfs:"
_DBFS_MOUNT: Final = "/dbfs"

_LOCAL: Final = frozenset({"local", "file"})  # as pyarrow and fsspec call it
_RENAMING: Final = _LOCAL | {"hdfs", "viewfs", "webhdfs", "dbfs", "sftp", "ssh", "ftp", "smb", "nfs"}
"""File systems, by their type names, in which a file gets another name at once; elsewhere it is copied and deleted."""

_COPIES_AT_ONCE: Final = 16
_LOOKS_AT_ONCE: Final = 16

_KINDS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "abfs"),
    **dict.fromkeys(("hdfs", "viewfs"), "hdfs"),
}
"""Names that Spark, Hadoop, pyarrow and fsspec have for a store, and the one that stands for it here."""


@dataclass(frozen=True)
class Place:
    """A path in a file system; it can be pickled, with the credentials of the file system.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    path : str
        Path within the file system, without a slash at its end.
    prefix : str
        Text that makes the name of a path in the file system, such as ``s3://``; empty for local paths.
    root : str
        Beginning of paths that the prefix replaces.
    """

    filesystem: Any
    path: str
    prefix: str = ""
    root: str = ""

    @property
    def name(self) -> str:
        """Name in messages: a local path or a URI, without credentials."""
        return self.name_of(self.path)

    def name_of(self, path: str) -> str:
        """Return the name of another path in the same file system."""
        return f"{self.prefix}{path[len(self.root) :]}" if path.startswith(self.root) else path

    def below(self, path: str) -> Place:
        """Return the place of a relative path below this one."""
        return Place(self.filesystem, f"{self.path}/{path}", self.prefix, self.root)

    def move(self, names: Mapping[str, str]) -> None:
        """Move files below this place, several at a time where a store copies them.

        Parameters
        ----------
        names : mapping of str to str
            Relative paths, from old to new.
        """
        pairs = [(f"{self.path}/{old}", f"{self.path}/{new}") for old, new in names.items()]
        if self.renames or len(pairs) < 2:
            for old, new in pairs:
                self.filesystem.move(old, new)
            return
        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            list(pool.map(lambda pair: self.filesystem.move(*pair), pairs))

    @property
    def renames(self) -> bool:
        """Return whether the location renames files in one step; an object store copies them instead."""
        return in_store(self.filesystem, self.path)[1] in _RENAMING


Locate: TypeAlias = Callable[[str], Place]


class Stores:
    """The file systems of locations, with the settings of this process's environment (``AWS_*`` and so on)."""

    def hadoop_setting(self) -> HadoopSetting:
        """Return a lookup of the present settings by their names in Hadoop, such as ``fs.s3a.endpoint``."""
        return not_set

    def deltalake_options(self, location: str) -> dict[str, str]:
        """Return the settings of a location as deltalake takes them, which reads the environment by itself."""
        return deltalake_options(location, self.hadoop_setting())

    def pyiceberg_properties(self, location: str) -> dict[str, str]:
        """Return the settings of a location as pyiceberg takes them."""
        return pyiceberg_properties(location, self.hadoop_setting())

    def locate(self, location: str | os.PathLike[str]) -> Place:
        """Return the place of a local path or a URI; a path may have wildcards.

        Raises
        ------
        SourceError
            If the location is not UTF-8, no library reaches it, or the settings are not valid.
        """
        return self.locating()(os.fspath(location))

    def locating(self) -> Locate:
        """Return `locate` for many locations, which share file systems."""
        # On Spark the JVM is asked for the settings, of which local paths need none.
        setting, known = cache(self.hadoop_setting), dict[tuple[str, str], Any]()

        def locate(location: str) -> Place:
            path = absolute_location(location)
            with utf_8_paths():
                path.encode()
            if path.startswith(_DBFS):
                return _in_dbfs(path)
            uri = _URI.match(path)
            if uri is None:
                return Place(fs.LocalFileSystem(), path.rstrip("/") or "/")
            try:
                return _in_uri(uri, setting(), known)
            except (pa.ArrowException, OSError, ValueError, ImportError) as failure:
                reason = str(failure).partition("\n")[0].rstrip(". ")
                raise SourceError(
                    f"{shown_location(path)} cannot be reached: {reason}. Check the URI"
                    f"{_settings_to_check(uri['scheme'])}, or give filesystem=",
                    file=shown_location(path),
                ) from failure

        return locate


class GivenFileSystem(Stores):
    """One file system, in which all locations are, whatever is set elsewhere.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem or fsspec filesystem

    Raises
    ------
    ConfigurationError
        If it is neither.
    """

    def __init__(self, filesystem: Any) -> None:
        if isinstance(filesystem, fs.FileSystem):
            self.filesystem = filesystem
        elif hasattr(filesystem, "protocol") and hasattr(filesystem, "open"):
            self.filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        else:
            raise ConfigurationError(
                "filesystem is a pyarrow.fs.FileSystem or an fsspec filesystem, not "
                f"{type(filesystem).__name__}"
            )

    def locating(self) -> Locate:
        is_local = isinstance(self.filesystem, fs.LocalFileSystem)

        def locate(location: str) -> Place:
            with utf_8_paths():
                location.encode()
            uri = _URI.match(location)
            if uri is not None and uri["scheme"] != "file":
                return Place(self.filesystem, f"{uri['authority']}{uri['path']}", f"{uri['scheme']}://")
            return Place(self.filesystem, absolute_location(location) if is_local or uri else location)

        return locate


ENVIRONMENT: Final = Stores()
"""File systems with the settings of the environment."""


def stores_of(filesystem: Any) -> Stores:
    """Return the stores that a job takes its locations from.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem, fsspec filesystem, Stores or None
        The one that a user gives, the stores of an executor, or None for those of the environment.

    Raises
    ------
    ConfigurationError
        If it is not a file system.
    """
    if filesystem is None:
        return ENVIRONMENT
    return filesystem if isinstance(filesystem, Stores) else GivenFileSystem(filesystem)


def _in_uri(uri: re.Match[str], setting: HadoopSetting, known: dict[tuple[str, str], Any]) -> Place:
    scheme, authority, path = uri["scheme"].lower(), uri["authority"], uri["path"].rstrip("/")
    kind = _KINDS.get(scheme, scheme)
    has_options = "@" in authority or re.search(r"\?[a-z_]+=", path) is not None
    if kind in ("s3", "gs") and has_options:  # Arrow's own URIs have credentials and settings in them
        filesystem, inside = fs.FileSystem.from_uri(f"{kind}://{authority}{path}")
        return Place(filesystem, inside.rstrip("/"), f"{scheme}://")
    make = {
        "s3": s3_file_system,
        "gs": gcs_file_system,
        "abfs": azure_file_system,
        "hdfs": hdfs_file_system,
    }.get(kind, fsspec_file_system)
    key = (kind, authority)
    if key not in known:
        known[key] = make(uri.group(), scheme, authority, setting)
    container, at, _ = authority.partition("@")
    if kind == "abfs" and at:
        return Place(known[key], container + path, f"{scheme}://{authority}", container)
    if kind in ("s3", "gs", "abfs"):
        return Place(known[key], authority + path, f"{scheme}://")
    if kind == "hdfs":
        return Place(known[key], path or "/", f"{scheme}://{authority}")
    filesystem = known[key].handler.fs
    inside = filesystem._strip_protocol(f"{scheme}://{authority}{path}")
    prefix = "" if "://" in inside else f"{scheme}://"
    return Place(known[key], inside, prefix)


def _in_dbfs(location: str) -> Place:
    """Return the place of a path in Databricks' file system, which is mounted on the machines of its clusters."""
    path = "/" + location[len(_DBFS) :].strip("/")
    if os.path.isdir(_DBFS_MOUNT):
        return Place(fs.LocalFileSystem(), _DBFS_MOUNT + path, _DBFS, _DBFS_MOUNT)
    instance, token = os.environ.get("DATABRICKS_HOST"), os.environ.get("DATABRICKS_TOKEN")
    if not instance or not token:
        raise SourceError(
            f"{location} cannot be reached: this machine has no folder {_DBFS_MOUNT}, as those of Databricks have. Set "
            "DATABRICKS_HOST and DATABRICKS_TOKEN, or give filesystem="
        )
    host = instance.partition("://")[2] or instance
    filesystem = fsspec_file_system(location, "dbfs", "", not_set, instance=host, token=token)
    return Place(filesystem, path, _DBFS)


def _settings_to_check(scheme: str) -> str:
    return {
        "s3": ", the endpoint and the region: fs.s3a.endpoint and fs.s3a.endpoint.region of the Spark session, or "
        "AWS_ENDPOINT_URL and AWS_REGION",
        "gs": " and the credentials: GOOGLE_APPLICATION_CREDENTIALS",
        "abfs": ", which is abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, and the credentials",
        "hdfs": ", HADOOP_HOME and CLASSPATH: Arrow needs libhdfs and Java",
    }.get(_KINDS.get(scheme.lower(), ""), "")


def in_store(filesystem: Any, path: str) -> tuple[Any, str, str]:
    """Return the store that a path of a file system is in, its type name, and the path there: wrappers are removed."""
    while True:
        if isinstance(filesystem, fs.SubTreeFileSystem):
            filesystem, path = filesystem.base_fs, f"{filesystem.base_path.rstrip('/')}/{path}"
            continue
        handler = filesystem.handler if isinstance(filesystem, fs.PyFileSystem) else None
        if not isinstance(handler, fs.FSSpecHandler):
            return filesystem, filesystem.type_name, path
        protocol = handler.fs.protocol
        kind = protocol if isinstance(protocol, str) else protocol[0]
        if kind != "dir":
            return fs.LocalFileSystem() if kind in _LOCAL else filesystem, kind, path
        filesystem, path = fs.PyFileSystem(fs.FSSpecHandler(handler.fs.fs)), f"{handler.fs.path}/{path}"


def local_path(filesystem: Any, path: str) -> str | None:
    """Return the path on this machine of a path in a file system; None if it is in another store."""
    _, kind, inside = in_store(filesystem, path)
    return inside if kind in _LOCAL else None


def looked_at(
    filesystem: Any, paths: Sequence[str], look: Callable[[str], T], at_once: int = _LOOKS_AT_ONCE
) -> list[T]:
    """Look at paths of a file system; at several at once if each look is a request to another machine.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
    paths : sequence of str
    look : callable
        Looks at a path; its errors are raised.
    at_once : int
        Most requests at once.

    Returns
    -------
    list
        Results in the order of the paths.
    """
    if len(paths) < 2 or local_path(filesystem, paths[0]) is not None:
        return list(map(look, paths))
    with ThreadPoolExecutor(at_once, "flinkcore-listing") as pool:
        return list(pool.map(look, paths))


def uri_in(filesystem: Any, path: str) -> str:
    """Return the local path, or a URI, of a path in a file system, which may wrap another one."""
    _, kind, inside = in_store(filesystem, path)
    return inside if kind in _LOCAL else f"{kind}://{inside}"


def folders_of(location: str) -> tuple[str, ...]:
    """Return the store of a location and the folders on the way to it: equal for all names of one directory.

    Links are followed where they are local.
    """
    path = absolute_location(location)
    uri = _URI.match(path)
    if uri is None:
        local = _DBFS_MOUNT + path[len(_DBFS) :] if path.startswith(_DBFS) else path
        return "file", "", *filter(None, os.path.realpath(local).split(os.sep))
    scheme = uri["scheme"].lower()
    bucket = uri["authority"].rpartition("@")[2] if _KINDS.get(scheme) != "abfs" else uri["authority"]
    return _KINDS.get(scheme, scheme), bucket, *filter(None, uri["path"].split("/"))
