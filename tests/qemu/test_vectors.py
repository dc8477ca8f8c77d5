"""Length of SVE vectors: from the program to the Operation Type packet, and to what perf prints."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle_sim.perf.process import PID
from spurtle_sim.profile.emulation import Emulation
from spurtle_sim.profile.options import Sampling
from spurtle_sim.profile.run import run_profile
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.qemu.program import QemuProgram
from spurtle_sim.records.decode import decode_packets
from spurtle_sim.records.text import describe
from spurtle_sim.trace.vectors import pack_vectors
from tests.support.elf import CODE, EXIT, write_elf
from tests.support.perf_versions import require_perf
from tests.support.perf_words import printed_words
from tests.support.profile_output import profile_records
from tests.support.qemu import compiled, every_qemu, needs_compiler, read_symbols
from tests.support.tiers import tiers

FLAGS = ("predicated", "gather_scatter")

LENGTHS = (128, 256, 512)
"""Maximum lengths, of which the shorter ones can be set too."""

WORDS = (
    0x04E10000,  # add z0.d, z0.d, z1.d
    0xA5E0A3E0,  # ld1d {z0.d}, p0/z, [sp]
    0xD28014E8,  # mov x8, #167: prctl
    0xD2800640,  # mov x0, #50: PR_SVE_SET_VL
    0xD2800401,  # mov x1, #32
    0xD4000001,  # svc #0
    0x04E10000,  # add z0.d, z0.d, z1.d
    0xE570E3E4,  # st4w {z4.s-z7.s}, p0, [sp]
    0xC5C1C3E0,  # ld1d {z0.d}, p0/z, [sp, z1.d]
    0xD2800640,  # mov x0, #50
    0xD2800201,  # mov x1, #16
    0xD4000001,  # svc #0
    0x65C08062,  # fadd z2.d, p0/m, z2.d, z3.d
    0x2518E3E0,  # ptrue p0.b
    0x85C003E0,  # prfb pldl1keep, p0, [sp]
    0x04E0E3E5,  # cntd x5
    *EXIT,
)

LOOPS = """
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static char memory[1024];
__attribute__((noinline, noclone)) static void loop(long length, long count) {
    prctl(50, length);  // PR_SVE_SET_VL
    __asm__ volatile(
        "mov z9.d, #0; ptrue p0.b; .globl kernel; kernel: add z0.d, z0.d, z1.d; fadd z2.d, p0/m, z2.d, z3.d;"
        "ld1d {z4.d}, p0/z, [%1]; ldr z5, [%1]; st4w {z4.s-z7.s}, p0, [%1]; ld1d {z8.d}, p0/z, [%1, z9.d];"
        "whilelo p1.d, xzr, %0; subs %0, %0, #1; b.ne kernel"
        : "+r"(count) : "r"(memory) : "memory", "cc");
}
static void *work(void *length) {
    loop((long)length, 3000);
    return 0;
}
int main(void) {
    pthread_t thread[3];
    for (long i = 0; i < 3; i++) pthread_create(&thread[i], 0, work, (void *)(16L << i));
    for (int i = 0; i < 3; i++) pthread_join(thread[i], 0);
    loop(32, 3000);
    if (!fork()) {
        work((void *)-1L);  // not a length: that of the parent remains
        _exit(0);
    }
    wait(0);
    loop(16, 3000);
    return 0;
}
"""

OPTIONS = ("-static", "-march=armv8.2-a+sve")

KERNEL = (
    {},
    {"predicated": True},
    {"predicated": True},
    {},
    {"predicated": True, "count": 4},
    {"predicated": True, "gather_scatter": True},
    {},
)
"""Members of the vectors of each SVE instruction of the loop, without the length."""

BUILT = every_qemu()["built"]
pytestmark = pytest.mark.skipif(BUILT is None, reason="QEMU is absent: make qemu")


@pytest.fixture
def qemu() -> Qemu:
    assert BUILT
    return BUILT


@pytest.mark.parametrize("length", LENGTHS)
def test_the_length_follows_prctl(qemu: Qemu, length: int, tmp_path: Path) -> None:
    """The vectors of each instruction are exact, before and after the program has changed their length."""
    path = write_elf(tmp_path / "program", WORDS)
    path.chmod(0o755)
    program = QemuProgram(qemu, path, vector_length=length)
    operations = np.concatenate([batch.operations for batch in program.batches()])
    assert operations["pc"].tolist() == [*range(CODE, CODE + 4 * len(WORDS), 4)]
    second = min(length, 256)
    expected = {
        0: pack_vectors(bits=length),
        1: pack_vectors(bits=length, predicated=True),
        6: pack_vectors(bits=second),
        7: pack_vectors(bits=second, predicated=True, count=4),
        8: pack_vectors(bits=second, predicated=True, gather_scatter=True),
        12: pack_vectors(bits=128, predicated=True),
        13: pack_vectors(bits=128),
    }
    assert operations["vectors"].tolist() == [expected.get(index, 0) for index in range(len(WORDS))]


def test_a_version_without_sve(tmp_path: Path) -> None:
    path = write_elf(tmp_path / "program", EXIT)
    path.chmod(0o755)
    with pytest.raises(UserError, match=r"^QEMU 7\.2\.22 has no SVE and so no vector length: make qemu builds "):
        QemuProgram(Qemu("/nowhere/qemu", (7, 2, 22)), path, vector_length=256)


@needs_compiler
@pytest.mark.full
def test_each_thread_has_its_length(qemu: Qemu, tmp_path: Path) -> None:
    path = compiled(tmp_path, LOOPS, *OPTIONS)
    kernel = read_symbols(path)["kernel"]
    program = QemuProgram(qemu, path, vector_length=512, follow=True)
    found: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for batch in program.batches():
        pcs = (batch.operations["pc"] - kernel) // 4
        for index in range(len(KERNEL)):
            values = batch.operations["vectors"][pcs == index].tolist()
            found[batch.thread].update((index, value) for value in values)
    assert program.exit_status == 0

    def loops(*lengths: int) -> Counter[tuple[int, int]]:
        keys = [(index, pack_vectors(bits=bits, **members)) for bits in lengths for index, members in enumerate(KERNEL)]
        return Counter(dict.fromkeys(keys, 3000))

    threads = [found[PID + number] for number in (1, 2, 3)]
    assert all(loops(bits) in threads for bits in LENGTHS)
    assert found[PID] == loops(256, 128)
    assert found[PID + 4] == loops(256)


@needs_compiler
@pytest.mark.parametrize("config", tiers(full=["v1p4"], long=["arm_model", "neoverse_n1"]))
def test_records_have_the_length(qemu: Qemu, config: str, tmp_path: Path) -> None:
    """With FEAT_SPE_SME the length is that of all vectors. Without FEAT_SVE there is none."""
    path = compiled(tmp_path, LOOPS, *OPTIONS)
    kernel = read_symbols(path)["kernel"]
    output = tmp_path / "perf.data"
    status = run_profile(
        CONFIGS[config], path, output=str(output), check=True,
        emulation=Emulation(qemu=qemu.path, vector_length=512), sampling=Sampling(interval=256),
    )  # fmt: skip
    assert status == 0
    found: dict[int, set[object]] = defaultdict(set)
    for record in profile_records(output):
        if record.pc and record.operation and 0 <= (index := (record.pc.address - kernel) // 4) < len(KERNEL):
            attributes = record.operation.attributes
            found[index].add((record.operation.form, *(attributes.get(name) for name in ("bits", *FLAGS))))
    data = {0, 1, 6}
    for index, members in enumerate(KERNEL):
        factor = members.get("count", 1) if CONFIGS[config].spe_sme else 1
        flags = tuple(None if index in data and name == FLAGS[1] else bool(members.get(name)) for name in FLAGS)
        expected = {("sve", factor * bits, *flags) for bits in LENGTHS}
        if not CONFIGS[config].sve:
            expected = {("other" if index in data else "simd_fp", None, None, None)}
        assert found[index] == expected, index


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize("version", ["6.1", "newest"])
def test_perf_prints_the_length(qemu: Qemu, version: str, tmp_path: Path) -> None:
    """Each packet of an SVE operation that perf prints is what `spurtle decode` prints."""
    perf = require_perf(version)
    path = compiled(tmp_path, LOOPS, *OPTIONS)
    output = tmp_path / "perf.data"
    emulation = Emulation(qemu=qemu.path, vector_length=512)
    assert run_profile(CONFIGS["v1p4"], path, output=str(output), emulation=emulation) == 0
    printed = Counter(re.findall(r"(?:SVE-OTHER|LD|ST).* EVLEN .*", perf.run("report", "-D", "-i", output)[0]))
    words = Counter(map(describe, decode_packets(Path(f"{output}.spe").read_bytes())))
    expected = {text: count for text, count in words.items() if " EVLEN " in text}
    assert printed == {printed_words(version, text): count for text, count in expected.items()}
    for length in LENGTHS:
        assert {f"SVE-OTHER EVLEN {length} FP PRED", f"ST EVLEN {4 * length} PRED"} <= expected.keys()
        assert f"LD EVLEN {length} PRED SG" in expected
