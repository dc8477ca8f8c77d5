"""Files of timed operations: written by a profile or from CSV, played again, and refused if they are not valid."""

import io
import re
import shlex
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from spurtle.support.errors import PROFILE_FAILED, UserError
from spurtle_sim.cli import main
from spurtle_sim.perf.process import PID, Process
from spurtle_sim.profile.saved import OperationsSaver, saved_process
from spurtle_sim.trace.csv_file import read_csv
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from spurtle_sim.trace.file import OperationsFile, OperationsWriter
from spurtle_sim.trace.instruction import FACT
from tests.support.elf import EXIT, write_elf
from tests.support.paths import ROOT
from tests.support.profile_output import profile_records
from tests.support.seeds import SEED
from tests.support.timed_operations import table

LOOP = (0xD2880002, 0xF1000442, 0x54FFFFE1)  # x2 = 0x4000; LOOP: subs x2, x2, #1; b.ne LOOP
MAP = (0xD2800000, 0xD2820001, 0xD2800062, 0xD2800443, 0x92800004, 0xD2800005, 0xD2801BC8, 0xD4000001)
"""mmap(0, 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"""


def stored(rows: NDArray[np.void], **description: Any) -> bytes:
    file = io.BytesIO()
    writer = OperationsWriter(file)
    writer.append(rows)
    writer.close(description)
    return file.getvalue()


def read(path: Path) -> NDArray[np.void]:
    return np.concatenate([np.zeros(0, TIMED_OPERATION), *OperationsFile(path).rows()])


@pytest.fixture
def rows() -> NDArray[np.void]:
    return table(3000, 1, lanes=1)


@pytest.mark.parametrize(
    "options",
    [("--config", "neoverse_n1"), ("--config", "v1p4", "--core", "wide"), ("--start-after", "7000", "--jitter")],
    ids=lambda options: options[1],
)
def test_played_operations_have_the_same_profile(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = write_elf(tmp_path / "program", [*LOOP, *MAP, *LOOP, *MAP, *EXIT])
    saved, first, second = (str(tmp_path / name) for name in ("operations.parquet", "first.data", "second.data"))
    assert main(["profile", *options, "--save-ops", saved, "-o", first, str(program)]) == 0
    options = tuple(word for word in options if word not in ("--core", "wide", "--start-after", "7000"))
    assert main(["profile", *options, "--check", "--ops", saved, "-o", second]) == 0
    assert Path(first).read_bytes() == Path(second).read_bytes()
    assert Path(f"{first}.spe").read_bytes() == Path(f"{second}.spe").read_bytes()
    assert len(profile_records(Path(first))) > 60


def test_a_part_of_a_file_is_played(tmp_path: Path, rows: NDArray[np.void]) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(rows))
    output = tmp_path / "perf.data"
    arguments = [
        "profile",
        "--config",
        "minimal",
        "--interval",
        "256",
        "--check",
        "--ops",
        str(path),
        "-o",
        str(output),
    ]
    for options, operations in (
        ((), 3000),
        (("--start-after", "1000"), 2000),
        (("--start-after", "1000", "--duration", "514"), 514),
        (("--max-operations", "2570"), 2570),
    ):
        assert main([*arguments, "-o", str(output), *options]) == 0
        assert len(profile_records(output)) == operations // 257


def test_each_column_is_stored(tmp_path: Path, rows: NDArray[np.void]) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(rows, process=None, other=[1]))
    file = OperationsFile(path)
    assert file.description == {"process": None, "other": [1]}
    assert file.count == 3000
    for name in TIMED_OPERATION.names or ():
        assert (read(path)[name] == rows[name]).all(), name


def test_row_groups_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: NDArray[np.void]) -> None:
    monkeypatch.setattr("spurtle_sim.trace.file._ROWS", 1000)
    monkeypatch.setattr("spurtle_sim.trace.file._BATCH", 300)
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(rows))
    assert pq.ParquetFile(path).num_row_groups == 3
    assert (read(path)["dispatch"] == rows["dispatch"]).all()


