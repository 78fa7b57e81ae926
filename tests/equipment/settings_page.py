"""The tables of docs/settings.md, as the package has them: `python tests/equipment/settings_page.py` writes them."""

import re
from pathlib import Path

from flinkcore.common.settings.flink_settings import Meaning, Setting, all_settings, families
from flinkcore.common.settings.setting_types import as_text

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

_TABLE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page_with_tables() -> str:
    """The page with the tables that belong there."""
    return _TABLE.sub(lambda found: found[1] + _table(found[2]) + found[3], PAGE.read_text(encoding="utf-8"))


def _table(name: str) -> str:
    if name == "families":
        return _families()
    rows = [
        _row(setting) for key, setting in sorted(all_settings().items()) if setting.meaning is Meaning[name]
    ]
    return "".join(["| key | default | |\n", "|---|---|---|\n", *rows])


def _row(setting: Setting[object]) -> str:
    keys = f"`{setting.name}`"
    if setting.fallback_keys:
        keys += f"; before: {', '.join(f'`{key}`' for key in setting.fallback_keys)}"
    default = "" if setting.default is None else as_text(setting.default)
    return f"| {keys} | {f'`{default}`' if default else ''} | {setting.note} |\n"


def _families() -> str:
    by_note: dict[str, list[str]] = {}
    for family, note in families().items():
        by_note.setdefault(note, []).append(f"`{family}`")
    rows = [f"| {', '.join(keys)} | {note} |\n" for note, keys in by_note.items()]
    return "".join(["| keys, or beginnings of keys that end with a dot | |\n", "|---|---|\n", *rows])


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(), encoding="utf-8")
