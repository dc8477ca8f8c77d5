// Reads the rings that the plugin in QEMU writes, and makes operations of them. reader.py generates layout.h, with the
// structs and constants that are shared with Python.

#include "reader.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace {

using ring::Kind;
using ring::State;

constexpr uint64_t TAIL_STEP = 4096;  // words after which the thread is informed that they were read

struct Reader {
    ring::Header *const header;
    const int descriptor;
    Blocks blocks;
    Handlers handlers;
    std::vector<std::unique_ptr<Decoder>> decoders;  // by lane
    uint64_t next = 0;                               // lane that is read next
    Block *unclassified = nullptr;
    std::set<uint64_t> forks;  // that were read, after `last_fork`
    uint64_t last_fork = 0;
    bool ended = false;       // the first process has ended
    uint32_t signal = 0;      // signal that ended it
    uint64_t crash = 0;       // PC of the instruction at which the lane that was finished last ended
    std::vector<uint64_t> payload;

    Reader(ring::Header *shared, int file) : header(shared), descriptor(file) {}

    // Read the lanes in turn, until there is something to report.
    void step(Operation *rows, uint64_t capacity, Report &report) {
        report = {};
        uint64_t opened = header->opened.load();
        while (decoders.size() < opened) decoders.push_back(std::make_unique<Decoder>());
        // If there is nothing else, a thread is read without the fork that started it. The fork was lost with the
        // process.
        for (uint64_t count = 0; count < 2 * opened; count++) {
            uint64_t index = (next + count) % opened;
            ring::Lane &lane = header->lanes[index];
            State state = lane.state.load(std::memory_order_acquire);
            if (state != State::OPEN && state != State::ENDED) continue;
            Decoder &decoder = *decoders[index];
            if (!decoder.seen && (has_predecessor(index) || (lane.forks > forked() && count < opened))) continue;
            decoder.seen = true;
            read(lane, ring::words(header, index), decoder, capacity, state, report);
            uint64_t final = decoder.take(rows, capacity);
            if (!final && report.kind == uint32_t(Result::ROWS)) continue;
            report.count = uint32_t(final);
            report.process = lane.process;
            report.thread = lane.thread;
            report.parent = lane.parent;
            // After an event the same lane is read again, so that events keep their distance.
            next = report.kind == uint32_t(Result::ROWS) ? index + 1 : index;
            if (report.kind == uint32_t(Result::ENDED)) {
                *decoders[index] = Decoder();
                lane.state.store(State::FREE, std::memory_order_release);
            }
            return;
        }
        report.kind = uint32_t(Result::IDLE);
    }

    // Return whether another lane has the same thread: one of the program that the thread executed before this one.
    bool has_predecessor(uint64_t index) const {
        const ring::Lane &lane = header->lanes[index];
        for (uint64_t number = 0; number < decoders.size(); number++) {
            const ring::Lane &other = header->lanes[number];
            State state = other.state.load(std::memory_order_acquire);
            if ((state == State::OPEN || state == State::ENDED) && other.thread == lane.thread &&
                other.process == lane.process && other.order < lane.order)
                return true;
        }
        return false;
    }

    // Return the number of the last fork before which no fork is unread. The operations after a fork, in any thread,
    // follow it.
    uint64_t forked() {
        while (!forks.empty() && *forks.begin() == last_fork + 1) {
            last_fork++;
            forks.erase(forks.begin());
        }
        return last_fork;
    }

