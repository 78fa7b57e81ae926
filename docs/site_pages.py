"""What the site has beside docs/: pages of other folders, and the reference of all names that users import.

MkDocs calls the functions as hooks; mkdocstrings takes `Docstrings`.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "flinkcore/datastream/README.md": "pyflink-programs.md",
    "flinkcore/examples/native_inactivity/README.md": "native-modules.md",
    "flinkcore/operators/README.md": "flink-classes.md",
    "flinkcore/testing/README.md": "testing.md",
}
"""Pages that lie beside the code, by their place on the site."""

REFERENCE = {
    "common": (
        "flinkcore.common",
        "flinkcore.common.typeinfo",
        "flinkcore.common.time",
        "flinkcore.common.types",
    ),
    "window": ("flinkcore.datastream.window",),
    "aggregates": ("flinkcore.datastream.aggregates",),
    "functions": ("flinkcore.datastream.functions", "flinkcore.datastream.async_retry_strategies"),
    "state": ("flinkcore.datastream.state",),
    "datastream": (
        "flinkcore.datastream",
        "flinkcore.datastream.timestamps",
        "flinkcore.datastream.checkpoint_storage",
        "flinkcore.datastream.state_backend",
    ),
    "connectors": (
        "flinkcore.datastream.connectors",
        "flinkcore.datastream.connectors.print_sink",
        "flinkcore.datastream.connectors.file_system",
        "flinkcore.datastream.connectors.kafka",
        "flinkcore.datastream.formats.csv",
        "flinkcore.datastream.formats.json",
        "flinkcore.datastream.formats.avro",
        "flinkcore.datastream.formats.parquet",
        "flinkcore.datastream.formats.orc",
    ),
    "results": ("flinkcore",),
    "analysis": ("flinkcore.analysis",),
    "savepoints": ("flinkcore.savepoints",),
    "spark": ("flinkcore.spark",),
    "testing": ("flinkcore.testing",),
    "others": (
        "flinkcore.metrics",
        "flinkcore.table",
        "flinkcore.table.expression",
        "flinkcore.table.expressions",
        "flinkcore.table.types",
        "flinkcore.table.udf",
        "flinkcore.table.window",
        "flinkcore.errors",
    ),
    "native": tuple(
        f"flinkcore._native.{name}" for name in ("arrow", "memory", "key_dictionary", "keys", "timers")
    ),
}
"""Modules by page, in the order in which a name that several have finds its place."""

CONTRACTS = ("arrow", "memory", "key_dictionary", "keys", "entry_heap", "timer_queue", "timers")
"""Native modules that others may cimport."""

_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_SETUP = re.compile(r"^<!-- setup\n.*?^-->\n", re.DOTALL | re.MULTILINE)
_ROLE = re.compile(r":(?:class|meth|mod|func|attr|data):`~?\.?([^`]+)`")


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module is for: its `__all__`, those of its stub, or the classes that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    if module.__name__.startswith("flinkcore._native."):
        stub = ROOT / "flinkcore" / "_native" / f"{module.__name__.rpartition('.')[2]}.pyi"
        return re.findall(r"^(?:class|def) ([A-Za-z]\w*)", stub.read_text(encoding="utf-8"), re.MULTILINE)
    return [
        name
        for name, found in vars(module).items()
        if inspect.isclass(found) and found.__module__ == module.__name__ and not name.startswith("_")
    ]


def reference_pages() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the name of each page of the reference, its Markdown, and where the names of its modules are described."""
    homes: dict[int, str] = {}
    for page, modules in REFERENCE.items():
        text, places = "", {}
        for name in modules:
            module = import_module(name)
            also = []
            text += f"# {name}\n\n{(module.__doc__ or '').strip()}\n\n"
            for each in public_names(module):
                found = getattr(module, each, None)  # a protocol may be in the stub alone
                key = id(found) if callable(found) and found is not None else hash((each, repr(found)))
                places[f"{name}.{each}"] = homes.setdefault(key, f"{name}.{each}")
                if places[f"{name}.{each}"] == f"{name}.{each}":
                    text += _description(name, each, found)
                else:
                    also.append(f"[`{each}`][{places[f'{name}.{each}']}]")
            if also:
                text += f"Also here: {', '.join(also)}.\n\n"
        yield page, text + (_contracts() if page == "native" else ""), places


