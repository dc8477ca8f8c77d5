// Plays operations on the compiled SPU, a batch at a time. engine.py has the generated Verilog translated to design.h and writes
// layout.h, which says where the fields of the struct ports are.

#include <vector>

#include "design.h"
#include "layout.h"
#include "ports.h"

namespace {

// A row of spurtle_sim.timed.TIMED.
struct Operation {
    uint64_t dispatch, pc, target, va, pa;
    uint32_t events, issue, finish, translate_from, translate_to;
    uint16_t facts, data_source;
};
static_assert(sizeof(Operation) == 64);

// What became of a selected operation; `row` counts operations from the first one played.
struct Selection {
    uint64_t row;
    uint64_t sampled;
};

// So many cycles without anything in flight, and the SPU stands still until the next operation.
constexpr unsigned SETTLED = 8;

struct Engine {
    VerilatedContext context;
    design spu{&context};

    uint64_t cycles = 0;      // simulated
    uint64_t time = 0;        // of the program, in cycles; it stands still while an interrupt is served
    uint64_t delay = 0;       // cycles by which interrupts put off the operations that follow
    uint64_t rows = 0;        // operations that have passed the sampling point

    bool in_flight = false;
    Operation flying = {};        // the sampled operation
    uint64_t flying_since = 0;    // when it passed the sampling point

    uint8_t *memory = nullptr;    // the Profiling Buffer
    uint64_t base = 0, size = 0;
    uint64_t strays = 0;          // beats outside of it
    bool done = false;            // memory has the record whose last beat came in the cycle before

    std::vector<Selection> selections;
    uint64_t events[5] = {};      // population, feed, filtrate, collision, buffer full

    Engine() {
        spu.PORT_OF(write, beat, ready) = 1;
        spu.PORT(pe, ns) = 1;
        spu.rst = 1;
        cycle();
        spu.rst = 0;
        cycle();
        cycles = 0;
    }

    // One clock cycle with the inputs as they are; memory takes every beat at once.
    void cycle() {
        spu.PORT(write, done) = done;
        done = false;
        spu.clk = 0;
        spu.eval();
        if (spu.PORT_OF(write, beat, valid)) {
            const uint32_t *beat = spu.PORT_OF(write, beat, payload).data();
            store(get_field(beat, BEAT_ADDRESS), beat);
            done = get_field(beat, BEAT_LAST);
        }
        spu.clk = 1;
        spu.eval();
        cycles++;
        events[0] += spu.PORT(pmu, sample_pop);
        events[1] += spu.PORT(pmu, sample_feed);
        events[2] += spu.PORT(pmu, sample_filtrate);
        events[3] += spu.PORT(pmu, sample_collision);
        events[4] += spu.PORT(pmu, sample_buffer_full);
        // The strobe comes two cycles after the operation, when it is the last that was counted.
        if (spu.PORT(pmu, sample_collision)) selections.push_back({rows - 1, 0});
    }

    void store(uint64_t address, const uint32_t *beat) {
        if (address < base || address - base + BEAT_BYTES > size) {
            strays++;
            return;
        }
        for (unsigned byte = 0; byte < BEAT_BYTES; byte++)
            memory[address - base + byte] = get_field(beat, {BEAT_DATA.offset + 8 * byte, 8});
    }

    // The cycles of the sampled operation, counted from the one in which it passed the sampling point.
    void drive_in_flight() {
        uint64_t age = time - flying_since;
        bool finish = in_flight && age == flying.finish;
        spu.PORT(in_flight, issued) = in_flight && age == flying.issue;
        spu.PORT(in_flight, translating) = in_flight && age >= flying.translate_from && age < flying.translate_to;
        spu.PORT(finish, valid) = finish;
        if (!finish) return;
        uint32_t *operation = spu.PORT(finish, operation).data();
        put_field(operation, FACTS, flying.facts);
        put_field(operation, EVENTS, flying.events);
        put_field(operation, PC, flying.pc);
        put_field(operation, TARGET, flying.target);
        put_field(operation, TARGET_NS, 1);
        put_field(operation, VA, flying.va);
        put_field(operation, PA, flying.pa);
        put_field(operation, PA_NS, 1);
        put_field(operation, DATA_SOURCE, flying.data_source);
        in_flight = false;
    }

