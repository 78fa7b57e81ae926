"""The site is built without a warning, and its reference has every name that users import."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.equipment.public_packages import PUBLIC_PACKAGES

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

ROOT = Path(__file__).parents[2]
WHOLE = bool(os.environ.get("CI"))
"""Whether the site is built with its reference, which takes most of the time."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors; in CI with its reference."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    environment = {**os.environ, "FLINKCORE_DOCS_REFERENCE": str(WHOLE).lower(), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def described(site: Path) -> set[str]:
    """The names in the inventory of the reference."""
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}


def public_modules() -> list[ModuleType]:
    """All modules of the API that say what they are for."""
    files = [file for package in PUBLIC_PACKAGES for file in (ROOT / "flinkcore" / package).rglob("*.py")]
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if re.search(r"^__all__ = ", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    return [importlib.import_module(name) for name in ("flinkcore", *names)]


def site_pages() -> ModuleType:
    """The hooks of the site, which list the modules of the reference."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_name_that_users_import_has_a_place_in_the_reference() -> None:
    pages = site_pages()
    described = {
        id(getattr(importlib.import_module(module), name))
        for modules in pages.REFERENCE.values()
        for module in modules
        if "._native." not in module
        for name in pages.public_names(importlib.import_module(module))
    }
    modules = public_modules()
    assert len(modules) > 15
    names = [(module, name) for module in modules for name in module.__all__]
    assert [
        f"{module.__name__}.{name}" for module, name in names if id(getattr(module, name)) not in described
    ] == []


def test_the_reference_names_no_private_module() -> None:
    modules = [module for named in site_pages().REFERENCE.values() for module in named]
    for module in modules:
        parts = module.split(".")
        for package in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
            assert "Private" not in (importlib.import_module(package).__doc__ or ""), module


def test_pages_are_there_and_a_reader_sees_no_setup_and_no_role_of_another_markup(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 35
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<!-- setup" not in text
        assert not re.search(r":(class|meth|func|mod):<code>", text), page


@pytest.mark.skipif(not WHOLE, reason="the reference is built in CI")
def test_the_reference_describes_every_name(site: Path) -> None:
    names = described(site)
    assert [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if f"{module.__name__}.{name}" not in names
    ] == []
    for stub in ("arrow", "memory", "key_dictionary", "keys", "timers"):
        text = (ROOT / "flinkcore" / "_native" / f"{stub}.pyi").read_text(encoding="utf-8")
        for name in re.findall(r"^class ([A-Z]\w+)", text, re.MULTILINE):
            assert f"flinkcore._native.{stub}.{name}" in names
    assert "timer_queue_add" in (site / "reference" / "native" / "index.html").read_text(encoding="utf-8")
