#!/usr/bin/env python3
"""Print what CHANGELOG.md says of a version: .ci/release_notes.py 0.3.0

Links to files of the project become links to the same files in the version's tag, if ``GITHUB_SERVER_URL`` and
``GITHUB_REPOSITORY`` say where the project is.
"""

import os
import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes_of(version: str, changelog: str) -> str:
    """Return the section of a version, without its heading.

    Raises
    ------
    SystemExit
        If the section is missing or empty.
    """
    heading = rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)"
    found = re.search(heading, changelog, re.MULTILINE)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section '## [{version}]' with text")
    return found[1].strip() + "\n"


def with_addresses(notes: str, version: str) -> str:
    """Return notes whose links to files of the project also work elsewhere."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not server or not repository:
        return notes
    return re.sub(r"\]\((?!https?://|#)", f"]({server}/{repository}/blob/v{version}/", notes)


if __name__ == "__main__":
    (version,) = sys.argv[1:]
    print(with_addresses(notes_of(version, CHANGELOG.read_text(encoding="utf-8")), version), end="")
