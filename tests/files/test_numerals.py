"""Test of counts with their nouns."""

from spurtle.support.numerals import counted


def test_counts_have_the_number_of_their_noun() -> None:
    assert [counted(count, "record") for count in (0, 1, 2, 4096)] == [
        "0 records",
        "1 record",
        "2 records",
        "4,096 records",
    ]
    assert [counted(count, "access") for count in (1, 2)] == ["1 access", "2 accesses"]
