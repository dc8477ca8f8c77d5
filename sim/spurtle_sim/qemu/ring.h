// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
//
// Memory that the plugin in QEMU and the reader share: a header, and a lane with a ring of words for each thread.
// reader.py generates layout.h, with the kinds of events.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace ring {

// More threads than Linux allows by default. The memory is sparse, so a lane that is not used takes no memory.
constexpr uint64_t LANES = 1 << 15;
constexpr uint64_t WORDS = 1 << 15;  // words of a ring
constexpr size_t TEXT_BYTES = 4096;  // maximum length of a path, with its zero byte

// A word of a ring has its kind in bits [63:61] and, except for BLOCK and EVENT, the index of an instruction in its
// block in bits [60:52]. QEMU puts at most 512 instructions into a block.
enum class Kind : uint64_t {
    BLOCK,    // a block starts; bits [31:0]: its number
    ACCESS,   // bits [51:0]: lowest address that the instruction has accessed
    OUTCOME,  // bits [3:0]: PSTATE.{N, Z, C, V} before a conditional select or compare
    EVENT,    // bits [51:32]: number of words that follow; bits [31:0]: Event
    CUT,      // the block before was left at this instruction, which has not retired
    LENGTH,   // bits [51:0]: length of vectors in units of 64 bits, for this SVE instruction and later ones
};

constexpr unsigned KIND_SHIFT = 61, INDEX_SHIFT = 52, COUNT_SHIFT = 32;
constexpr uint64_t MAX_INDEX = (1 << (KIND_SHIFT - INDEX_SHIFT)) - 1;
constexpr uint64_t ADDRESS_MASK = (uint64_t(1) << INDEX_SHIFT) - 1;

constexpr uint64_t word(Kind kind, uint64_t index = 0, uint64_t content = 0) {
    return uint64_t(kind) << KIND_SHIFT | index << INDEX_SHIFT | content;
}

constexpr Kind kind_of(uint64_t word) { return Kind(word >> KIND_SHIFT); }
constexpr uint64_t index_of(uint64_t word) { return word >> INDEX_SHIFT & MAX_INDEX; }

// LOCKED: a thread has reserved the lane, and sets its numbers.
enum class State : uint32_t { FREE, LOCKED, OPEN, ENDED };

constexpr size_t CACHE_LINE = 64;

// Ring of one thread, of which the words from `tail` to `head` are to be read. Each line has one writer.
struct Lane {
    // Words before it are complete. It is stored at each block, so that nothing is lost if the process is killed.
    alignas(CACHE_LINE) std::atomic<uint64_t> head;
    // Words before it were written. The reader may use it when the process has ended.
    alignas(CACHE_LINE) uint64_t written;
    alignas(CACHE_LINE) std::atomic<uint64_t> tail;
    alignas(CACHE_LINE) std::atomic<uint32_t> waiting;  // futex: one while the thread waits because the ring is full
    alignas(CACHE_LINE) std::atomic<State> state;
    uint32_t process, thread, parent;  // numbers of the host
    uint64_t order;                    // in which lanes were opened
    uint64_t forks;                    // of which all were started before the lane was opened
};

struct Header {
    std::atomic<uint64_t> opened;     // lanes from this one on were never used
    std::atomic<uint64_t> order;      // of the next lane
    std::atomic<uint64_t> forks;      // threads and processes that were started
    std::atomic<uint64_t> blocks;     // number of the next block
    std::atomic<uint32_t> closed;     // the reader does not read any more
    std::atomic<uint32_t> exhausted;  // a thread found no free lane
    std::atomic<uint32_t> first;      // the first process
    uint32_t exact;                   // the plugin can read registers
    uint32_t reader;                  // process of the reader
    uint32_t follow;                  // record the processes that the first one starts
    char sysroot[TEXT_BYTES];         // folder of the option -L of QEMU, or empty
    char command[8 * TEXT_BYTES];     // arguments of QEMU before the program, each with a zero byte, and a zero byte
    Lane lanes[LANES];
};

constexpr uint64_t HEADER_BYTES = (sizeof(Header) + 4095) / 4096 * 4096;
constexpr uint64_t BYTES = HEADER_BYTES + LANES * WORDS * sizeof(uint64_t);

inline uint64_t *words(Header *header, uint64_t lane) {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(header) + HEADER_BYTES) + lane * WORDS;
}

}  // namespace ring
