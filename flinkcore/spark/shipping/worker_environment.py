"""Environment of Spark's Python workers, in which a task finds flinkcore.

These functions are pickled by value, since a worker may have no flinkcore to import. So they use the standard library
alone.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pickle
import platform
import re
import socket
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pyspark import cloudpickle

NOT_READY = "flinkcore is not ready on this worker: "
"""Begins the message of a worker that lacks flinkcore."""

MODULES = "flinkcore-modules-"
"""Begins the names of folders with modules of the user's."""


class ShippedWheel(NamedTuple):
    """A wheel of flinkcore that a session has sent to its executors.

    Attributes
    ----------
    name : str
        The folder into which Spark unpacks it.
    build : str
        Result of `build_of` for the unpacked wheel.
    tag : str
        Python, ABI and platform, such as `cp311-cp311-manylinux_2_28_x86_64`.
    """

    name: str
    build: str
    tag: str


class ShippedArchive(NamedTuple):
    """An archive of the user's files that a session has sent to its executors.

    Attributes
    ----------
    target_dir : str
        Where functions find its content, relative to their working directory.
    name : str
        The folder into which Spark unpacks it.
    """

    target_dir: str
    name: str


def interpreter_abi() -> str:
    """Return the ABI and machine of this interpreter, such as `cpython-311-x86_64-linux-gnu x86_64`."""
    return f"{sysconfig.get_config_var('SOABI')} {platform.machine()}"


def fits(tag: str, abi: str) -> bool:
    """Return whether an interpreter can import the modules of a wheel.

    Parameters
    ----------
    tag : str
        Tag of the wheel, such as `cp311-cp311-manylinux_2_28_x86_64`.
    abi : str
        As `interpreter_abi` returns it.
    """
    _, python, platforms = tag.split("-")
    soabi, _, machine = abi.rpartition(" ")
    machines = {
        machine.lower(),
        {"arm64": "aarch64", "amd64": "x86_64"}.get(machine.lower(), machine.lower()),
    }
    if "".join(soabi.split("-")[:2]).replace("cpython", "cp") != python:
        return False
    for platform_tag in platforms.split("."):
        system = "darwin" if platform_tag.startswith("macosx") else "linux"
        is_musl = platform_tag.startswith("musllinux")
        fitting = platform_tag.endswith((*machines, "universal2"))
        if fitting and system in soabi and is_musl == ("musl" in soabi):
            return True
    return False


def build_of(package: str) -> str:
    """Return a digest that differs between builds of flinkcore.

    It is made of the hashes in the RECORD beside the package. An editable install has none: there it is made of names,
    sizes and modification times of the files, which no other folder shares.

    Parameters
    ----------
    package : str
        Path of the package.
    """
    folder = Path(package)
    for record in sorted(folder.parent.glob("flinkcore-*.dist-info/RECORD")):
        lines = [line for line in record.read_text(encoding="utf-8").splitlines() if is_module_line(line)]
        if lines:
            return digest_of(lines)
    found = []
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".so", ".pyd")):
                stat = os.stat(os.path.join(root, name))
                where = os.path.relpath(os.path.join(root, name), folder)
                found.append(f"{where},{stat.st_size},{stat.st_mtime_ns}")
    return digest_of(found)


def is_module_line(line: str) -> bool:
    """Return whether a line of a RECORD has the hash of a module of flinkcore."""
    path, digest = line.rsplit(",", 2)[:2] if line.count(",") >= 2 else (line, "")
    return path.startswith("flinkcore/") and path.endswith((".py", ".so", ".pyd")) and bool(digest)