    // One cycle of the program, in which `operation` passes the sampling point unless it is null.
    void advance(const Operation *operation) {
        spu.PORT(sampling, valid) = operation != nullptr;
        spu.PORT(pe, physical_count) = time;
        drive_in_flight();
        cycle();
        if (spu.PORT(sampling, sampled)) {
            in_flight = true;
            flying = *operation;
            flying_since = time;
            selections.push_back({rows, 1});
        }
        rows += operation != nullptr;
        time++;
    }

    // Plays operations until all have passed or the interrupt is raised. With `settle`, and whenever it is interrupted,
    // it goes on until nothing is in flight any more. Returns how many have passed.
    uint64_t play(const Operation *operations, uint64_t count, bool settle) {
        uint64_t next = 0;
        unsigned idle = 0;
        for (;;) {
            bool interrupted = spu.pmbirq;
            bool stop = interrupted || next == count;
            if (stop && !(in_flight && (interrupted || settle))) break;
            uint64_t due = stop ? UINT64_MAX : operations[next].dispatch + delay;
            if (!stop && due > time && idle >= SETTLED) time = due;
            const Operation *operation = due <= time ? &operations[next++] : nullptr;
            idle = operation || in_flight ? 0 : idle + 1;
            advance(operation);
        }
        spu.PORT(sampling, valid) = 0;
        if (next < count && operations[next].dispatch + delay < time) delay = time - operations[next].dispatch;
        return next;
    }

    // An access from EL1; true if its outcome is a value.
    bool access(unsigned op1, unsigned crm, unsigned op2, bool write, uint64_t &data) {
        spu.PORT(pe, el) = 1;
        spu.PORT(sysreg, valid) = 1;
        spu.PORT(sysreg, write) = write;
        spu.PORT(sysreg, op1) = op1;
        spu.PORT(sysreg, crm) = crm;
        spu.PORT(sysreg, op2) = op2;
        spu.PORT(sysreg, wdata) = data;
        cycle();
        spu.PORT(sysreg, valid) = 0;
        spu.PORT(pe, el) = 0;
        if (!write) data = spu.PORT(sysreg, rdata);
        return spu.PORT(sysreg, outcome) == 0;
    }

    // PSB CSYNC; false if it takes longer than any record can.
    bool drain() {
        spu.PORT(drain, request) = 1;
        bool drained = false;
        for (unsigned wait = 0; wait < 1000 && !drained; wait++) {
            cycle();
            drained = spu.PORT(drain, done);
        }
        spu.PORT(drain, request) = 0;
        return drained;
    }
};

}  // namespace

extern "C" {

Engine *engine_new() { return new Engine; }
void engine_delete(Engine *engine) { delete engine; }

void engine_buffer(Engine *engine, uint8_t *memory, uint64_t base, uint64_t size) {
    engine->memory = memory;
    engine->base = base;
    engine->size = size;
}

void engine_context(Engine *engine, uint64_t contextidr_el1) { engine->spu.PORT(pe, contextidr_el1) = contextidr_el1; }

uint64_t engine_play(Engine *engine, const Operation *operations, uint64_t count, int settle) {
    return engine->play(operations, count, settle);
}

int engine_access(Engine *engine, unsigned op1, unsigned crm, unsigned op2, int write, uint64_t *data) {
    return engine->access(op1, crm, op2, write, *data);
}

int engine_drain(Engine *engine) { return engine->drain(); }
int engine_interrupt(Engine *engine) { return engine->spu.pmbirq; }

// cycles, program time, delay, beats outside the buffer, then the PMU events
void engine_counts(const Engine *engine, uint64_t *counts) {
    const uint64_t first[] = {engine->cycles, engine->time, engine->delay, engine->strays};
    for (unsigned index = 0; index < 4; index++) counts[index] = first[index];
    for (unsigned index = 0; index < 5; index++) counts[4 + index] = engine->events[index];
}

// Hands over what was selected since the last call, as (row, sampled) pairs.
uint64_t engine_selections(Engine *engine, Selection *out, uint64_t room) {
    uint64_t count = engine->selections.size();
    if (out == nullptr || room < count) return count;
    for (uint64_t index = 0; index < count; index++) out[index] = engine->selections[index];
    engine->selections.clear();
    return count;
}
}