def test_a_truncated_file_is_named_with_the_offset(tmp_path: Path, rows: NDArray[np.void]) -> None:
    content = stored(rows)
    path = tmp_path / "operations.parquet"
    for size in (0, 3):
        path.write_bytes(content[:size])
        with pytest.raises(UserError, match=rf"^{path} is not a file of operations: there is no PAR1 at offset 0x0$"):
            OperationsFile(path)
    for size in (4, 11, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        message = f"{path} is truncated: there is no footer before its end at offset {size:#x}"
        with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
            OperationsFile(path)


def test_damage_is_named_with_the_offset(tmp_path: Path, rows: NDArray[np.void]) -> None:
    content = bytearray(stored(rows))
    path = tmp_path / "operations.parquet"
    content[2000] ^= 1
    path.write_bytes(content)
    message = "operations from number 0 on, in the row group at offset 0x4, cannot be read"
    with pytest.raises(UserError, match=f"^{path} is damaged: {message}$"):
        read(path)
    content[2000] ^= 1
    content[-8 - int.from_bytes(content[-8:-4], "little")] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"^{path} is damaged: its footer at offset 0x[0-9a-f]+ cannot be read$"):
        OperationsFile(path)


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    random = Random(SEED)
    rows = table(200, 2, lanes=1)
    content = stored(rows)
    path = tmp_path / "operations.parquet"
    for _ in range(100):
        mutated = bytearray(content)
        mutated[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(mutated)
        try:
            found = read(path)
        except UserError as error:
            assert str(path) in str(error), f"seed {SEED}"
        else:
            assert len(found) <= 200


def other(
    schema: pa.Schema | None = None,
    metadata: dict[str, str] | None = None,
    repeated: Sequence[str] = (),
    **values: Any,
) -> bytes:
    """Return a Parquet file with one operation, or with other columns."""
    names = TIMED_OPERATION.names or ()
    columns = {name: pa.array([values.get(name, 0)], pa.from_numpy_dtype(TIMED_OPERATION[name])) for name in names}
    file = io.BytesIO()
    found = pa.table(columns)
    found = found if schema is None else found.cast(schema)
    for name in repeated:
        found = found.append_column(name, found.column(name))
    pq.write_table(found.replace_schema_metadata(metadata or {"spurtle_operations": '{"format": 2}'}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: other(metadata={"other": "1"}), " is not a file of operations: it has no metadata spurtle_operations"),
        (
            lambda: other(metadata={"spurtle_operations": "[" * 100_000}),
            " is not a file of operations: it has no metadata spurtle_operations",
        ),
        (lambda: other(repeated=("pc",)), ": the column pc must be there once"),
        (
            lambda: other(metadata={"spurtle_operations": '{"format": 3}'}),
            " must have version 1 to 2 of the format of operations, not 3",
        ),
        (
            lambda: other(pa.schema([(name, pa.int64()) for name in TIMED_OPERATION.names or ()])),
            ": the column dispatch must have the type uint64, not int64",
        ),
        (lambda: other(), ": operation 0: issue must be at least 1"),
        (lambda: other(issue=1, finish=1), ": operation 0: finish must be more than issue"),
        (
            lambda: other(issue=1, finish=2, translate_from=1),
            ": operation 0: translate_from must be at most translate_to",
        ),
        (
            lambda: other(issue=1, finish=2, dispatch=1 << 63),
            f": operation 0: dispatch must be less than {1 << 63:#x}",
        ),
        (lambda: other(issue=1, finish=2, pc=1 << 56), f": operation 0: pc must be less than {1 << 56:#x}"),
        (lambda: other(issue=1, finish=2, facts=1 << 30), ": operation 0: facts must be less than 0x40000000"),
        (lambda: other(issue=1, finish=2, vectors=1 << 15), ": operation 0: vectors must be less than 0x8000"),
        (
            lambda: other(issue=1, finish=2, vectors=65 << 8),
            ": operation 0: the length in vectors must be at most 2048 bits",
        ),
        (lambda: other(issue=None, finish=2), ": the column issue must have no null, in the row group 0"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, make: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(make())
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}{message}')}$"):
        read(path)


def test_a_file_of_version_1_has_no_vectors(tmp_path: Path) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(other(metadata={"spurtle_operations": '{"format": 1}'}, issue=1, finish=2, pc=4, vectors=1))
    assert read(path)[["pc", "vectors"]].tolist() == [(4, 0)]
    pq.write_table(pq.read_table(path).drop_columns(["vectors"]), path)
    assert read(path)[["pc", "vectors"]].tolist() == [(4, 0)]
    pq.write_table(pq.read_table(path).replace_schema_metadata({"spurtle_operations": '{"format": 2}'}), path)
    with pytest.raises(UserError, match=f"^{path}: the column vectors must have the type uint16, not None$"):
        read(path)


@pytest.mark.parametrize(
    ("dispatch", "message"),
    [
        ([1, 2, 4, 3], "operation 3 must not dispatch before operation 2"),
        (
            [1, 2, 2, 3],
            "at most 1 operation may dispatch in a cycle, one in each lane of the SPU, and operation 2 ",
        ),
    ],
)
def test_operations_must_be_in_order(
    tmp_path: Path,
    dispatch: list[int],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.zeros(4, TIMED_OPERATION)
    rows["dispatch"], rows["issue"], rows["finish"] = dispatch, 1, 2
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(rows))
    for batch in (1, 3, 10):
        monkeypatch.setattr("spurtle_sim.trace.file._BATCH", batch)
        output = str(tmp_path / "perf.data")
        assert main(["profile", "--config", "minimal", "--ops", str(path), "-o", output]) == PROFILE_FAILED
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"spurtle: {path}: {message}")
        assert [file.name for file in tmp_path.iterdir()] == ["operations.parquet"]


PROCESS: dict[str, Any] = {"path": "/x", "argv": ["x"], "build_id": "", "mappings": [], "later_mappings": []}
FIVE_NUMBERS = "an entry of {} must be five numbers below 2^63 and a path"


@pytest.mark.parametrize(
    ("process", "message"),
    [
        ([], "it must be an object"),
        ({}, "it must have the key path"),
        *(({**PROCESS, "path": path}, "path must be a string without null") for path in (1, "a\0", "\ud800")),
        *(({**PROCESS, "argv": argv}, "argv must be a list of words") for argv in ("x", [])),
        ({**PROCESS, "argv": [1]}, "each word of argv must be a string"),
        *(({**PROCESS, "build_id": text}, "build_id must be at most 20 bytes") for text in (1, "0", "xy", "00" * 21)),
        ({**PROCESS, "mappings": {}}, "mappings must be a list"),
        *(
            ({**PROCESS, "mappings": [entry]}, FIVE_NUMBERS.format("mappings"))
            for entry in (1, [], [1, 2], [0, 1 << 63, 1, 0, 5, "/x"], [0, -1, 1, 0, 5, "/x"], [0, 1.5, 1, 0, 5, "/x"])
        ),
        ({**PROCESS, "mappings": [[0, 1, 1, 0, 8, "/x"]]}, "the protection of an entry of mappings must be 0 to 7"),
        ({**PROCESS, "mappings": [[0, 1, 1, 0, 5, 1]]}, "the path of an entry of mappings must be a string"),
        (
            {**PROCESS, "mappings": [[0, 1, 1, 0, 5, "x" * (1 << 15)]]},
            "the path of an entry of mappings must have less",
        ),
        ({**PROCESS, "later_mappings": [[-1, 1, 1, 0, 5, "/x"]]}, FIVE_NUMBERS.format("later_mappings")),
        (
            {**PROCESS, "later_mappings": [[2, 1, 1, 0, 5, "/x"], [1, 1, 1, 0, 5, "/x"]]},
            "later_mappings must be in the order of their numbers of operations",
        ),
    ],
)
def test_a_wrong_description_of_the_process_is_refused(process: object, message: str) -> None:
    with pytest.raises(UserError, match=f"^file: the description of the process is not valid: {re.escape(message)}"):
        saved_process("file", {"process": process})


def test_the_description_of_the_process_is_checked_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(table(3, 3, lanes=1), process={}))
    assert main(["profile", "--ops", str(path), "-o", str(tmp_path / "perf.data")]) == PROFILE_FAILED
    assert capsys.readouterr().err.startswith(f"spurtle: {path}: the description of the process is not valid: ")
    assert [file.name for file in tmp_path.iterdir()] == ["operations.parquet"]


