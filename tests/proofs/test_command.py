"""The command `python -m formal`: selection of proofs, results and exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from formal import __main__ as command
from formal.engine.proof import Proof, Result, Verdict
from formal.engine.terms import Undecided
from formal.proofs import all_proofs
from spurtle.config import CONFIGS


def raises(error: Exception) -> Verdict:
    raise error


def test_only_pass_gives_exit_status_0(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: dict[str, Callable[[], Verdict]] = {
        "PASS": lambda: Verdict(Result.PASS, 1),
        "FAIL": lambda: Verdict(Result.FAIL, 1, "expected 1, got [2]"),
        "UNKNOWN": lambda: raises(Undecided("timeout")),
        "ERROR": lambda: raises(ValueError("no such wire")),
    }
    for result, prove in outcomes.items():
        monkeypatch.setattr(command, "all_proofs", lambda prove=prove: [Proof("p", "b", "c", "m", prove)])
        assert command.main([]) == (0 if result == "PASS" else 1)
        (row,) = json.loads((build / "report.json").read_text())["proofs"]
        assert list(row) == ["property", "block", "config", "method", "depth", "seconds", "result"]
        assert (row["property"], row["block"], row["config"], row["result"]) == ("p", "b", "c", result)
        printed = capsys.readouterr().out
        assert printed.splitlines()[-1].startswith(f"{int(result == 'PASS')} of 1 passed; report: ")
        assert {"PASS": "", "FAIL": "expected 1, got [2]", "UNKNOWN": "timeout", "ERROR": "no such wire"}[
            result
        ] in printed


def test_an_unknown_block_is_a_user_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nonsense"]) == 2
    printed = capsys.readouterr()
    blocks = "registers, control, interval, lfsr, access, inflight, completion, filter, record, serializer, aligner"
    blocks += ", buffer, spu, writer, responses, completer or leak"
    assert printed.err == f"formal: NAME must be {blocks}, not 'nonsense'\n"
    assert printed.out == ""


def test_proofs_are_selected_by_block() -> None:
    proofs = list(all_proofs())
    assert {proof.config for proof in proofs} >= {*CONFIGS}
    assert command.select(proofs, [], full=True) == proofs
    assert command.select(proofs, [], full=False) == [proof for proof in proofs if not proof.slow] != proofs
    leaks = [proof for proof in proofs if proof.block == "leak"]
    assert command.select(proofs, ["leak"], full=True) == leaks
    assert command.select(proofs, ["leak"], full=False) == [proof for proof in leaks if not proof.slow] != leaks


def test_each_property_of_a_slow_proof_is_also_proved_for_another_configuration() -> None:
    proofs = list(all_proofs())
    slow, others = ({(proof.block, proof.property) for proof in proofs if proof.slow is kind} for kind in (True, False))
    assert slow <= others


@pytest.mark.long
def test_slow_proofs_pass() -> None:
    results = [proof.run() for proof in all_proofs() if proof.slow]
    assert [row for row in results if row.result is not Result.PASS] == []


def test_the_last_line_says_how_many_proofs_were_not_run(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        assert command.main(arguments) == 0
        return capsys.readouterr().out.splitlines()[-1]

    def proofs() -> list[Proof]:
        blocks = {"cheap": (False,), "both": (False, True)}
        return [
            Proof(f"p{slow}", block, "c", "m", lambda: Verdict(Result.PASS, 1), slow=slow)
            for block, kinds in blocks.items()
            for slow in kinds
        ]

    monkeypatch.setattr(command, "all_proofs", proofs)
    report, full = build / "report.json", build / "report-full.json"
    assert run() == f"2 of 2 passed; report: {report}; proofs not run: 1 (make formal-full)"
    assert run("cheap") == f"1 of 1 passed; report: {report}"
    assert run("both") == f"1 of 1 passed; report: {report}; proofs not run: 1 (make formal-full)"
    # The durations of both kinds of run are kept.
    assert not full.exists()
    assert run("--full") == f"3 of 3 passed; report: {full}"
    assert len(json.loads(full.read_text())["proofs"]) == 3
    assert len(json.loads(report.read_text())["proofs"]) == 1


def test_the_first_line_has_the_duration_of_the_last_run(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*names: str) -> str:
        monkeypatch.setattr(command, "all_proofs", lambda: [Proof(name, "b", "c", "m", passing) for name in names])
        assert command.main([]) == 0
        return capsys.readouterr().out.splitlines()[0]

    def passing() -> Verdict:
        return Verdict(Result.PASS, 1)

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: 0.0))
    report = build / "report.json"
    assert run("one", "two") == "2 proofs"
    report.write_text(report.read_text().replace('"seconds": 0.', '"seconds": 265.', 1))
    assert run("one", "two") == "2 proofs; the last run took 4 min 25 s"
    assert run("one", "two") == "2 proofs; the last run took 0 min 0 s"
    assert run("one") == "1 proofs"
    report.write_text("[]")
    assert run("one") == "1 proofs"
