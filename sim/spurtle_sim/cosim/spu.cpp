// Plays operations on the compiled SPU, a batch at a time. design.h is the translated Verilog. designs.py generates
// layout.h: the declarations shared with Python, and the functions for ports that not every configuration has.

#include <algorithm>
#include <vector>

#include "design.h"
#include "layout.h"
#include "ports.h"
#include "spu_core.h"
#include "spu_forward.h"
#include "spu_memory.h"
#include "waves.h"

__attribute__((weak)) void design___024root___eval(design___024root *);

namespace {

constexpr unsigned OP1_OF_EL2 = 4;

// Limit of a drain in cycles, without the latency of memory. No record takes that long, so reaching the limit is an
// error.
constexpr unsigned DRAIN_CYCLES = 1000;

// Cycles after the last finish, or after the last access of software, until all records are in memory and all registers
// have taken effect. The delays of a Disturbance are not included. After a write of the pointer or the limit, the buffer
// takes 16 cycles to report whether it is full.
constexpr unsigned SETTLE_CYCLES = ANSWER_LATENCY + 16 + SLOTS * (MAX_BEATS + PACKING_CYCLES + 8);

struct CompiledSPU {
    VerilatedContext context;
    design spu{&context};
    Core core;
    Memory memory;
    Forward forward;
#if TRACED
    Waves waves;
#else
    GatedInputs gated_inputs;
#endif

    Counts counts{};       // fields: see `counts` of structs.py
    bool skipping = true;  // cycles in which nothing changes are not simulated

    explicit CompiledSPU(const PEState &pe) {
#if TRACED
        context.traceEverOn(true);
#endif
        ::set_pe(spu, pe);
        spu.eval();
        spu.rst = 1;
        cycle();
        spu.rst = 0;
        cycle();
        counts.cycles = 0;
    }

    // Enable or disable fast-forward. While it is enabled, PSB CSYNC is in progress and shows when records are in memory.
    void set_forwarding(bool enabled) { spu.PORT(drain, request) = forward.enabled = enabled; }

    // Assign operations to cycles until each has one or the interrupt is asserted. Return how many have one. A cycle
    // with empty lanes stays open for the next call. With `settle`, and after an interrupt, continue until no operation
    // is in flight.
    uint64_t play(const Operation *operations, uint64_t count, bool settle) {
        uint64_t next = 0;
        if (held_up && count) {
            uint64_t dispatch = operations[0].dispatch;
            if (dispatch + counts.delay < counts.time) counts.delay = counts.time - dispatch;
            held_up = false;
        }
        for (;;) {
            bool interrupted = spu.pmbirq;
            held_up |= interrupted;
            if (!interrupted && can_forward() && next < count) next += skip(operations + next, count - next);
            Passing &now = core.at(counts.cycles);
            while (!interrupted && next < count && now.count < LANES && due(operations[next]) <= counts.time)
                core.append(now, operations[next++]);
            bool over = interrupted || next == count;
            if (over && !interrupted && !settle && now.count < LANES) break;
            if (over && !now.count && idle >= ANSWER_LATENCY) break;
            if (!over && !now.count && unchanging())
                counts.time = due(operations[next]);
            else
                advance();
        }
        return next;
    }

    void set_pe(const PEState &pe) {
        settle_answers();
        ::set_pe(spu, pe);
        synchronize_context();
    }

    // Access a System register and return the outcome. A program at EL0 has its kernel make the access, at EL1, or at
    // EL2 if it is a register of EL2.
    unsigned access(const Encoding &encoding, bool write, uint64_t &data) {
        settle_answers();
        if (write) forward.write(core, encoding, data);
        unsigned outcome = transfer(encoding, write, data);
        if (write) synchronize_context();
        return outcome;
    }

    // Reset the SPU, the core and memory.
    void reset() {
        settle_answers();
        core.reset();
        spu.rst = 1;
        cycle();
        spu.rst = 0;
        memory.reset();
        forward.reset(core);
    }

    // PSB CSYNC. Return whether it completes within DRAIN_CYCLES and the latency of memory for each slot.
    bool drain() {
        settle_answers();
        spu.PORT(drain, request) = 1;
        bool drained = false;
        for (unsigned wait = 0; wait < DRAIN_CYCLES + latency_of_all_slots() && !drained; wait++) {
            cycle();
            drained = spu.PORT(drain, done);
        }
        spu.PORT(drain, request) = forward.enabled;
        memory.synchronize();
        return drained;
    }

private:
    bool held_up = false;  // an interrupt was served since the last operation, so the next one may be late
    uint64_t idle = 0;     // cycles of the program since an operation passed or was in flight
    uint64_t settled = 0;  // cycles of the program since an operation was in flight or software accessed the SPU

