"""Markdown tables, and generated parts of a page."""

import pytest

from docs.markdown import marked_names, rows, table, with_marked, with_table

PAGE = "before\n<!-- other -->\n<!-- end -->\n<!-- rates -->\nold\n<!-- end -->\nafter\n"


def test_a_table_has_a_rule_below_its_head():
    assert table(("a", "b"), ("1", ""), ("2", "3")) == "| a | b |\n| --- | --- |\n| 1 |  |\n| 2 | 3 |"


def test_the_named_table_is_replaced():
    page = with_table(PAGE, "rates", ("a", "b"), [("1", "2")])
    assert page == PAGE.replace("old", "| a | b |\n| --- | --- |\n| 1 | 2 |")
    assert with_table(page, "rates", ("a", "b"), [("1", "2")]) == page


def test_marked_parts_of_a_page_are_listed_and_replaced():
    assert marked_names(PAGE) == ["other", "rates"]
    assert with_marked(PAGE.replace("rates", "x [1]"), "x [1]", "new") == PAGE.replace("rates", "x [1]").replace(
        "old", "new"
    )


def test_rows_are_read_back():
    expected = {"`x`": ("`x`", "", "3"), "y": ("y", "4", "")}
    assert rows(with_table(PAGE, "rates", ("a", "b", "c"), expected.values()), "rates") == expected
    assert rows(PAGE, "other") == {}


def test_a_page_without_the_table_is_an_error():
    with pytest.raises(ValueError, match=r"must have a line `<!-- rate -->`, and `<!-- end -->` below it"):
        rows(PAGE, "rate")
    with pytest.raises(ValueError, match="must have a line"):
        with_table(PAGE.replace("<!-- end -->", ""), "rates", (), [])
