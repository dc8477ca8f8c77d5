// The part of a core that drives the SPU's ports of operations: operations at the sampling point, and sampled
// operations in flight.

#pragma once

#include <vector>

#include "design.h"
#include "layout.h"
#include "ports.h"

// Target of the last taken branch if there was none, or if it has been reported.
constexpr uint64_t NO_TARGET = ~uint64_t(0);

// Cycles whose operations are stored. Collisions are reported one cycle after `sampled`.
constexpr unsigned HISTORY = 8;
static_assert(HISTORY > ANSWER_LATENCY + 1);

// Operations of one cycle at the sampling point, in program order.
struct Passing {
    uint64_t first;  // row of the first operation
    uint64_t time;
    unsigned count = 0;
    unsigned lanes = 0;  // bit mask of the lanes in which they pass
    Operation operations[LANES];
    uint64_t previous[LANES];  // target of the last taken branch before each operation, or NO_TARGET
};

// Sampled operation, from the cycle in which `sampled` reports it to its finish.
struct Flight {
    bool active = false;
    uint64_t row;
    uint64_t since;  // cycle in which it passed the sampling point
    Operation operation;
    uint64_t previous;  // target of the last taken branch before it. NO_TARGET if none remains to be reported
};

struct Core {
    std::vector<Selection> selections;
    std::vector<Finish> finishes;
    unsigned active_flights = 0;  // sampled operations in flight
    uint64_t rows = 0;            // operations that have passed the sampling point
    uint64_t selected = 0;        // operations that were sampled or collided
    uint64_t last_selected = 0;   // row of the last one, or a row before it in the same cycle

    // Return the operations of a cycle, at most HISTORY - 1 cycles ago.
    Passing &at(uint64_t cycle) { return passing[cycle % HISTORY]; }

    // Append an operation to a cycle.
    void append(Passing &now, const Operation &operation) {
        now.previous[now.count] = previous;
        now.operations[now.count++] = operation;
        if (is_taken_branch(operation)) previous = operation.target;
    }

    // Let operations pass that are not simulated.
    void skip(const Operation *operations, uint64_t count) {
        rows += count;
        while (count && !is_taken_branch(operations[count - 1])) count--;
        if (count) previous = operations[count - 1].target;
    }

    // Assign the operations of this cycle to lanes, in program order. Which lanes stay empty changes from cycle to
    // cycle.
    void drive_lanes(design &spu, const Counts &counts) {
        Passing &now = at(counts.cycles);
        // A multiplicative hash of the time. The factor is a prime near 2^32 divided by the golden ratio.
        unsigned noise = uint32_t(counts.time) * 0x9E3779B1u >> 16, remaining = now.count;
        now.lanes = 0;
        for (unsigned lane = 0; remaining; lane++)
            if (remaining == LANES - lane || noise >> lane & 1) {
                now.lanes |= 1u << lane;
                remaining--;
            }
        now.first = rows;
        now.time = counts.time;
        rows += now.count;
        spu.PORT(sampling, valid) = now.lanes;
    }

    // Capture which operations are sampled, and how many collided. Those that collided passed one cycle earlier and are
    // appended first, so that selections are in program order.
    void capture_selections(design &spu, uint64_t cycle) {
        const Passing &collided = at(cycle - ANSWER_LATENCY - 1), &answered = at(cycle - ANSWER_LATENCY);
        unsigned collisions = spu.PORT(pmu, sample_collision);
        selected += collisions;
        if (collisions) last_selected = collided.first;
        for (unsigned count = collisions; count; count--)
            selections.push_back({collided.first, collided.count, 0, collided.time, 0});
        unsigned sampled = spu.PORT(sampling, sampled);
        if (!sampled) return;
        const auto slots = slots_of_lanes(spu);
        selected += __builtin_popcount(sampled);
        last_selected = answered.first;
        for (; sampled; sampled &= sampled - 1) {
            unsigned lane = __builtin_ctz(sampled);
            unsigned index = __builtin_popcount(answered.lanes & ((1u << lane) - 1));
            Flight &flight = flights[slots[lane]];
            active_flights += !flight.active;
            flight = {true, answered.first + index, cycle - ANSWER_LATENCY, answered.operations[index],
                      answered.previous[index]};
            selections.push_back({flight.row, 1, 1, answered.time, destinations(spu) >> lane & 1});
        }
    }

    // Drive the events of the sampled operations, ANSWER_LATENCY - 1 cycles late. In each cycle, at most one
    // finish is reported, of the oldest operation that has finished.
    void drive_in_flight(design &spu, uint64_t cycle) {
        unsigned issued = 0, completed = 0, translating = 0;
        Flight *ending = nullptr;
        for (unsigned slot = 0; active_flights && slot < SLOTS; slot++) {
            Flight &flight = flights[slot];
            if (!flight.active) continue;
            const Operation &operation = flight.operation;
            uint64_t age = age_of(flight, cycle);
            issued |= (age == operation.issue) << slot;
            completed |= (age == operation.finish) << slot;
            translating |= (age >= operation.translate_from && age < operation.translate_to) << slot;
            if (age >= operation.finish && (!ending || flight.row < ending->row)) ending = &flight;
        }
        spu.PORT(in_flight, issued) = issued;
        spu.PORT(in_flight, completed) = completed;
        spu.PORT(in_flight, translating) = translating;
#if PBT
        // Finishes and taken branches are reported in program order. Of the branches, only the last one before each
        // operation that finishes is reported, in a cycle before the finish.
        for (Flight &flight : flights)
            if (ending && flight.active && flight.row < ending->row) ending = nullptr;
        bool branch = ending && ending->previous != NO_TARGET;
        spu.PORT(branch, valid) = branch;
        if (branch) {
            spu.PORT(branch, target) = ending->previous | uint64_t(1) << LOCATION_NS.offset;
            ending->previous = NO_TARGET;
            ending = nullptr;
        }
#endif
        spu.PORT(finish, valid) = ending != nullptr;
        if (ending) finish(spu, *ending, cycle);
    }

    // Drop the operations in flight.
    void reset() {
        for (Flight &flight : flights) flight.active = false;
        active_flights = 0;
    }

private:
    uint64_t previous = NO_TARGET;  // target of the last taken branch
    Passing passing[HISTORY];
    Flight flights[SLOTS];

    static bool is_taken_branch(const Operation &operation) {
        return (operation.facts & TAKEN_BRANCH_MASK) == TAKEN_BRANCH;
    }

    static uint64_t age_of(const Flight &flight, uint64_t cycle) { return cycle - (ANSWER_LATENCY - 1) - flight.since; }

    void finish(design &spu, Flight &flight, uint64_t cycle) {
#if SEVERAL_SLOTS
        spu.PORT(finish, slot) = &flight - flights;
#endif
        uint32_t *operation = words_of(spu.PORT(finish, operation));
        put_field(operation, FACTS, flight.operation.facts);
        put_field(operation, EVENTS, flight.operation.events);
        put_field(operation, PC, flight.operation.pc);
        put_field(operation, TARGET, flight.operation.target);
        put_field(operation, TARGET_NS, 1);
        put_field(operation, VA, flight.operation.va);
        put_field(operation, PA, flight.operation.pa);
        put_field(operation, PA_NS, 1);
        put_field(operation, DATA_SOURCE, flight.operation.data_source);
        put_vectors(operation, flight.operation.vectors);
        finishes.push_back({flight.row, age_of(flight, cycle)});
        flight.active = false;
        active_flights--;
    }
};
