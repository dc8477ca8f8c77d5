// Memory behind the write port: it stores the beats of records in the Profiling Buffer and responds to each record.
// Its timing, faults and External aborts can be random.

#pragma once

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <vector>

#include "design.h"
#include "layout.h"
#include "ports.h"

// Number of a response that is an asynchronous External abort. Smaller numbers are indices of FAULTS.
constexpr uint64_t ABORT = std::size(FAULTS);

// Cycles after a response in which no External abort is reported. After them the SPU knows whether the buffer is full.
// Before, it would be the SPU's choice which of the two events comes first.
constexpr unsigned ABORT_DISTANCE = 8;

// Random behavior of memory. All of it is off while `state` is zero.
struct Disturbance {
    uint64_t state = 0;  // of the random number generator (xorshift)
    unsigned stall = 0;  // memory accepts no beat in `stall` of 256 cycles
    unsigned late = 0;   // largest additional delay of a response in cycles
    unsigned fault = 0;  // `fault` of 256 records have a fault
    unsigned abort = 0;  // an External abort is reported in `abort` of 65536 cycles in which one is possible

    unsigned draw(unsigned count) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 32) % count;
    }
};

// Address range that cannot be written. `fault` is the index in FAULTS of the response to a record that writes to it.
struct FaultingRange {
    uint64_t base = 0, size = 0;
    unsigned fault = 0;

    bool overlaps_beat(uint64_t address) const { return address + BEAT_BYTES > base && address < base + size && size; }
};

struct Memory {
    uint8_t *buffer = nullptr;  // bytes of the addresses from `base`
    uint64_t base = 0, size = 0;
    unsigned latency = 1;  // cycles from the last beat of a record to its response, at least 1
    Disturbance disturbance;
    FaultingRange faulting;
    std::vector<Response> responses;

    bool draw_ready() { return !disturbance.state || disturbance.draw(256) >= disturbance.stall; }

    // Drive the response to the oldest record, and an External abort of an earlier write.
    void drive_response(design &spu, uint64_t cycle) {
        bool done = !outstanding.empty() && cycle == outstanding.front().due;
        spu.PORT(write, done) = done;
        spu.PORT(write, fault) = done ? outstanding.front().fault : 0;
#if EXTERNAL_ABORTS
        bool distant = cycle - last_response > ABORT_DISTANCE;
        bool abort = written && !done && distant && disturbance.draw(65536) < disturbance.abort;
        spu.PORT(write, abort) = abort;
        if (abort) responses.push_back({ABORT, 0});
#endif
        if (!done) return;
        responses.push_back(outstanding.front().response);
        last_response = cycle;
        outstanding.pop_front();
    }

    // Store a beat, unless the SPU discards it or an earlier record has a fault that is not reported yet. After the last
    // beat of a record, schedule the response. Responses are in the order of the records.
    void accept_beat(const uint32_t *beat, bool discard, Counts &counts) {
        uint64_t address = get_field(beat, BEAT_ADDRESS);
        written = true;
        if (!beats) {
            skipped = std::countr_zero(get_field(beat, BEAT_STROBE));
            good = MAX_BEATS;
            if (disturbance.state && disturbance.draw(256) < disturbance.fault) {
                good = disturbance.draw(MAX_BEATS);
                response.fault = 1 + disturbance.draw(std::size(FAULTS) - 1);
            }
        }
        if (beats < good && faulting.overlaps_beat(address)) {
            good = beats;
            response.fault = faulting.fault;
        }
        if (beats++ < good && !discard && !fault_pending()) store(address, beat, counts);
        if (!get_field(beat, BEAT_LAST)) return;
        if (beats <= good) {
            counts.records++;
            response.fault = 0;
        }
        response.written = response.fault && good ? good * BEAT_BYTES - skipped : 0;
        uint64_t fault = FAULTS[response.fault] | (response.written + skipped) / BEAT_BYTES << FAULT_WORD.offset;
        beats = 0;
        uint64_t due = counts.cycles + latency + (disturbance.state ? disturbance.draw(disturbance.late + 1) : 0);
        if (!outstanding.empty()) due = std::max(due, outstanding.back().due + 1);
        outstanding.push_back({response, fault, due});
    }

    // Complete a PSB CSYNC: External aborts of earlier writes are not reported after it.
    void synchronize() { written = false; }

    // Drop the records that have no response.
    void reset() {
        beats = 0;
        outstanding.clear();
        written = false;
    }

private:
    // A complete record, the value of the port `write.fault` for it, and the cycle of its response.
    struct Record {
        Response response;
        uint64_t fault;
        uint64_t due;
    };

    std::deque<Record> outstanding;
    unsigned beats = 0;    // accepted beats of the record that is being written
    unsigned good = 0;     // beats of it before the fault
    unsigned skipped = 0;  // bytes of its first beat that belong to the previous record
    bool written = false;  // a beat was accepted since the last PSB CSYNC, so an External abort is possible
    Response response{};  // to it
    uint64_t last_response = 0;  // cycle of the last response

    bool fault_pending() const {
        return std::any_of(outstanding.begin(), outstanding.end(), [](const Record &each) { return each.response.fault; });
    }

    void store(uint64_t address, const uint32_t *beat, Counts &counts) {
        if (address < base || address - base + BEAT_BYTES > size) {
            counts.strays++;
            return;
        }
        uint64_t strobe = get_field(beat, BEAT_STROBE);
        for (unsigned byte = 0; byte < BEAT_BYTES; byte++)
            if (strobe >> byte & 1) buffer[address - base + byte] = get_field(beat, {BEAT_DATA.offset + 8 * byte, 8});
    }
};
