// Fast-forward: which operations need not be simulated, because the SPU does nothing for them but decrement COUNT and
// ECOUNT. docs/explanation/sampling.md describes the method.

#pragma once

#include <algorithm>

#include "layout.h"
#include "spu_core.h"

// Fewer operations are simulated: reading and writing PMSICR_EL1 takes about as many cycles.
constexpr uint64_t MIN_FORWARD = 16;

constexpr uint64_t MIN_INTERVAL = 1 << PMSIRR_INTERVAL.offset;   // unit of INTERVAL
constexpr uint64_t MAX_ECOUNT = (1 << PMSICR_ECOUNT.width) - 1;  // operations by which a selection is delayed at most

inline uint64_t get(uint64_t value, Field field) { return value >> field.offset & low_bits(field.width); }

// PMSICR_EL1.
struct Counters {
    uint64_t count, ecount;
    bool counting;  // operations decrement ECOUNT

    Counters(uint64_t pmsicr, bool random)
        : count(get(pmsicr, PMSICR_COUNT)), ecount(get(pmsicr, PMSICR_ECOUNT)), counting(ecount && random) {}

    // Return PMSICR_EL1 after `operations` operations, of which none is selected and none reloads COUNT.
    uint64_t after(uint64_t operations) const {
        return (count - operations) << PMSICR_COUNT.offset | (ecount - counting * operations) << PMSICR_ECOUNT.offset;
    }

    // Return how many operations only decrement the counters, to one at the least.
    uint64_t quiet() const {
        uint64_t first = counting ? std::min(count, ecount) : count;
        return first ? first - 1 : 0;
    }
};

// Decision when the counters are read. Rows are numbers of operations, counted from the first one played.
struct Forward {
    bool enabled = false;
    uint64_t from = 0;                 // row from which on the counters are worth reading
    uint64_t row = 0, counted = 0;     // row, and population of the PMU, when software last accessed the SPU
    uint64_t interval = MIN_INTERVAL;  // least value that a reload writes into COUNT
    bool random = false;               // RND
    uint64_t selected = 0;             // selections when software last wrote COUNT

    // Return whether no operation that has passed can still be selected, because the last selection was not long ago.
    bool is_clear(const Core &core) const {
        uint64_t distance = interval + 1 - (RANDOM_DELAY && random ? MAX_ECOUNT : 0);
        return core.selected > selected && core.rows <= core.last_selected + distance;
    }

    // Return whether all operations since the last access are members of the population, so that COUNT counts them.
    bool counts(const Core &core, const Counts &counts) const { return core.rows - row == counts.pop - counted; }

    // Software accesses a register. All operations that have passed are counted.
    void access(const Core &core, const Counts &counts) {
        row = core.rows;
        counted = counts.pop;
        from = row + 1;
    }

    // Software writes a register.
    void write(const Core &core, const Encoding &encoding, uint64_t value) {
        if (encoding == PMSICR_EL1) selected = core.selected;
        if (encoding != PMSIRR_EL1) return;
        interval = std::max<uint64_t>(get(value, PMSIRR_INTERVAL), 1) * MIN_INTERVAL;
        random = get(value, PMSIRR_RND);
    }

    // The registers have their reset values.
    void reset(const Core &core) {
        write(core, PMSICR_EL1, 0);
        write(core, PMSIRR_EL1, 0);
    }
};

// Return how many of `count` operations are in complete cycles. Another operation follows them.
inline uint64_t complete_cycles(const Operation *operations, uint64_t count) {
    while (count && operations[count].dispatch == operations[count - 1].dispatch) count--;
    return count;
}
