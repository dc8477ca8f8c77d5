// Caches, branch predictor and queues of the timing model.

#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "layout.h"

constexpr uint64_t INVALID = ~uint64_t(0);  // larger than any page or line number

// Hash table with open addressing. Its keys are page or line numbers. At most half of its slots are used, so that
// searches are short.
struct Table {
    struct Slot {
        uint64_t key = INVALID;
        uint64_t value = 0;
    };
    std::vector<Slot> slots;
    size_t used = 0;

    // `size` is a power of two.
    explicit Table(size_t size) : slots(size) {}

    // Return the slot of `key`, or the free slot into which it can be inserted.
    Slot &find(uint64_t key) {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        size_t index = (key * 0x9E37'79B9'7F4A'7C15) >> (64 - std::countr_zero(slots.size()));
        while (slots[index].key != INVALID && slots[index].key != key) index = (index + 1) & (slots.size() - 1);
        return slots[index];
    }

    void put(Slot &slot, uint64_t key, uint64_t value) {
        used += slot.key == INVALID;
        slot = {key, value};
    }

    bool full() const { return 2 * used >= slots.size(); }

    // Resize the table to `size` slots. Entries with a value below `minimum` are removed.
    void rebuild(size_t size, uint64_t minimum) {
        std::vector<Slot> old(size);
        old.swap(slots);
        used = 0;
        for (const Slot &slot : old)
            if (slot.key != INVALID && slot.value >= minimum) put(find(slot.key), slot.key, slot.value);
    }
};

// Map from pages to numbers. Pages are numbered from 0 in the order in which they are added.
struct Pages {
    Table numbers{64};  // initial size; it doubles when half of the slots are used

    uint64_t count() const { return numbers.used; }

    // Return the number of `page`, or INVALID if it was not added.
    uint64_t find(uint64_t page) {
        const Table::Slot &slot = numbers.find(page);
        return slot.key == page ? slot.value : INVALID;
    }

    uint64_t find_or_add(uint64_t page) {
        Table::Slot &slot = numbers.find(page);
        if (slot.key == page) return slot.value;
        uint64_t number = count();
        numbers.put(slot, page, number);
        if (numbers.full()) numbers.rebuild(2 * numbers.slots.size(), 0);
        return number;
    }
};

// Set-associative cache of page or line numbers. The least recently used entry of a set is replaced.
struct Cache {
    size_t ways;
    uint64_t mask;                  // number of sets, a power of two, minus 1
    std::vector<uint64_t> numbers;  // set by set; the entries of a set in order of use, most recent first

    Cache(uint32_t entries, uint32_t ways) : ways(ways), mask(entries / ways - 1), numbers(entries, INVALID) {}

    // Return whether the core has this cache.
    bool present() const { return !numbers.empty(); }

    // Return whether `number` is present, and make it the most recently used entry of its set. If it was absent, the
    // least recently used entry is evicted.
    bool access(uint64_t number) {
        uint64_t *set = &numbers[(number & mask) * ways], shifted = number;
        for (size_t way = 0; way < ways; way++) {
            std::swap(shifted, set[way]);
            if (shifted == number) return true;
        }
        return false;
    }
};

// Arrival times of the cache lines that load misses fetch.
struct Fills {
    Table arrivals;       // cycles, by line
    uint64_t latest = 0;  // latest arrival

    // At most `window` loads are in flight when an operation dispatches. They take at most a quarter of the usable
    // slots, so that a rebuild removes at least three quarters of the entries. With a prefetcher more lines can be in
    // flight: the table then becomes larger.
    explicit Fills(uint32_t window) : arrivals(std::bit_ceil(size_t(8) * window)) {}

    void add(uint64_t line, uint64_t arrival, uint64_t dispatch) {
        arrivals.put(arrivals.find(line), line, arrival);
        latest = std::max(latest, arrival);
        // Later loads finish after cycle `dispatch`, so lines that have arrived by that cycle cannot delay them.
        if (!arrivals.full()) return;
        arrivals.rebuild(arrivals.slots.size(), dispatch + 1);
        if (4 * arrivals.used > arrivals.slots.size()) arrivals.rebuild(2 * arrivals.slots.size(), 0);
    }

    // Return the cycle in which a load that hits `line` has its data. That is `finish` if the line has arrived by
    // then, and otherwise the arrival of the line.
    uint64_t data_cycle(uint64_t line, uint64_t finish) {
        // Most loads finish after the latest arrival and need no search.
        if (finish >= latest) return finish;
        const Table::Slot &slot = arrivals.find(line);
        return slot.key == line ? std::max(finish, slot.value) : finish;
    }
};

// Branch predictor. Two-bit counters predict the directions of conditional branches, a table the targets of indirect
// branches, and a stack the targets of returns. Counters and table are indexed by the PC and the directions of the last
// conditional branches. Targets of direct branches are always predicted correctly.
struct Predictor {
    uint64_t mask;
    uint64_t history = 0;             // directions, most recent in bit 0
    std::vector<uint8_t> directions;  // counters; 2 and 3 predict taken, and 2 is the initial value
    std::vector<uint64_t> targets;
    std::vector<uint64_t> returns;    // ring: a push to a full stack overwrites the oldest address
    size_t top = 0, depth = 0;
    uint64_t predicted = INVALID;     // predicted target of the last return or other indirect branch

    Predictor(uint32_t bits, uint32_t return_stack)
        : mask((uint64_t(1) << bits) - 1), directions(mask + 1, 2), targets(mask + 1), returns(return_stack) {}

    // Return whether a branch is mispredicted, and update the predictor with its outcome.
    bool mispredicts(Kind kind, const Operation &branch) {
        size_t index = (branch.pc >> 2 ^ history) & mask;
        bool mispredicted = false;
        if (branch.facts & FACT_CONDITIONAL)
            mispredicted = mispredicts_direction(index, branch.facts & FACT_TAKEN);
        else if (kind == Kind::RETURN)
            mispredicted = mispredicts_return(branch.target);
        else if (branch.facts & FACT_INDIRECT)
            mispredicted = (predicted = std::exchange(targets[index], branch.target)) != branch.target;
        if (kind == Kind::CALL) push(branch.pc + 4);
        return mispredicted;
    }

    // Return the predicted direction of a conditional branch.
    bool predicts_taken(uint64_t pc) const { return directions[(pc >> 2 ^ history) & mask] >= 2; }

    bool mispredicts_direction(size_t index, bool taken) {
        uint8_t counter = directions[index];
        directions[index] = taken ? std::min(counter + 1, 3) : std::max(counter - 1, 0);
        history = (history << 1 | taken) & mask;
        return (counter >= 2) != taken;
    }

    bool mispredicts_return(uint64_t target) {
        predicted = INVALID;
        if (!depth) return true;
        depth--;
        top = (top ? top : returns.size()) - 1;
        predicted = returns[top];
        return predicted != target;
    }

    void push(uint64_t target) {
        returns[top] = target;
        top = top + 1 < returns.size() ? top + 1 : 0;
        depth = std::min(depth + 1, returns.size());
    }
};

// Queue of fixed size with one cycle for each of the last operations. Its entries are initially 0.
struct Queue {
    std::vector<uint64_t> cycles;
    size_t next = 0;

    explicit Queue(uint32_t size) : cycles(size) {}

    uint64_t oldest() const { return cycles[next]; }

    void append(uint64_t cycle) {
        cycles[next] = cycle;
        next = next + 1 < cycles.size() ? next + 1 : 0;
    }
};