    // Access a System register in simulated cycles in which no operation passes and the time does not advance.
    unsigned transfer(const Encoding &encoding, bool write, uint64_t &data) {
        unsigned el = spu.PORT(pe, el);
        if (!el) spu.PORT(pe, el) = encoding.op1 == OP1_OF_EL2 ? 2 : 1;
        spu.PORT(sysreg, valid) = 1;
        spu.PORT(sysreg, write) = write;
        spu.PORT(sysreg, op1) = encoding.op1;
        spu.PORT(sysreg, crn) = encoding.crn;
        spu.PORT(sysreg, crm) = encoding.crm;
        spu.PORT(sysreg, op2) = encoding.op2;
        spu.PORT(sysreg, wdata) = data;
        cycle();
        spu.PORT(sysreg, valid) = 0;
        spu.PORT(pe, el) = el;
        for (unsigned waited = 1; waited < ACCESS_LATENCY; waited++) cycle();
        data = spu.PORT(sysreg, rdata);
        return spu.PORT(sysreg, outcome);
    }

    // Return whether the simulation can leave the program between two of its cycles: nothing is in flight, the last
    // record is in memory, and no operation that has passed can be selected.
    bool can_forward() {
        return forward.enabled && core.rows >= forward.from && !core.at(counts.cycles).count && !core.active_flights &&
               settled > ANSWER_LATENCY && spu.PORT(drain, done) && (idle >= ANSWER_LATENCY || forward.is_clear(core));
    }

    // Skip operations that only decrement the counters, and write the counters. Return how many.
    uint64_t skip(const Operation *operations, uint64_t count) {
        if (count <= MIN_FORWARD || due(operations[0]) < counts.time) return 0;  // an operation that is late is simulated
        for (unsigned passed = 0; passed <= ANSWER_LATENCY; passed++) cycle();
        uint64_t pmsicr = 0;
        if (!forward.counts(core, counts) || transfer(PMSICR_EL1, false, pmsicr)) {
            forward.from = core.rows + MIN_INTERVAL;
            return 0;
        }
        Counters counters(pmsicr, forward.random);
        uint64_t quiet = counters.quiet(), skipped = complete_cycles(operations, std::min(quiet, count - 1));
        // The counters are worth reading again after the next selection, or with the operations of the next call.
        forward.from = core.rows + (skipped + MIN_FORWARD <= quiet ? skipped : quiet + 1);
        if (skipped < MIN_FORWARD) return 0;
        uint64_t after = counters.after(skipped);
        transfer(PMSICR_EL1, true, after);
        core.skip(operations, skipped);
        counts.pop += skipped;
        counts.time = due(operations[skipped]);
        return skipped;
    }

    // Return the cycle of the program in which an operation passes.
    uint64_t due(const Operation &operation) const { return operation.dispatch + counts.delay; }

    // Evaluate the next edge of the clock. The function that eval() calls is called directly, without the locks of
    // eval(), which this design does not need. Verilator 5 names it so; eval() is the fallback.
    void evaluate() {
#if TRACED
        for (unsigned edge = 0; edge < 2; edge++) {
            spu.clk = !edge;
            spu.eval();
            waves.dump(2 * counts.cycles + edge);
        }
#else
        spu.clk ^= 1;
        // gating.py describes when the gated registers hold their values.
        if (spu.gated_changed || spu.gated_watched || !gated_inputs.equal(spu)) {
            spu.gated_clk ^= 1;
            gated_inputs.capture(spu);
        }
        if (design___024root___eval)
            design___024root___eval(spu.rootp);
        else
            spu.eval();
#endif
    }

    // Simulate one clock cycle.
    void cycle() {
        core.drive_lanes(spu, counts);
        core.drive_in_flight(spu, counts.cycles);
        spu.PORT(pe, physical_count) = counts.time;
        bool ready = memory.draw_ready();
        spu.PORT_OF(write, beat, ready) = ready;
        memory.drive_response(spu, counts.cycles);
#if SEVERAL_OUTSTANDING
        bool discard = spu.PORT(write, discard);
#else
        bool discard = false;
#endif
        // Valid and payload come from registers only, so they have their values of this cycle before the evaluation.
        if (ready && spu.PORT_OF(write, beat, valid))
            memory.accept_beat(words_of(spu.PORT_OF(write, beat, payload)), discard, counts);
        evaluate();
        counts.cycles++;
        counts.pop += spu.PORT(pmu, sample_pop);
        counts.feed += spu.PORT(pmu, sample_feed);
        counts.filtrate += spu.PORT(pmu, sample_filtrate);
        counts.collision += spu.PORT(pmu, sample_collision);
        counts.buffer_full += spu.PORT(pmu, sample_buffer_full);
        count_feeds(spu, counts);
        core.capture_selections(spu, counts.cycles);
        core.at(counts.cycles).count = 0;
#if TRACED
        waves.advance(__builtin_popcount(spu.PORT(sampling, sampled)), core.active_flights, SETTLE_CYCLES);
#endif
    }

