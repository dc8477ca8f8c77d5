"""Tests of the C++ declarations that Python and C++ share."""

import numpy as np
import pytest

from spurtle.support.errors import UserError
from spurtle_sim.native.header import array, constants, enumeration, struct
from spurtle_sim.native.library import Library, load

ROW = np.dtype([("first", "<u8"), ("some", "u1", 3), ("last", "<u2")], align=True)


def test_a_struct_has_the_members_and_the_padding_of_the_dtype() -> None:
    expected = """\
struct Row {
    uint64_t first;
    uint8_t some[3];
    uint8_t padding_11[1];
    uint16_t last;
    uint8_t padding_14[2];
};
static_assert(sizeof(Row) == 16);"""
    assert struct("Row", ROW) == expected


def test_constants_enumerations_and_arrays() -> None:
    assert constants("FACT_", "uint32_t", {"load": 1, "store": 2}) == (
        "constexpr uint32_t FACT_LOAD = 1;\nconstexpr uint32_t FACT_STORE = 2;"
    )
    assert enumeration("Kind", "uint8_t", {"LOAD": 3}) == "enum class Kind : uint8_t {\n    LOAD = 3,\n};"
    assert array("FAULTS", "uint64_t", [0, 7]) == "constexpr uint64_t FAULTS[] = {0, 7};"


def test_the_struct_of_an_unaligned_dtype_does_not_compile() -> None:
    packed = np.dtype([("small", "u1"), ("large", "<u8")])
    source = f"#include <cstdint>\n{struct('Packed', packed)}\n"
    with pytest.raises(UserError, match="assert"):
        load([Library("packed", {"packed.cpp": source})])
