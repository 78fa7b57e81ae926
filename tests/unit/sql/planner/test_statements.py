"""Scripts are split where Flink's client splits them, and statements keep their places."""

import pytest

from flinkcore.sql.planner.statements import statements_of


def test_semicolons_of_texts_names_and_comments_end_nothing() -> None:
    script = "SELECT 'a;''b', `x;``y` -- c;\nFROM t /* d; */;\n  SELECT 2"
    first, second = statements_of(script)
    assert first.text.split() == ["SELECT", "'a;''b',", "`x;``y`", "FROM", "t"]
    assert (second.text, second.line, second.column) == ("SELECT 2", 3, 3)


def test_a_statement_is_padded_to_its_place_in_the_script() -> None:
    script = "-- first\nSET 'a' = 'b';\n/* x\n y */ SELECT a\nFROM t;"
    _, second = statements_of(script)
    assert second.padded == "\n\n\n      SELECT a\nFROM t"
    lines, places = script.split("\n"), second.padded.split("\n")
    assert places[3].index("SELECT") == lines[3].index("SELECT")
    assert places[4] == "FROM t"


def test_hints_stay() -> None:
    (only,) = statements_of("SELECT /*+ OPTIONS('a'='b;c') */ a FROM t")
    assert "/*+ OPTIONS('a'='b;c') */" in only.text


@pytest.mark.parametrize("begin", ["EXECUTE STATEMENT SET\nBEGIN\n", "BEGIN STATEMENT SET;\n"])
def test_a_statement_set_is_one_statement(begin: str) -> None:
    script = f"SET 'a' = 'b';\n{begin}INSERT INTO x SELECT 1;\nINSERT INTO y SELECT 2;\nEND;\nSELECT 3"
    _, inserts, query = statements_of(script)
    assert inserts.text.startswith("EXECUTE STATEMENT SET")
    assert inserts.text.endswith("INSERT INTO y SELECT 2;\nEND")
    assert (inserts.line, query.line) == (2, script.count("\n") + 1)
    assert inserts.is_planned
    assert not inserts.is_query


@pytest.mark.parametrize(
    ("text", "is_planned", "is_query"),
    [
        ("select 1", True, True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True, True),
        ("(SELECT 1) UNION ALL (SELECT 2)", True, True),
        ("insert into t select 1", True, False),
        ("CREATE VIEW v AS SELECT 1", False, False),
        ("SET 'a' = 'b'", False, False),
    ],
)
def test_queries_and_insertions_are_told_by_their_first_word(
    text: str, is_planned: bool, is_query: bool
) -> None:
    (only,) = statements_of(text)
    assert (only.is_planned, only.is_query) == (is_planned, is_query)


def test_a_script_without_statements_has_none() -> None:
    assert statements_of(" ;; -- nothing\n;") == []