    // Context synchronization: the control registers take effect for operations one cycle later.
    void synchronize_context() { cycle(); }

    // Simulate one cycle of the program.
    void advance() {
        idle = core.at(counts.cycles).count || core.active_flights ? 0 : idle + 1;
        settled = core.active_flights ? 0 : settled + 1;
        cycle();
        counts.time++;
    }

    // Return whether no output changes until the next operation passes. Every operation that has passed has its answer,
    // so none of them will be in flight. The interval counter may not have settled, but it does not depend on the
    // number of cycles between two operations.
    bool unchanging() const {
        return skipping && idle >= ANSWER_LATENCY && settled >= SETTLE_CYCLES + latency_of_all_slots();
    }

    // Return the largest number of cycles in which memory delays the records of all slots, one after the other.
    unsigned latency_of_all_slots() const { return SLOTS * memory.latency; }

    // Simulate cycles until the operations that have passed are counted and have their answers. An action of software
    // follows them in program order.
    void settle_answers() {
        for (unsigned ago = 0; ago < ANSWER_LATENCY;)
            if (core.at(counts.cycles - ago).count) {
                advance();
                ago = 0;
            } else {
                ago++;
            }
        settled = 0;
        forward.access(core, counts);
    }
};

// Move all rows to `out` and return their number. If it has space for fewer, only return their number.
template <typename Row>
uint64_t move_rows(std::vector<Row> &rows, Row *out, uint64_t space) {
    uint64_t count = rows.size();
    if (space < count) return count;
    std::copy(rows.begin(), rows.end(), out);
    rows.clear();
    return count;
}

}  // namespace

extern "C" {

CompiledSPU *spu_new(const PEState *pe) { return new CompiledSPU(*pe); }
void spu_delete(CompiledSPU *compiled) { delete compiled; }

void spu_set_buffer(CompiledSPU *compiled, uint8_t *buffer, uint64_t base, uint64_t size) {
    compiled->memory.buffer = buffer;
    compiled->memory.base = base;
    compiled->memory.size = size;
}

void spu_set_pe(CompiledSPU *compiled, const PEState *pe) { compiled->set_pe(*pe); }

uint64_t spu_play(CompiledSPU *compiled, const Operation *operations, uint64_t count, bool settle) {
    return compiled->play(operations, count, settle);
}

unsigned spu_access(CompiledSPU *compiled, unsigned op1, unsigned crn, unsigned crm, unsigned op2, bool write,
                    uint64_t *data) {
    return compiled->access({op1, crn, crm, op2}, write, *data);
}

void spu_set_memory_latency(CompiledSPU *compiled, unsigned latency) { compiled->memory.latency = latency; }

void spu_disturb_memory(CompiledSPU *compiled, uint64_t seed, unsigned stall, unsigned late, unsigned fault,
                        unsigned abort) {
    compiled->memory.disturbance = {seed, stall, late, fault, abort};
}

void spu_set_faulting_range(CompiledSPU *compiled, uint64_t base, uint64_t size, unsigned fault) {
    compiled->memory.faulting = {base, size, fault};
}

#if TRACED
void spu_open_waves(CompiledSPU *compiled, const char *path, uint64_t first, uint64_t last) {
    compiled->waves.open(compiled->spu, path, first, last);
}
int spu_close_waves(CompiledSPU *compiled) {
    compiled->waves.close();
    return compiled->waves.error();
}
#endif

void spu_reset(CompiledSPU *compiled) { compiled->reset(); }
void spu_set_forwarding(CompiledSPU *compiled, bool enabled) { compiled->set_forwarding(enabled); }
void spu_set_skipping(CompiledSPU *compiled, bool enabled) { compiled->skipping = enabled; }
bool spu_drain(CompiledSPU *compiled) { return compiled->drain(); }
bool spu_interrupt(CompiledSPU *compiled) { return compiled->spu.pmbirq; }

void spu_counts(const CompiledSPU *compiled, Counts *counts) { *counts = compiled->counts; }

uint64_t spu_selections(CompiledSPU *compiled, Selection *out, uint64_t space) {
    return move_rows(compiled->core.selections, out, space);
}

uint64_t spu_finishes(CompiledSPU *compiled, Finish *out, uint64_t space) {
    return move_rows(compiled->core.finishes, out, space);
}

uint64_t spu_responses(CompiledSPU *compiled, Response *out, uint64_t space) {
    return move_rows(compiled->memory.responses, out, space);
}
}
