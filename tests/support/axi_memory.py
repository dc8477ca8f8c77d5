"""Model of an AXI4 memory, and the records that are written to it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from spurtle.config import SPUConfig

__all__ = ["AXIMemory", "Record", "random_record"]

PAGE = 4096


@dataclass
class Record:
    """A record to be written at `address`, for the Security state `ns` and `nse`."""

    address: int
    octets: bytes
    ns: int = 0
    nse: int = 0

    def beats(self, bus: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield address, data, strobe and last of each beat."""
        start = self.address % bus
        padded = bytes(start) + self.octets + bytes(-(start + len(self.octets)) % bus)
        for at in range(0, len(padded), bus):
            strobe = sum(1 << n for n in range(bus) if start <= at + n < start + len(self.octets))
            data = int.from_bytes(padded[at : at + bus], "little")
            yield self.address - start + at, data, strobe, at + bus == len(padded)

    def bursts(self, bus: int, *, limit: int) -> list[tuple[int, int]]:
        """Return address and number of words of each burst. No burst crosses a multiple of `limit`."""
        address, words = self.address & -bus, len([*self.beats(bus)])
        bursts: list[tuple[int, int]] = []
        while words:
            count = min(words, (limit - address % limit) // bus)
            bursts.append((address, count))
            address, words = address + count * bus, words - count
        return bursts


@dataclass
class AXIMemory:
    """An AXI4 subordinate. A burst that touches `bad` receives an error response, and none of its bytes are written.

    It checks the rules of AXI4. After an error response it expects no strobe in a word that becomes valid, until the
    error has been reported.
    """

    config: SPUConfig
    random: Random
    ready_rate: float = 1.0
    latency: int = 0
    """Cycles from the last word of a burst to its response, less one."""
    bad: set[int] = field(default_factory=set)
    """Addresses."""
    octets: dict[int, int] = field(default_factory=dict)
    bursts: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Address, number of words, AWPROT and AWNSE of each burst."""
    words: list[tuple[int, int]] = field(default_factory=list)
    """Data and strobe of each word of the current burst."""
    lengths: list[int] = field(default_factory=list)
    """Number of words of each burst that has been received completely."""
    answered: int = 0
    answers: deque[tuple[int, int]] = field(default_factory=deque)
    """The earliest cycle of each response, and its value."""
    stalled: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Payload of each channel that was valid and not ready."""
    data_bursts: list[list[tuple[int, int]]] = field(default_factory=list)
    errors: int = 0
    max_open: int = 0
    sent_at: list[int] = field(default_factory=list)
    """The cycle of each word."""
    failed: bool = False
    """There was an error response that has not been reported."""
    masked: int = 0
    """Words without strobes, because of an earlier error response."""
    b_valid: bool = False

    def ready(self) -> bool:
        """Return whether a channel is ready in this cycle."""
        return self.random.random() < self.ready_rate

    def inputs(self, axi: Any, now: int) -> list[tuple[Any, int]]:
        """Return the inputs of the writer in a cycle."""
        due = bool(self.answers) and self.answers[0][0] <= now
        self.b_valid = self.b_valid or (due and self.ready())
        return [
            (axi.awready, self.ready()),
            (axi.wready, self.ready()),
            (axi.bvalid, self.b_valid),
            (axi.bresp, self.answers[0][1] if self.b_valid else self.random.getrandbits(2)),
            (axi.bid, 0),
        ]

    @property
    def idle(self) -> bool:
        """Whether every burst has its response, and no other burst was started."""
        return self.answered == len(self.lengths) == len(self.bursts) and not (self.words or self.stalled)

    def observe(self, now: int, aw: tuple[int, ...], w: tuple[int, ...], b: tuple[int, ...]) -> None:
        """Observe a cycle: `valid`, `ready` and the payload of each channel."""
        if w[0] and self.failed and "W" not in self.stalled:
            assert w[3] == 0, f"cycle {now}: a word has strobes after an error response"
            self.masked += 1
        for name, (valid, ready, *payload) in {"AW": aw, "W": w}.items():
            if before := self.stalled.pop(name, None):
                assert valid, f"cycle {now}: {name}VALID was deasserted"
                assert before == tuple(payload), f"cycle {now}: the payload of {name} has changed"
            if valid and not ready:
                self.stalled[name] = tuple(payload)
        if self.words:
            assert w[0], f"cycle {now}: a gap in a burst"
        if b[0]:
            assert b[1], f"cycle {now}: a response is not accepted"
            _, answer = self.answers.popleft()
            self.failed |= answer >= 2 and self.config.external_aborts
            self.b_valid = False
            self.answered += 1
        if aw[0] and aw[1]:
            self._address(*aw[2:])
        if w[0] and w[1]:
            self.sent_at.append(now)
            self.words.append((w[2], w[3]))
            if w[4]:
                self.data_bursts.append(self.words)
                self.words = []
        while self.data_bursts and len(self.lengths) < len(self.bursts):
            self._write(now)
        # A burst is open as soon as its address is valid.
        self.max_open = max(self.max_open, len(self.bursts) + (aw[0] and not aw[1]) - self.answered)

    def _address(self, ident: int, address: int, length: int, size: int, burst: int, prot: int, nse: int) -> None:
        assert (ident, burst, 1 << size) == (0, 1, self.config.bus_bytes)
        end = address + (length + 1) * self.config.bus_bytes
        assert address % self.config.bus_bytes == 0
        assert address // PAGE == (end - 1) // PAGE, f"a burst from {address:#x} to {end:#x} crosses a page"
        self.bursts.append((address, length + 1, prot, nse))

    def _write(self, now: int) -> None:
        words, (address, length, _, _) = self.data_bursts.pop(0), self.bursts[len(self.lengths)]
        assert len(words) == length, f"cycle {now}: a burst of {length} words has {len(words)}"
        self.lengths.append(length)
        bus = self.config.bus_bytes
        error = not self.bad.isdisjoint(range(address, address + length * bus))
        self.errors += error
        answer = self.random.choice([2, 3]) if error else self.random.choice([0, 1])
        self.answers.append((now + 1 + self.latency, answer))
        if error:
            return
        for number, (data, strobe) in enumerate(words):
            for octet in range(bus):
                if strobe >> octet & 1:
                    self.octets[address + number * bus + octet] = data >> 8 * octet & 0xFF


def random_record(random: Random, config: SPUConfig, region: int) -> Record:
    """Return a random record in a region of memory. Many cross a page."""
    layout = config.layout
    size = layout.max_size if not layout.packed else random.randrange(1, layout.max_size // layout.align) * layout.align
    address = random.choice([PAGE, PAGE, random.getrandbits(20)]) - random.randrange(size + 1) + (region << 24)
    rme = random.getrandbits(1) if config.rme else 0
    return Record(address & -layout.align, random.randbytes(size), random.getrandbits(1) | rme, rme)
