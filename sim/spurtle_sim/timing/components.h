// Caches, branch predictor and queues of the core that the timing model describes.

#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "layout.h"

constexpr uint64_t NOTHING = ~uint64_t(0);  // larger than any page or line number

// A hash table of page or line numbers, with open addressing. At most half of it is used, so that searches are short.
struct Table {
    struct Slot {
        uint64_t key = NOTHING;
        uint64_t value = 0;
    };
    std::vector<Slot> slots;
    size_t used = 0;

    // `size` is a power of two.
    explicit Table(size_t size) : slots(size) {}

    // The slot of `key`, or the free one that it can be inserted into.
    Slot &find(uint64_t key) {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        size_t index = (key * 0x9E37'79B9'7F4A'7C15) >> (64 - std::countr_zero(slots.size()));
        while (slots[index].key != NOTHING && slots[index].key != key) index = (index + 1) & (slots.size() - 1);
        return slots[index];
    }

    void put(Slot &slot, uint64_t key, uint64_t value) {
        used += slot.key == NOTHING;
        slot = {key, value};
    }

    bool full() const { return 2 * used >= slots.size(); }

    // Moves to a table of `size` slots; leaves out the values below `least`.
    void rebuild(size_t size, uint64_t least) {
        std::vector<Slot> old(size);
        old.swap(slots);
        used = 0;
        for (const Slot &slot : old)
            if (slot.key != NOTHING && slot.value >= least) put(find(slot.key), slot.key, slot.value);
    }
};

// Numbers pages from 0, in the order in which they are added.
struct Pages {
    Table numbers{64};

    uint64_t count() const { return numbers.used; }

    // The number of `page`; NOTHING if it was not added.
    uint64_t find(uint64_t page) {
        const Table::Slot &slot = numbers.find(page);
        return slot.key == page ? slot.value : NOTHING;
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

// A set-associative cache of page or line numbers. The least recently used one of a set is replaced.
struct Cache {
    size_t ways;
    uint64_t mask;                  // number of sets, a power of two, less 1
    std::vector<uint64_t> numbers;  // set by set; in each, the most recently used first

    Cache(uint32_t entries, uint32_t ways) : ways(ways), mask(entries / ways - 1), numbers(entries, NOTHING) {}

    // Whether `number` is present. It moves to the first way, and those before it one way further. If it was absent, the
    // last one leaves the cache.
    bool access(uint64_t number) {
        uint64_t *set = &numbers[(number & mask) * ways], moved = number;
        for (size_t way = 0; way < ways; way++) {
            std::swap(moved, set[way]);
            if (moved == number) return true;
        }
        return false;
    }
};

// When cache lines arrive that loads have missed.
struct Fills {
    Table ends;         // cycles, by line
    uint64_t last = 0;  // the latest of them

    // Of loads that have not finished at a dispatch there are at most `window`: a quarter of the slots that can be used.
    explicit Fills(uint32_t window) : ends(std::bit_ceil(size_t(8) * window)) {}

    void add(uint64_t line, uint64_t end, uint64_t dispatch) {
        ends.put(ends.find(line), line, end);
        last = std::max(last, end);
        // No load that is still to be timed finishes in this cycle or before.
        if (ends.full()) ends.rebuild(ends.slots.size(), dispatch + 1);
    }

    // The cycle in which a load has its data that would finish in cycle `finish` if `line`, a hit, had arrived.
    uint64_t wait(uint64_t line, uint64_t finish) {
        // Most loads finish after the last line arrived, and need no search.
        if (finish >= last) return finish;
        const Table::Slot &slot = ends.find(line);
        return slot.key == line ? std::max(finish, slot.value) : finish;
    }
};

// Predicts directions of conditional branches by two-bit counters, indirect targets by a table, returns by a stack. Counters
// and table are indexed by the PC and the directions of the last conditional branches. Targets of direct branches are
// always right.
struct Predictor {
    uint64_t mask;
    uint64_t history = 0;             // directions, the last one in bit 0
    std::vector<uint8_t> directions;  // 2 and 3 predict taken
    std::vector<uint64_t> targets;
    std::vector<uint64_t> returns;    // a ring: a call too many overwrites the oldest
    size_t top = 0, depth = 0;

    Predictor(uint32_t bits, uint32_t return_stack)
        : mask((uint64_t(1) << bits) - 1), directions(mask + 1, 2), targets(mask + 1), returns(return_stack) {}

    // Whether a branch is mispredicted. Where it went is learned.
    bool mispredicts(Kind kind, const Operation &branch) {
        size_t index = (branch.pc >> 2 ^ history) & mask;
        bool wrong = false;
        if (branch.facts & FACT_CONDITIONAL)
            wrong = mispredicts_direction(index, branch.facts & FACT_TAKEN);
        else if (kind == Kind::RETURN)
            wrong = mispredicts_return(branch.target);
        else if (branch.facts & FACT_INDIRECT)
            wrong = std::exchange(targets[index], branch.target) != branch.target;
        if (kind == Kind::CALL) push(branch.pc + 4);
        return wrong;
    }

    bool mispredicts_direction(size_t index, bool taken) {
        uint8_t counter = directions[index];
        directions[index] = taken ? std::min(counter + 1, 3) : std::max(counter - 1, 0);
        history = (history << 1 | taken) & mask;
        return (counter >= 2) != taken;
    }

    bool mispredicts_return(uint64_t target) {
        if (!depth) return true;
        depth--;
        top = (top ? top : returns.size()) - 1;
        return returns[top] != target;
    }

    void push(uint64_t target) {
        returns[top] = target;
        top = top + 1 < returns.size() ? top + 1 : 0;
        depth = std::min(depth + 1, returns.size());
    }
};

// The cycles of the last operations in a queue of fixed size; 0 at first.
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