    // Read words until a report is due, `capacity` rows are final, or there are no more.
    void read(ring::Lane &lane, const uint64_t *words, Decoder &decoder, uint64_t capacity, State state,
              Report &report) {
        bool last = state == State::ENDED || (ended && kill(pid_t(lane.process), 0));
        uint64_t tail = lane.tail.load(std::memory_order_relaxed), told = tail;
        uint64_t head = last ? lane.written : lane.head.load(std::memory_order_acquire);
        report.kind = uint32_t(Result::ROWS);
        while (tail != head && decoder.final() < capacity) {
            uint64_t word = words[tail % ring::WORDS];
            if (ring::kind_of(word) == Kind::BLOCK) {
                Block *block = blocks.find(uint32_t(word));
                if (!block) break;  // its definition is in another lane, which is read first
                if (!blocks.is_current(*block)) {
                    unclassified = block;
                    report.kind = uint32_t(Result::UNCLASSIFIED);
                    report.address = block->pc;
                    report.words = uint32_t(block->words.size());
                    report.content = reinterpret_cast<uint64_t>(block->words.data());
                    break;
                }
                decoder.start(*block, handlers);
                tail++;
            } else if (ring::kind_of(word) == Kind::EVENT) {
                uint64_t count = word >> ring::COUNT_SHIFT & 0xF'FFFF;
                if (head - tail < 1 + count) break;  // the thread writes the rest
                payload.clear();
                for (uint64_t index = 1; index <= count; index++)
                    payload.push_back(words[(tail + index) % ring::WORDS]);
                tail += 1 + count;
                if (on_event(decoder, Event(uint32_t(word)))) {
                    report.kind = uint32_t(Result::EVENT);
                    report.event = uint32_t(word);
                    report.words = uint32_t(payload.size());
                    report.content = reinterpret_cast<uint64_t>(payload.data());
                    break;
                }
            } else {
                decoder.on_word(word);
                tail++;
            }
            if (tail - told >= TAIL_STEP) release(lane, told = tail);
        }
        if (tail != told) release(lane, tail);
        if (tail == head && last && report.kind == uint32_t(Result::ROWS) && decoder.final() < capacity) {
            if (uint64_t pc = decoder.finish(signal)) crash = pc;
            // Rows that do not fit are reported first.
            if (decoder.final() <= capacity) report.kind = uint32_t(Result::ENDED);
        }
    }

    // Handle an event. Return whether it has to be reported.
    bool on_event(Decoder &decoder, Event event) {
        switch (event) {
            case Event::DEFINE:
                blocks.define(payload);
                return false;
            case Event::HANDLER:
                handlers.insert(payload[0]);
                return false;
            case Event::FORK:
                forks.insert(payload[0]);
                return false;
            case Event::SIGRETURN:
                decoder.on_return_from_signal();
                return false;
            default:
                decoder.complete();
                return true;
        }
    }

    // Give the words before `tail` back to the thread, and wake it if it waits.
    void release(ring::Lane &lane, uint64_t tail) {
        lane.tail.store(tail);
        if (lane.waiting.load() && lane.written - tail < ring::WORDS / 2) {
            lane.waiting.store(0);
            syscall(SYS_futex, &lane.waiting, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        }
    }
};

}  // namespace

extern "C" {

// Return null if there is no memory.
Reader *reader_new() {
    // A file without a name: processes that the program starts can open it by the descriptor of this process.
    int descriptor = memfd_create("spurtle", MFD_CLOEXEC);
    if (descriptor < 0) return nullptr;
    void *shared = MAP_FAILED;
    if (!ftruncate(descriptor, ring::BYTES))
        shared = mmap(nullptr, ring::BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (shared == MAP_FAILED) {
        close(descriptor);
        return nullptr;
    }
    auto *header = static_cast<ring::Header *>(shared);
    header->reader = uint32_t(getpid());
    return new Reader(header, descriptor);
}

void reader_delete(Reader *reader) {
    reader->header->closed = 1;
    munmap(reader->header, ring::BYTES);
    close(reader->descriptor);
    delete reader;
}

int reader_descriptor(const Reader *reader) { return reader->descriptor; }

// Set what the plugin needs to execute other programs. Return false if a text is too long.
bool reader_configure(Reader *reader, const char *command, uint64_t bytes, const char *sysroot, bool follow) {
    ring::Header &header = *reader->header;
    if (bytes >= sizeof(header.command) || strlen(sysroot) >= sizeof(header.sysroot)) return false;
    memcpy(header.command, command, bytes);
    strcpy(header.sysroot, sysroot);
    header.follow = follow;
    return true;
}

void reader_step(Reader *reader, Operation *rows, uint64_t capacity, Report *report) {
    reader->step(rows, capacity, *report);
}

// Set the classification of the instructions of the block that was reported as unclassified.
void reader_classify(Reader *reader, const Word *words) {
    reader->blocks.classify(*reader->unclassified, words, reader->header->exact);
}

// Report that the first process has ended, by a signal or with signal 0.
void reader_end(Reader *reader, uint32_t signal) {
    reader->ended = true;
    reader->signal = signal;
}

bool reader_exhausted(const Reader *reader) { return reader->header->exhausted; }
bool reader_started(const Reader *reader) { return reader->header->first; }

// Return the PC of the instruction that caused the end of the program, or 0 if it is not known.
uint64_t reader_crash(const Reader *reader) { return reader->crash; }
}
