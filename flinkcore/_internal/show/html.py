"""Texts and tables of texts as HTML, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], is_number: Sequence[bool]
) -> str:
    """Return an HTML table of texts, which are escaped.

    Parameters
    ----------
    columns
        Names, and what stands below them in small letters; none: the table has no head.
    rows
        A text for each column.
    is_number
        Whether the texts of each column are aligned on the right.
    """
    styles = [f' style="text-align:{"right" if number else "left"}"' for number in is_number]
    head = "".join(
        f"<th{style}>{escape(name)}<br><small>{escape(below)}</small></th>"
        for style, (name, below) in zip(styles, columns, strict=bool(columns))
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{style}>{escape(text)}</td>" for style, text in zip(styles, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def html_lines(text: str) -> str:
    """Return lines of text as they are, for HTML."""
    return f"<pre>{escape(text)}</pre>"
