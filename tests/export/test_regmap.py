"""Descriptions of System registers: SVD, C header, list in a terminal, pages of the documents."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from docs.register_pages import REGISTERS, page
from spurtle import arch
from spurtle.arch import BSC, EC, PCT, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.export import regmap
from spurtle.export.header import header
from spurtle.export.svd import svd
from spurtle.support.version import INTERFACE_VERSION
from spurtle_sim.cli import main
from spurtle_sim.model.pe import PEState, el2_enabled, owner, owns
from spurtle_sim.model.registers import Outcome, Registers, access
from tests.support.linux_driver import library
from tests.support.seeds import SEED
from tests.support.tiers import configurations

GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="a C compiler (gcc) is not installed")

configs = pytest.mark.parametrize("config", configurations(CONFIGS))
registers = pytest.mark.parametrize("register", REGISTERS, ids=lambda register: register.name)

ORDER = {
    "device": "name version description licenseText addressUnitBits width size peripherals",
    "peripherals": "peripheral",
    "peripheral": "name description baseAddress addressBlock registers",
    "addressBlock": "offset size usage",
    "registers": "register",
    "register": "name description addressOffset access resetValue fields",
    "fields": "field",
    "field": "name description lsb msb enumeratedValues",
    "enumeratedValues": "enumeratedValue",
    "enumeratedValue": "name value",
}
"""Elements of CMSIS-SVD 1.3 that are used, in the order of its schema."""
REPEATED = {"peripheral", "register", "field", "enumeratedValue"}
OPTIONAL = {"fields", "enumeratedValues"}


def texts(element: ElementTree.Element) -> dict[str, str]:
    return {child.tag: child.text or "" for child in element}


def test_bit_ranges() -> None:
    assert regmap.bit_ranges(0) == ""
    assert regmap.bit_ranges(1) == "0"
    assert regmap.bit_ranges(0xC000_0000_0000_00FB) == "63:62, 7:3, 1:0"
    assert regmap.bit_ranges((1 << 64) - 1) == "63:0"


def test_fields_of_a_configuration() -> None:
    minimal, every = CONFIGS["minimal"], CONFIGS["v1p4"]
    assert [*regmap.fields(minimal, arch.PMSFCR_EL1)] == ["FE", "FT", "FL", "B", "LD", "ST"]
    assert [*regmap.fields(minimal, arch.PMBLIMITR_EL1)] == ["E", "LIMIT"]
    assert [*regmap.fields(minimal, arch.PMSICR_EL1)] == ["COUNT"]
    assert regmap.values(minimal, arch.PMSCR_EL1, arch.PMSCR_EL1.fields["PCT"]) == [PCT.PHYSICAL]
    lacking = {register.name: register.fields.keys() - regmap.fields(every, register) for register in every.accessors}
    assert {name: fields for name, fields in lacking.items() if fields} == {"PMBLIMITR_EL1": {"nVM"}}
    assert regmap.values(every, arch.PMSCR_EL12, arch.PMSCR_EL12.fields["PCT"]) == [*PCT]


@configs
def test_reset_values_agree_with_the_reference_model(config: SPUConfig) -> None:
    reference = Registers.after_reset(config)
    for register in config.registers:
        assert regmap.reset(config, register) == reference.read(config, register, PEState(el=3)), register.name


@configs
def test_svd_has_the_order_of_its_schema(config: SPUConfig) -> None:
    device = ElementTree.fromstring(svd(config).encode())
    assert (device.tag, device.get("schemaVersion")) == ("device", "1.3")
    for element in device.iter():
        tags = [child.tag for child in element]
        if element.tag not in ORDER:
            assert not tags and element.text and element.text.strip(), element.tag
            continue
        order = ORDER[element.tag].split()
        assert tags == sorted(tags, key=order.index)
        assert [tag for tag in order if tag not in tags and tag not in OPTIONAL] == []
        assert [tag for tag in {*tags} - REPEATED if tags.count(tag) > 1] == []
    assert [name.text for name in device.iter("name") if not re.fullmatch(r"[A-Za-z_]\w*", name.text or "")] == []


@configs
def test_svd_describes_the_implemented_registers(config: SPUConfig) -> None:
    device = ElementTree.fromstring(svd(config).encode())
    block = device.find(".//addressBlock")
    assert block is not None
    found = {(register.findtext("name") or ""): register for register in device.iter("register")}
    assert [*found] == [register.name for register in config.accessors]
    for register in config.accessors:
        element = texts(found[register.name])
        offset = int(element["addressOffset"], 16)
        assert offset % 8 == 0 and offset + 8 <= int(texts(block)["size"], 16)
        encoding = offset >> 14, offset >> 10 & 15, offset >> 6 & 15, offset >> 3 & 7
        assert encoding == (register.op1, register.crn, register.crm, register.op2)
        assert element["access"] == ("read-only" if register.read_only else "read-write")
        assert int(element["resetValue"], 16) == regmap.reset(config, register)
        covered = 0
        for field in found[register.name].iter("field"):
            text = texts(field)
            lsb, msb = int(text["lsb"]), int(text["msb"])
            mask = (2 << msb) - (1 << lsb)
            assert mask == register.fields[text["name"]].mask
            assert mask & covered == 0, "fields must not overlap"
            assert mask & regmap.implemented(config, register)
            covered |= mask
            partly = mask & regmap.implemented(config, register) != mask
            assert ("Implemented bits:" in text["description"]) == partly
        assert regmap.implemented(config, register) & ~covered == 0


def test_svd_names_values() -> None:
    device = ElementTree.fromstring(svd(CONFIGS["minimal"]).encode())
    named = {
        f"{register.findtext('name')}.{field.findtext('name')}": {
            value.findtext("name"): int(value.findtext("value") or "", 16) for value in field.iter("enumeratedValue")
        }
        for register in device.iter("register")
        for field in register.iter("field")
    }
    assert {name: values for name, values in named.items() if values} == {
        "PMSCR_EL1.PCT": {"PHYSICAL": 1},
        "PMSIDR_EL1.ALTCLK": {"NONE": 0, "SMCU": 1, "IMPLEMENTATION_DEFINED": 15},
        "PMBSR_EL1.EC": {code.name: code for code in EC},
    }


def expected_macros(config: SPUConfig) -> dict[str, int | str]:
    """Return the macros of the header and their values, from `arch`."""
    macros: dict[str, int | str] = {"INTERFACE_VERSION": INTERFACE_VERSION, "ID_AA64DFR0_EL1_PMSVER": config.version}
    for register in config.accessors:
        name = register.name
        macros[f"{name}_NAME"] = f"S3_{register.op1}_C{register.crn}_C{register.crm}_{register.op2}"
        macros[f"{name}_SYSREG"] = 0x180000 + register.op1 * 0x10000 + register.crn * 0x1000 + register.crm * 0x100
        macros[f"{name}_SYSREG"] += register.op2 * 0x20
        if register.read_only:
            macros[f"{name}_VALUE"] = config.pmsidr if register is arch.PMSIDR_EL1 else config.pmbidr
        else:
            macros[f"{name}_WRITABLE"] = config.writable(arch.PMSCR_EL1 if register is arch.PMSCR_EL12 else register)
        for field_name, field in regmap.fields(config, register).items():
            macros[f"{name}_{field_name}_SHIFT"] = field.lsb
            macros[f"{name}_{field_name}_MASK"] = field.mask
            for value in regmap.values(config, register, field):
                macros[f"{name}_{field_name}_{value.name}"] = value
    macros |= {f"PMBSR_EL1_BSC_{code.name}": code for code in BSC}
    return {f"{config.module.upper()}_{name}": value for name, value in macros.items()}


@GCC
@configs
def test_header_compiles_and_has_the_values_of_arch(config: SPUConfig, tmp_path: Path) -> None:
    (tmp_path / f"{config.module}.h").write_text(header(config))
    expected = expected_macros(config)
    prints = [
        f'    printf("{name} %s\\n", {name});'
        if isinstance(value, str)
        else f'    printf("{name} %" PRIu64 "\\n", (uint64_t){name});'
        for name, value in expected.items()
    ]
    include = f'#include "{config.module}.h"'
    program = [include, include, "#include <inttypes.h>", "#include <stdio.h>", "int main(void)", "{", *prints]
    (tmp_path / "main.c").write_text("\n".join([*program, "    return 0;", "}", ""]))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["gcc", *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    run = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    found = dict(line.split(" ") for line in run.stdout.splitlines())
    assert found == {name: value if isinstance(value, str) else f"{value:d}" for name, value in expected.items()}
    defined = re.findall(r"^#define (\w+) +\S", header(config), re.MULTILINE)
    assert sorted(defined) == sorted(expected)


def preprocess(headers: Mapping[str, str], folder: Path) -> str:
    """Return the messages of the preprocessor on a file that includes all headers."""
    for name, text in headers.items():
        (folder / name).write_text(text)
    (folder / "all.c").write_text("".join(f'#include "{name}"\n' for name in headers))
    command = ["gcc", "-E", "-Wall", "-Wextra", "-o", "all.i", "all.c"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


@GCC
def test_headers_of_all_configurations_in_one_file(tmp_path: Path) -> None:
    headers = {f"{config.module}.h": header(config) for config in CONFIGS.values()}
    assert preprocess(headers, tmp_path) == ""
    again = {"one.h": headers["spurtle_minimal.h"], "two.h": "#define SPURTLE_MINIMAL_PMSCR_EL1_NAME 1\n"}
    assert "redefined" in preprocess(again, tmp_path)


@GCC
def test_headers_with_that_of_linux(tmp_path: Path) -> None:
    source = library.find_source("6.12")
    if source is None:
        pytest.skip("Linux 6.12 is not installed: apt-get install linux-source-6.12")
    linux = library.sysreg_defs(source)
    assert re.search(r"^#define PMSCR_EL1_PCT_MASK\s", linux, re.MULTILINE)
    headers = {f"{config.module}.h": header(config) for config in CONFIGS.values()}
    assert preprocess({"sysreg-defs.h": linux, **headers}, tmp_path) == ""


def test_encodings_are_those_of_linux() -> None:
    """Numbers of SYS_PMSCR_EL1, SYS_PMSDSFR_EL1, SYS_PMBIDR_EL1 and SYS_PMSCR_EL2 in Linux."""
    macros = dict(re.findall(r"#define SPURTLE_V1P4_(\w+_SYSREG) +UINT32_C\((\w+)\)", header(CONFIGS["v1p4"])))
    assert macros["PMSCR_EL1_SYSREG"] == "0x189900"
    assert macros["PMSDSFR_EL1_SYSREG"] == "0x189a80"
    assert macros["PMBIDR_EL1_SYSREG"] == "0x189ae0"
    assert macros["PMSCR_EL2_SYSREG"] == "0x1c9900"


def test_text_is_the_same_in_each_process() -> None:
    text = (
        "import sys; from spurtle.config import CONFIGS; from spurtle.export.header import header; "
        "from spurtle.export.svd import svd; config = CONFIGS['v1p4']; "
        "sys.stdout.write(svd(config) + header(config))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_files_are_next_to_the_verilog(tmp_path: Path) -> None:
    config = CONFIGS["minimal"]
    assert main(["verilog", "--config", config.name, "-o", str(tmp_path)]) == 0
    folder = tmp_path / config.name
    assert (folder / f"{config.module}.svd").read_text() == svd(config)
    assert (folder / f"{config.module}.h").read_text() == header(config)


def test_list_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for name, config in CONFIGS.items():
        assert main(["registers", "--config", name]) == 0
        lines = capsys.readouterr().out.splitlines()
        heads = [line for line in lines if not line.startswith(" ")]
        assert [head.split(":")[0] for head in heads] == [
            f"{register.name} ({register.assembler_name})" for register in config.accessors
        ]
        fields = sum(len(regmap.fields(config, register)) for register in config.accessors)
        assert len(lines) - len(heads) == fields
    assert any(re.fullmatch(r" +2:1 +FM +Fill mode: .* 0x0 FILL, 0x2 DISCARD\.", line) for line in lines)
    assert any(re.match(r" +15:12 +MaxSize = 7 ", line) for line in lines)


@pytest.mark.parametrize("arguments", [[], ["--config", "nonsense"], ["--config", "minimal", "more"]])
def test_list_with_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["registers", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("spurtle: ")


def tables(register: Register, heading: str) -> list[list[list[str]]]:
    """Return the tables below a heading of the page of a register, as rows of cells without the line below the head."""
    _, _, rest = page(register).partition(f"\n## {heading}\n")
    found: list[list[list[str]]] = []
    for block in rest.partition("\n## ")[0].split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if lines:
            rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
            assert len({len(row) for row in rows}) == 1
            found.append([rows[0], *rows[2:]])
    return found


@registers
def test_a_page_shows_each_bit_once(register: Register) -> None:
    ranges: list[tuple[int, int]] = []
    for bits, names in tables(register, "Bits"):
        for text, name in zip(bits, names, strict=True):
            msb, _, lsb = text.partition(":")
            ranges.append((int(msb), int(lsb or msb)))
            for bit in range(ranges[-1][1], ranges[-1][0] + 1):
                fields = {other: field.width for other, field in register.fields.items() if field.mask >> bit & 1}
                # Where a field is a part of another one, the page shows the part.
                assert name in fields and fields[name] == min(fields.values()) if fields else name == "RES0"
    assert (ranges[0][0], ranges[-1][1]) == (63, 0)
    assert all(upper[1] == lower[0] + 1 and upper[0] >= upper[1] for upper, lower in pairwise(ranges))


@registers
def test_a_page_lists_the_configurations_with_a_field(register: Register) -> None:
    ((_, *rows),) = tables(register, "Fields")
    assert [row[1] for row in rows] == [*register.fields]
    ((_, *configurations),) = tables(register, "Configurations")
    present = [row[0] for row in configurations if row[1] != "not implemented: UNDEFINED"]
    assert present == [name for name, config in CONFIGS.items() if register in config.accessors]
    if not register.read_only:
        for _, name, _, where in rows:
            having = {"all": present, "none: RES0": []}.get(where, where.split(", "))
            assert having == [one for one in present if name in regmap.fields(CONFIGS[one], register)]


CONDITIONS = {
    "EL2 is not enabled, or HCR_EL2.E2H is 0": lambda config, pe: not (host(config, pe)),
    "EL2 is enabled, and HCR_EL2.E2H is 1": lambda config, pe: host(config, pe),
    "MDCR_EL2.TPMS is 1": lambda config, pe: pe.mdcr_el2_tpms,
    "MDCR_EL2.E2PB[0] is 0": lambda config, pe: pe.mdcr_el2_e2pb & 1 == 0,
    "another Security state owns the Profiling Buffer, or MDCR_EL3.NSPB[0] is 0": lambda config, pe: (
        not owns(config, owner(config, pe), pe.ns, pe.nse) or pe.mdcr_el3_nspb & 1 == 0
    ),
    "MDCR_EL3.EnPMSN is 0": lambda config, pe: pe.mdcr_el3_enpmsn == 0,
    "MDCR_EL3.EnPMS3 is 0": lambda config, pe: pe.mdcr_el3_enpms3 == 0,
}


def host(config: SPUConfig, pe: PEState) -> bool:
    return el2_enabled(config, pe, pe.ns) and pe.hcr_el2_e2h == 1


def applies(
    config: SPUConfig, register: Register, write: int, pe: PEState, where: str, condition: str, then: str
) -> bool:
    """Return whether a row of the table applies, as docs/reference/registers.md defines it."""
    if where != "any other" and f"EL{pe.el}" not in where.split(", "):
        return False
    traps = {"trap to EL2": el2_enabled(config, pe, pe.ns), "trap to EL3": config.el3}
    if not traps.get(then, True):
        return False
    if condition in ("", "MSR"):
        return condition == "" or write == 1
    if condition in CONDITIONS:
        return bool(CONDITIONS[condition](config, pe))
    trap = register.fine_grained
    assert trap
    two = "2" if trap.second else ""
    fields = f"HDFGRTR{two}_EL2.{trap.name}"
    if not register.read_only:
        fields += f" for MRS, HDFGWTR{two}_EL2.{trap.name} for MSR"
    bit = getattr(pe, f"hdfg{'w' if write else 'r'}tr{two}_el2") >> trap.bit & 1
    enabled = not config.el3 or getattr(pe, f"scr_el3_fgten{two}") == 1
    implemented = config.fgt2 if trap.second else config.fgt
    if trap.second:
        assert condition == f"{fields} is 0, or SCR_EL3.FGTEn2 is 0"
        return implemented and (bit == 0 or not enabled)
    assert condition == f"{fields} is {'0' if trap.inverted else '1'}, and SCR_EL3.FGTEn is 1"
    return implemented and bit != trap.inverted and enabled


@registers
def test_access_table_agrees_with_the_reference_model(register: Register) -> None:
    """The table, read as docs/reference/registers.md defines it, in random states of the PE."""
    ((_, *rows),) = tables(register, "Access")
    random = Random(SEED)
    wide = {"mdcr_el2_e2pb": 2, "mdcr_el3_nspb": 2, "el": 2, "hdfgrtr_el2": 64, "hdfgwtr_el2": 64}
    wide |= {"hdfgrtr2_el2": 64, "hdfgwtr2_el2": 64}
    single = ("ns", "nse", "mdcr_el2_tpms", "hcr_el2_e2h", "mdcr_el3_nspbe", "scr_el3_eel2", "mdcr_el3_enpmsn")
    single += ("mdcr_el3_enpms3", "scr_el3_fgten", "scr_el3_fgten2")
    outcomes = {"UNDEFINED": Outcome.UNDEFINED, "trap to EL2": Outcome.TRAP_EL2, "trap to EL3": Outcome.TRAP_EL3}
    decisive: set[int] = set()
    for config in CONFIGS.values():
        if register not in config.accessors:
            continue
        for _ in range(2000):
            # Most traps are off, so that each one decides in some states.
            pe = PEState(
                **{name: random.getrandbits(bits) for name, bits in wide.items() if random.random() < 0.7},
                **{name: random.getrandbits(1) for name in single if random.random() < 0.7},
            )
            write = random.getrandbits(1)
            number = next(number for number, row in enumerate(rows) if applies(config, register, write, pe, *row))
            decisive.add(number)
            then = rows[number][2]
            other = re.fullmatch(r"access to \[(\w+)\]\(\1\.md\)", then)
            accessed = other[1] if other else register.name
            expected = (outcomes[then], None) if then in outcomes else (Outcome.VALUE, accessed)
            outcome, found = access(config, register, write, pe)
            assert (outcome, found and found.name) == expected, f"{config.name}, write {write}: {pe}"
    assert decisive == {*range(len(rows))}
