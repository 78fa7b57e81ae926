"""Wheels of flinkcore: one made of the package that this process runs, or files that the user has built."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import sysconfig
import zipfile
import zlib
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

import flinkcore
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.spark.shipping.archives import stored, zipped
from flinkcore.spark.shipping.worker_environment import build_of, digest_of, interpreter_abi, is_module_line

SUFFIXES = (
    ".py",
    ".so",
    ".pyd",
    ".pyi",
    ".pxd",
    ".typed",
    ".parquet",
    ".csv",
    ".md",
    ".ipynb",
    ".json",
    ".java",
)
"""Endings of the files that belong to a wheel."""


@dataclass(frozen=True)
class Wheel:
    """A wheel of flinkcore.

    Attributes
    ----------
    path : pathlib.Path
    build : str
        Digest of the modules in it: what `worker_environment.build_of` returns where the wheel is unpacked.
    sources : str
        Digest of its Python modules alone, which is the same in the wheels of one version for several platforms.
    tag : str
        Python, ABI and platform, such as `cp311-cp311-manylinux_2_28_x86_64`.
    """

    path: Path
    build: str
    sources: str
    tag: str

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Wheel:
        """Return the wheel that a file is.

        Raises
        ------
        SourceError
            If it is not a wheel of flinkcore, or cannot be read.
        """
        found = Path(path)
        parts = found.name.removesuffix(".whl").split("-")
        if not found.name.endswith(".whl") or len(parts) < 5 or parts[0] != "flinkcore":
            raise SourceError(
                f"{found} is not a wheel of flinkcore: its name would be like "
                f"flinkcore-{flinkcore.__version__}-cp311-cp311-manylinux_2_28_x86_64.whl",
                file=str(found),
            )
        try:
            with zipfile.ZipFile(found) as packed:
                text = packed.read(f"{'-'.join(parts[:2])}.dist-info/RECORD").decode()
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as failure:
            raise SourceError(
                f"{found} cannot be read as a wheel: {failure}. Build it, or copy it, once more",
                file=str(found),
            ) from failure
        lines = [line for line in text.splitlines() if is_module_line(line)]
        return cls(found, digest_of(lines), _sources(lines), "-".join(parts[-3:]))


def _sources(lines: list[str]) -> str:
    return digest_of(line for line in lines if line.rsplit(",", 2)[0].endswith(".py"))


@cache
def installed_wheel() -> Wheel:
    """Return a wheel, made once per process, of the package that this process runs.

    It holds the files of the installed package or source tree, and metadata, so that pip could install it.
    """
    package = Path(flinkcore.__file__).parent
    files = {
        file.relative_to(package.parent).as_posix(): file.read_bytes()
        for file in package.rglob("*")
        # As in a built wheel, a folder without __init__.py is not a package.
        if file.suffix in SUFFIXES and (file.parent / "__init__.py").exists() and not _has_lost_source(file)
    }
    information = f"flinkcore-{flinkcore.__version__}.dist-info"
    files[f"{information}/METADATA"] = (
        _metadata("METADATA") or f"Metadata-Version: 2.1\nName: flinkcore\nVersion: {flinkcore.__version__}\n"
    ).encode()
    entry_points = _metadata("entry_points.txt")
    if entry_points is not None:  # a source tree that is not installed has none
        files[f"{information}/entry_points.txt"] = entry_points.encode()
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: flinkcore\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
    )
    entries = [f"{name},sha256={_hash(content)},{len(content)}" for name, content in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*entries, f"{information}/RECORD,,", ""]).encode()
    return Wheel.of(stored(f"flinkcore-{flinkcore.__version__}-{_tag()}.whl", zipped(files)))


def _has_lost_source(file: Path) -> bool:
    """Return whether a file is a native module, in a source tree that has no source of it any more."""
    sources = file.parents[2] / "_native"
    name = file.name.partition(".")[0]
    return (
        file.suffix in (".so", ".pyd")
        and file.parent.name == "_native"
        and sources.is_dir()
        and not (sources / f"{name}.pyx").exists()
        and not name.startswith("_")  # of Cython's own
    )


def _tag() -> str:
    """Return the tag of wheels for interpreters like this one."""
    python = f"cp{sysconfig.get_config_var('py_version_nodot')}"
    threads = sysconfig.get_config_var("abiflags") or ""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if "musl" in interpreter_abi():  # which the platform does not name
        platform = platform.replace("linux", "musllinux_1_2", 1)
    return f"{python}-{python}{threads}-{platform}"


def _metadata(name: str) -> str | None:
    """Return a file of the installed distribution's metadata, or None if it is not there."""
    try:
        return importlib.metadata.distribution("flinkcore").read_text(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def check_same_version(wheel: Wheel) -> None:
    """Refuse a wheel whose Python modules are not those that this process runs.

    Raises
    ------
    ConfigurationError
        If so.
    """
    if wheel.sources != installed_wheel().sources:
        raise ConfigurationError(
            f"{wheel.path} is not of the flinkcore that runs here ({flinkcore.__version__}, "
            f"{Path(flinkcore.__file__).parent}): its Python modules differ. Driver and executors need one version"
        )


@cache
def own_build() -> str:
    """Return the build of the package that this process runs."""
    return build_of(str(Path(flinkcore.__file__).parent))