def test_threads_are_stored(tmp_path: Path, rows: NDArray[np.void]) -> None:
    path, output = tmp_path / "operations.parquet", tmp_path / "perf.data"
    first = PID + 1
    with closing(OperationsSaver(str(path))) as saver:
        for begin, end, thread in ((0, 900, PID), (900, 1500, first), (1500, 1600, first), (1600, 3000, PID)):
            saver.append(rows[begin:end], thread)
        saver.save(Process(Path("/program"), ("program",), PID, ()))
    assert OperationsFile(path).description["threads"] == [[900, first], [1600, PID]]
    options = ["--config", "neoverse_n1", "--interval", "256", "--check", "--ops", str(path), "-o", str(output)]
    assert main(["profile", *options]) == 0
    contexts = [record.context_el1 for record in profile_records(output)]
    # Operations 256, 513, 770 and so on are sampled.
    assert contexts == [first if 900 <= 256 + 257 * number < 1600 else PID for number in range(11)]
    assert output.read_bytes().count(struct.pack("<4I", PID, PID, first, PID)) == 1, "PERF_RECORD_FORK"


@pytest.mark.parametrize(
    ("threads", "message"),
    [
        ({}, "threads must be a list of pairs of numbers below 2^63"),
        ([1], "threads must be a list of pairs of numbers below 2^63"),
        ([[1, 2, 3]], "threads must be a list of pairs of numbers below 2^63"),
        ([[-1, 2]], "threads must be a list of pairs of numbers below 2^63"),
        ([[1, True]], "threads must be a list of pairs of numbers below 2^63"),
        ([[1, 1 << 31]], "the number of a thread must be 1 to 2147483647, not 2147483648"),
        ([[1, 0]], "the number of a thread must be 1 to 2147483647, not 0"),
        ([[2, 5], [1, 6]], "threads must be in the order of their numbers of operations"),
    ],
)
def test_wrong_threads_are_refused(
    threads: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "operations.parquet"
    path.write_bytes(stored(table(3, 3, lanes=1), threads=threads))
    assert main(["profile", "--ops", str(path), "-o", str(tmp_path / "perf.data")]) == PROFILE_FAILED
    assert capsys.readouterr().err == f"spurtle: {path}: {message}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["operations.parquet"]


@pytest.mark.parametrize(
    "options",
    [
        ("--core", "wide"),
        ("--save-ops", "other.parquet"),
        ("program",),
        ("--qemu", "x"),
        ("--sysroot", "/"),
        ("--follow",),
        ("--vector-length", "256"),
        ("--emulator", "unicorn"),
    ],
)
def test_options_of_the_timing_do_not_come_with_timed_operations(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "--ops", "operations.parquet", *options]) == PROFILE_FAILED
    name = "PROGRAM" if options == ("program",) else options[0]
    assert capsys.readouterr().err == f"spurtle: {name} must not come with --ops, whose operations have been timed\n"


