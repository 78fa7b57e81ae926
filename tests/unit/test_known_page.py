"""What docs/known.md prints is what its code prints."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "known.md"


def test_the_code_of_the_page_prints_what_the_page_says() -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    printed: list[str] = []
    for kind, text in blocks:
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(text, names)
            printed.append(output.getvalue())
        elif kind == "text":
            assert text == printed[-1]
    assert [kind for kind, _ in blocks].count("text") == len(printed) > 1
