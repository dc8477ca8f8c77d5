"""Kinds and sizes of instructions, from the disassembly of GNU objdump.

The rules read the names and the operands of the assembly language only, so that they are independent of the encodings
that `spurtle_sim.emulator.a64` decodes.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Described", "disassemble", "needs_objdump"]

_OBJDUMP = "aarch64-linux-gnu-objdump"
needs_objdump = pytest.mark.skipif(
    shutil.which(_OBJDUMP) is None,
    reason=f"{_OBJDUMP} is not installed: apt-get install binutils-aarch64-linux-gnu",
)

_LINE = re.compile(r"\s*[0-9a-f]+:\t([0-9a-f]{8}) \t(\S+)(?:\t(.*))?")
_ATOMIC = re.compile(r"(ld|st)(add|clr|eor|set|[su]max|[su]min)(a?l?)([bh]?)|swp(a?l?)([bh]?)|cas(p?)(a?l?)([bh]?)")
_EXCLUSIVE = re.compile(r"(ld|st)(a|l)?x([rp])([bh]?)")
_ORDERED = re.compile(r"ldap?u?r(s?[bhw])?|ldlar[bh]?|stll?u?r[bh]?")
_BRANCH = re.compile(r"b|bl|br|blr|ret|cbn?z|tbn?z|bc?\.\w+|(br|blr|ret)a[ab]z?")
_EXCEPTION = re.compile("svc|hvc|smc|brk|hlt|dcps[123]")
_VECTOR = re.compile(r"\b([vqdshb])([0-9]+)\b")
_SCALABLE = re.compile(r"\b([zp]|pn)[0-9]+\b|\bza")
_OTHER = re.compile(
    r".*\bza|psel|adds[vp]l|rdsvl|zero|sm(start|stop)"  # SME
    r"|udf|eret|drps|ldgm|stgm|stzgm|sysl? #[^3]"  # UNDEFINED at EL0
    r"|(ld|st)64b|tcancel"  # FEAT_LS64, FEAT_TME
)
_TAG_STORES = {"stg": 0, "st2g": 0, "stzg": 16, "stz2g": 32}
_SCALAR_BYTES = {"w": 4, "x": 8, "b": 1, "h": 2, "s": 4, "d": 8, "q": 16}


class Described(NamedTuple):
    """An instruction as the disassembler describes it.

    Parameters
    ----------
    text : str
        Disassembly.
    runs : bool
        Whether one of the emulated CPUs has the instruction: it is not one of SME, and not UNDEFINED at EL0.
    kinds : frozenset of str
        Those of `load`, `store`, `atomic`, `exclusive`, `branch`, `exception`, `simd`, `allocation_tag`, `memory_copy`
        and `memory_set` that apply. A load or store is `simd` if it accesses SIMD&FP registers.
    traffic : int or None
        Number of bytes read and written. None if it depends on more than the instruction.
    """

    text: str
    runs: bool
    kinds: frozenset[str]
    traffic: int | None


def disassemble(words: Iterable[int]) -> Iterator[tuple[int, Described]]:
    """Yield the words that the disassembler knows, with their descriptions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words"
        path.write_bytes(b"".join(word.to_bytes(4, "little") for word in words))
        command = [_OBJDUMP, "-D", "-z", "-b", "binary", "-m", "aarch64", "-M", "no-aliases", path]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        match = _LINE.fullmatch(line.partition(" //")[0].partition(" ;")[0].rstrip())
        if match and not match[2].startswith("."):
            yield int(match[1], 16), _describe(match[2], match[3] or "")


def _describe(name: str, operands: str) -> Described:
    simd = {"simd"} if _VECTOR.search(operands) or _SCALABLE.search(operands) else set[str]()
    kinds, traffic = _access(name, operands)
    if kinds:
        kinds |= simd
    elif _BRANCH.fullmatch(name):
        kinds = {"branch"}
    elif _EXCEPTION.fullmatch(name):
        kinds = {"exception"}
    elif not name.startswith("prf"):
        kinds = simd
    text = f"{name} {operands}".strip()
    return Described(text, not _OTHER.match(text), frozenset(kinds), traffic)


def _access(name: str, operands: str) -> tuple[set[str], int | None]:
    """Return kinds and traffic of an instruction that accesses memory; no kinds for another one."""
    found = _ATOMIC.fullmatch(name)
    if found:
        kinds = {"load", "store", "atomic"}
        pair = 2 if name.startswith("casp") else 1
        # The result of LDADD in the zero register is discarded. SWP and CAS always load.
        result = operands.split(", ")[1] if name.startswith("ld") else ""
        if name.startswith("st") or result in ("wzr", "xzr"):
            kinds.discard("load")
        return kinds, 2 * pair * _width(name[-1], operands)
    found = _EXCLUSIVE.fullmatch(name)
    if found:
        registers = operands.split(", ")[found[1] == "st" :]
        width = _width(found[4], registers[0])
        return {"load" if found[1] == "ld" else "store", "exclusive"}, width * (2 if found[3] == "p" else 1)
    if re.fullmatch(r"cpyf?[pme]\w*", name) and operands.endswith("!"):
        return {"load", "store", "memory_copy"}, None
    if re.fullmatch(r"setg?[pme]t?n?", name):
        return {"store", "memory_set"}, None
    zero = re.match(r"#3, C7, C4, #([134]), ", operands) if name == "sys" else None  # DC ZVA, DC GVA, DC GZVA
    if zero:
        return ({"store", "allocation_tag"}, 0) if zero[1] == "3" else ({"store"}, 64)
    if name == "ldg":
        return {"load", "allocation_tag"}, 0
    if name in _TAG_STORES:
        return {"store"} | ({"allocation_tag"} if not _TAG_STORES[name] else set()), _TAG_STORES[name]
    if name == "stgp":
        return {"store"}, 16
    if not re.match(r"ld|st", name):
        return set(), 0
    return {"load" if name.startswith("ld") else "store"}, _plain_traffic(name, operands)


def _width(suffix: str, operands: str) -> int:
    """Return the bytes of an element: from the last letter of the name, otherwise from the first register."""
    return {"b": 1, "h": 2}.get(suffix) or _SCALAR_BYTES[operands[0]]


def _plain_traffic(name: str, operands: str) -> int | None:
    """Return the bytes that a load or store of registers accesses."""
    if _SCALABLE.search(operands):
        return None
    if operands.startswith("{"):
        registers, _, after = operands[1:].partition("}")
        first, last = registers.split("-")[0].split(", ")[0], registers.replace("-", ", ").split(", ")[-1]
        numbers = [int(re.sub(r"\..*|v", "", register)) for register in (first, last)]
        count = (numbers[1] - numbers[0]) % 32 + 1
        arrangement = first.partition(".")[2]
        element = _SCALAR_BYTES[arrangement[-1]]
        if after.startswith("[") or name.endswith("r"):
            return count * element
        return count * element * int(arrangement[:-1])
    if name.endswith("sw"):  # LDRSW, LDPSW and similar
        return 8 if name == "ldpsw" else 4
    suffix = name[-1] if name[-1] in "bh" and name not in ("ldrab",) else ""
    return _width(suffix, operands) * (2 if name in ("ldp", "ldnp", "stp", "stnp") else 1)