def digest_of(lines: Iterable[str]) -> str:
    """Return a digest of lines that does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def package_folder() -> str | None:
    """Return the folder of the flinkcore that this worker has imported, or would import; None if it has none."""
    module = sys.modules.get("flinkcore")
    if module is not None and module.__file__ is not None:
        return os.path.dirname(module.__file__)
    spec = importlib.util.find_spec("flinkcore")
    return None if spec is None or spec.origin is None else os.path.dirname(spec.origin)


def present_build() -> str | None:
    """Return the build of the flinkcore that this worker has imported, or would import; None if it has none.

    The build of an imported package is found once, and kept with it.
    """
    module = sys.modules.get("flinkcore")
    known: str | None = getattr(module, "_build", None)
    if known is not None:
        return known
    folder = package_folder()
    build = None if folder is None else build_of(folder)
    if module is not None:
        module._build = build  # type: ignore[attr-defined]
    return build


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_numbers(version: str | None) -> tuple[int, ...]:
    """Return the first two numbers of a version; none if there is no version."""
    return tuple(map(int, re.findall(r"\d+", version or "")[:2]))


def unmet_requirement(found: Mapping[str, str | None], least: Mapping[str, tuple[int, ...]]) -> str | None:
    """Return what is needed and what is there, for messages; None if all versions suffice.

    Parameters
    ----------
    found : mapping of str to str or None
        Versions by distribution; None where it is not installed.
    least : mapping of str to tuple of int
        Least versions by distribution.
    """
    for name, numbers in least.items():
        if version_numbers(found[name]) < numbers:
            return f"needs {name} {'.'.join(map(str, numbers))} or later and has {found[name] or 'none'}"
    return None


def require_versions(least: Mapping[str, tuple[int, ...]]) -> None:
    """Check the packages of a worker that may have joined after the preflight.

    Parameters
    ----------
    least : mapping of str to tuple of int
        Least versions by distribution.

    Raises
    ------
    RuntimeError
        If one is older, or is not installed.
    """
    unmet = unmet_requirement({name: installed_version(name) for name in least}, least)
    if unmet is not None:
        raise RuntimeError(
            f"{NOT_READY}{worker_place()} joined after this session's first job, and {unmet}: install it there, or "
            "send an environment that has it (spark.archives)"
        )


def worker_place() -> str:
    """Return which worker this is, for messages; each executor has its own working directory."""
    return f"{socket.gethostname()}:{os.getcwd()} ({sys.executable}, {interpreter_abi()})"


def worker_report() -> str:
    """Return as JSON which pyarrow, numpy and flinkcore this worker has."""
    return json.dumps(
        {
            "place": worker_place(),
            "abi": interpreter_abi(),
            "pyarrow": installed_version("pyarrow"),
            "numpy": installed_version("numpy"),
            "package": package_folder(),
            "build": present_build(),
        }
    )


def import_for_tasks(build: str, modules: Iterable[str]) -> None:
    """Import the modules of tasks, if the flinkcore that this worker has is of a build.

    The workers of an executor do so at once in the preflight, and would do so one after the other as they get the first
    tasks of a small log.

    Parameters
    ----------
    build : str
        The driver's.
    modules : iterable of str
        Modules that define the tasks.
    """
    if present_build() != build:
        return
    with suppress(Exception):  # the report lists what is missing
        for module in modules:
            importlib.import_module(module)
        # With the first array that it makes, pyarrow imports pandas, too, where that is installed.
        importlib.import_module("pyarrow").array([0])


def provide_flinkcore(builds: Sequence[str], wheels: Sequence[ShippedWheel]) -> None:
    """Make a build of flinkcore that the driver accepts importable: the installed one, or one from a shipped wheel.

    Parameters
    ----------
    builds : sequence of str
        Builds that the driver accepts.
    wheels : sequence of ShippedWheel

    Raises
    ------
    RuntimeError
        If no wheel fits, or if this worker has already imported another build. The error ends the worker, and a retried
        task gets a new one.
    """
    if present_build() in builds:
        return
    folder, place = package_folder(), worker_place()
    if "flinkcore" in sys.modules:
        raise RuntimeError(
            f"{NOT_READY}{place} has imported another build of it from {folder} before, in a function of this "
            "application's. Install one build of flinkcore everywhere, or leave it out of the executors' environment"
        )
    fitting = [wheel for wheel in wheels if fits(wheel.tag, interpreter_abi())]
    if not fitting:
        found = "no flinkcore" if folder is None else f"another build of flinkcore, in {folder}"
        raise RuntimeError(
            f"{NOT_READY}{place} has {found}, which no executor had when this session's first job began, and no wheel "
            "for it was sent: call flinkcore.spark.ship_flinkcore(spark) before the job, or "
            "ship_flinkcore(spark, wheel=...) with one for its Python and platform"
        )
    sys.path.insert(0, _unpacked(fitting[0].name))
    importlib.invalidate_caches()


def provide_modules(names: Sequence[str]) -> None:
    """Put the user's modules, in their newest versions, first on this worker's path.

    Spark reuses workers for other jobs and sessions. So modules of these names that were imported from elsewhere, or in
    an older version, are removed from `sys.modules`; all but compiled ones, which cannot be imported twice.

    Parameters
    ----------
    names : sequence of str
        The folders into which Spark unpacks them, in the order of the path; each begins with `MODULES`.
    """
    folders = [_unpacked(name) for name in names]
    before = [folder for folder in sys.path if os.path.basename(folder).startswith(MODULES)]
    if folders == before:
        return
    sys.path[:] = [*folders, *(folder for folder in sys.path if folder not in before)]
    importlib.invalidate_caches()
    here = [folder for folder in {*folders, *before} if os.path.isdir(folder)]
    given = {name.partition(".")[0] for folder in here for name in os.listdir(folder)}
    for package in given - sys.stdlib_module_names - {"__main__"}:
        imported = [name for name in sys.modules if name.partition(".")[0] == package]
        if not any(_is_compiled(sys.modules[name]) for name in imported):
            for name in imported:
                del sys.modules[name]


def run_with_flinkcore(
    batches: Any,
    pickled: bytes,
    least: Mapping[str, tuple[int, ...]],
    builds: Sequence[str],
    wheels: Sequence[ShippedWheel],
    modules: Sequence[str],
    archives: Sequence[ShippedArchive],
) -> Iterator[Any]:
    """Yield the results of a task, once this worker has what the task needs.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
    pickled : bytes
        The task, from batches to batches.
    least : mapping of str to tuple of int
        As of `require_versions`.
    builds, wheels
        As of `provide_flinkcore`.
    modules
        As of `provide_modules`.
    archives
        As of `working_directory`.

    Raises
    ------
    RuntimeError
        If the worker lacks something; others as of the task.
    """
    require_versions(least)
    provide_flinkcore(builds, wheels)
    provide_modules(modules)
    with working_directory(archives):
        yield from pickle.loads(pickled)(batches)


@contextmanager
def working_directory(archives: Sequence[ShippedArchive]) -> Iterator[None]:
    """Make a directory that has the user's archives the working directory of this worker within the block.

    Parameters
    ----------
    archives : sequence of ShippedArchive
        Archives; without any, the worker stays in its directory.
    """
    if not archives:
        yield
        return
    from pyspark import SparkFiles

    folder = f"{_unpacked('flinkcore-directory-')}{digest_of(map(repr, archives))}"
    for target_dir, name in archives:
        link = os.path.join(folder, target_dir)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        with suppress(FileExistsError):
            os.symlink(_unpacked(name), link)
    before, files = os.getcwd(), SparkFiles._root_directory
    # Paths that Spark has sent this worker may be relative to its present directory.
    sys.path[:] = [os.path.abspath(path) if path else path for path in sys.path]
    SparkFiles._root_directory = os.path.abspath(SparkFiles.getRootDirectory())
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        SparkFiles._root_directory = files


def _unpacked(name: str) -> str:
    from pyspark import SparkFiles

    folder: str = SparkFiles.get(name)
    return folder


def _is_compiled(module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").endswith((".so", ".pyd"))


cloudpickle.register_pickle_by_value(sys.modules[__name__])