def _description(module: str, name: str, found: Any) -> str:
    """Return the directive for a name; what a class inherits from bases that are not public is described with it."""
    text = f"::: {module}.{name}\n"
    if inspect.isclass(found):
        hidden = [
            base for base in found.__mro__[1:-1] if base.__name__.startswith("_") or base.__name__ in _HIDDEN
        ]
        inherited = sorted({each for base in hidden for each in vars(base) if not each.startswith("_")})
        if inherited:
            text += f"    options:\n      inherited_members: {inherited}\n"
    return text + "\n"


_HIDDEN = (
    *(
        "ConfiguredStream",
        "WithoutStep",
        "Stream",
        "ExtendableStream",
        "LogRows",
        "AnalysedLog",
        "WindowsOfStream",
        "OutputRows",
        "LogEnvironment",
        "EnvironmentSettings",
        "JobDependencies",
    ),
    *("TwoConnected", "ConnectedWithBroadcast", "JoinInTime", "JoinWithinBounds"),
)
"""Bases of public classes that are not public themselves, beside those whose names begin with an underscore."""


def _contracts() -> str:
    text = "# What may be cimported\n\n"
    for name in CONTRACTS:
        contract = (ROOT / "flinkcore" / "_native" / f"{name}.pxd").read_text(encoding="utf-8")
        text += f"## flinkcore._native.{name}.pxd\n\n```cython\n{contract}```\n\n"
    return text


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    for source, place in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    pages = list(reference_pages())
    for page, text, _ in pages:
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    files.append(File.generated(config, "reference/index.md", content=_index(pages)))
    return files


def _index(pages: list[tuple[str, str, dict[str, str]]]) -> str:
    rows = [
        f"| [`{module}`]({page}.md) | {(import_module(module).__doc__ or '').strip().splitlines()[0]} |"
        for page, _, _ in pages
        for module in REFERENCE[page]
    ]
    return (
        "# Reference\n\nWhat programs import, by module.\n\n| module | |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out the setup of snippets, and turn links between files of the project into links between pages."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    source = next((source for source, place in ELSEWHERE.items() if place == here), f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        shown, named, heading = found.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), named))
        if target in ELSEWHERE:
            target = ELSEWHERE[target]
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
        else:  # the site has no files of the code
            return shown[1:-1]
        return f"{shown}({posixpath.relpath(target, posixpath.dirname(here) or '.')}{heading or ''})"

    parts = _FENCED.split(_SETUP.sub("", markdown))
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))


class Docstrings(griffe.Extension):
    """Docstrings as Markdown, with what no source says: those of native modules, and where looked-up names are."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        package = import_module("flinkcore.table")
        for name in set(package.__all__) - set(vars(package)):
            found = getattr(package, name)
            alias = griffe.Alias(name, f"{found.__module__}.{found.__name__}")
            pkg.set_member(f"table.{name}", alias)
            alias.resolve_target()  # so that it is one of the object's names

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None and obj.path.startswith("flinkcore._native."):
            module, _, name = obj.path.removeprefix("flinkcore._native.").partition(".")
            found: Any = import_module(f"flinkcore._native.{module}")
            for part in filter(None, name.split(".")):
                found = getattr(found, part, None)
            if callable(found) and found.__doc__ and not obj.name.startswith("_"):
                text = re.sub(
                    rf"^{obj.name}\(.*\n+", "", inspect.cleandoc(found.__doc__)
                )  # Cython's signature
                obj.docstring = griffe.Docstring(text, parent=obj)
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"::\n\n", ":\n\n", text)