def test_csv_has_the_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "operations.csv"
    path.write_text("dispatch,pc,issue,finish,facts,va\n1,0x1000,1,2,load va_valid retired,0x2000\n3,4100,2,9,0,\n\n")
    with pytest.raises(UserError, match=f"^{path}: line 3: va must be a number less than 0x10000000000000000, not ''$"):
        list(read_csv(path))
    path.write_text(path.read_text().replace(",0,\n", ",0,5\n"))
    [rows] = read_csv(path)
    facts = FACT["load"] | FACT["va_valid"] | FACT["retired"]
    assert rows[["dispatch", "pc", "va", "issue", "finish", "facts"]].tolist() == [
        (1, 0x1000, 0x2000, 1, 2, facts),
        (3, 4100, 5, 2, 9, 0),
    ]
    path.write_text("dispatch,pc,issue,finish\n1,4,1,2\n")
    assert next(read_csv(path))["facts"].tolist() == [FACT["retired"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the column dispatch is missing in line 1"),
        ("dispatch,pc,issue\n", ": the column finish is missing in line 1"),
        ("dispatch,pc,pc\n", ": the column pc must be there once"),
        ("cycle\n", f": a column must be {', '.join(TIMED_OPERATION.names or ())}, not 'cycle'"),
        ("dispatch,pc,issue,finish\n1,2,3\n", ": line 2 must have 4 cells, not 3"),
        ("dispatch,pc,issue,finish\n1,2,3,-4\n", ": line 2: finish must be a number less than 0x100000000, not '-4'"),
        ("dispatch,pc,issue,finish,facts\n1,2,3,4,loads\n", f": line 2: a fact must be {', '.join(FACT)}, not 'loads'"),
        ('dispatch,pc,issue,finish\n"1', " is not a CSV file: unexpected end of data"),
    ],
)
def test_errors_of_csv_are_one_sentence(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "operations.csv"
    path.write_text(text)
    assert main(["operations", str(path), "-o", str(tmp_path / "out.parquet")]) == 2
    assert capsys.readouterr().err == f"spurtle: {path}{message}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["operations.csv"]


def test_the_commands_in_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example of the page is a CSV file whose operations can be converted and profiled."""
    page = (ROOT / "docs" / "howto" / "traces.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim").symlink_to(ROOT / "sim")
    example = re.search(r"```text\n(dispatch,.*?)```", page, re.DOTALL)
    assert example
    Path("operations.csv").write_text(example[1])
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        command, *shown = block.splitlines()
        assert main(shlex.split(command.removeprefix("$ spurtle "))) == 0
        assert {*shown} <= {*capsys.readouterr().err.splitlines()}
