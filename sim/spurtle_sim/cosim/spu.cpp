// Plays operations on the compiled SPU, a batch at a time. design.h is the translated Verilog. designs.py generates layout.h, with what
// is shared with Python, and with functions for ports that not every configuration has.

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <vector>

#include "design.h"
#include "layout.h"
#include "ports.h"

__attribute__((weak)) void design___024root___eval(design___024root *);

namespace {

// The number of an answer that is an asynchronous External abort; others are of FAULTS.
constexpr uint64_t ABORT = std::size(FAULTS);

// The operations of one cycle at the sampling point, in program order, and the lanes in which they pass.
struct Passing {
    uint64_t first;
    uint64_t time;
    unsigned count = 0;
    unsigned lanes = 0;
    Operation operations[LANES];
    uint64_t previous[LANES];  // where the last taken branch before each of them went; NOWHERE if there was none
};

constexpr unsigned OP1_OF_EL2 = 4;

constexpr uint64_t NOWHERE = ~uint64_t(0);

// A sampled operation, from the SPU's answer to its end.
struct Flight {
    bool active = false;
    uint64_t row;
    uint64_t since;  // cycle in which it passed the sampling point
    Operation operation;
    uint64_t previous;  // to be told before it finishes; NOWHERE once it has been
};

// How memory behaves: it takes beats when it likes, responses late, and meets faults. Nothing of that while `state` is zero.
struct Trouble {
    uint64_t state = 0;  // of the random numbers
    unsigned stall = 0;  // in 256 cycles it takes no beat in so many
    unsigned late = 0;   // cycles that an answer comes late, at most
    unsigned fault = 0;  // of 256 records so many meet a fault
    unsigned abort = 0;  // in 65536 cycles so many asynchronous External aborts are told, while there may be any

    unsigned draw(unsigned count) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 32) % count;
    }
};

// Memory that cannot be written, and which of FAULTS a record meets there.
struct Hole {
    uint64_t base = 0, size = 0;
    unsigned fault = 0;

    bool holds(uint64_t address) const { return address + BEAT_BYTES > base && address < base + size && size; }
};

// So many cycles after an answer the SPU knows whether the buffer is full. Until then no External abort is told: which of the
// two came first would be the SPU's own affair.
constexpr unsigned KNOWN = 8;

// Cycles after the last operation in flight has finished, or after software's last access, in which records reach memory and
// registers take effect. Memory that stalls or responses late is not waited for.
constexpr unsigned SETTLED = ANSWER_LATENCY + SLOTS * (MOST_BEATS + PACKING_CYCLES + 8);

// Cycles whose operations are remembered: collisions are told one cycle after the answer.
constexpr unsigned REMEMBERED = 8;
static_assert(REMEMBERED > ANSWER_LATENCY + 1);

struct CompiledSPU {
    VerilatedContext context;
    design spu{&context};

    // Cycles simulated; time of the program in cycles, which stands still while an interrupt is served; cycles by which interrupts
    // put off the operations that follow; beats outside of the Profiling Buffer; records that were written; and PMU events.
    Counts counts{};
    bool put_off = false;     // an interrupt has been served since the last operation: the next one may be late
    uint64_t rows = 0;        // operations that have been given a cycle
    uint64_t idle = 0;        // cycles of the program since one passed or was in flight
    uint64_t settled = 0;     // cycles of the program since one was in flight, or software accessed the SPU
    bool skipping = true;     // cycles in which nothing changes are not simulated
    uint64_t previous = NOWHERE;  // where the last taken branch went

    Passing passing[REMEMBERED];
    Flight flights[SLOTS];
    unsigned flying = 0;

    uint8_t *memory = nullptr;    // the Profiling Buffer
    uint64_t base = 0, size = 0;
    Trouble trouble;
    Hole hole;
    unsigned beats = 0;           // of the record that is being written
    unsigned good = 0;            // of which so many can be
    unsigned skipped = 0;         // bytes of its first beat that belong to what is before it
    uint64_t answers_at = NOWHERE;
    Response answer{};
    uint64_t answered = 0;        // the cycle of the last one
    bool unsettled = false;       // something was written since the last PSB CSYNC: an External abort may come of it
    std::vector<Response> responses;

    std::vector<Selection> selections;
    std::vector<Finish> finishes;

    explicit CompiledSPU(const PEState &pe) {
        ::set_pe(spu, pe);
        spu.eval();
        spu.rst = 1;
        cycle();
        spu.rst = 0;
        cycle();
        counts.cycles = 0;
    }

    // The next edge of the clock. The function that eval() calls is called without the locks that eval() takes meanwhile for what
    // the SPU does not have; by its name in Verilator 5, if it has that name.
    void evaluate() {
        spu.clk ^= 1;
        if (design___024root___eval)
            design___024root___eval(spu.rootp);
        else
            spu.eval();
    }

    // The operations of this cycle, or of one so many cycles ago.
    Passing &at(unsigned ago = 0) { return passing[(counts.cycles - ago) % REMEMBERED]; }

    // One clock cycle.
    void cycle() {
        pass();
        drive_in_flight();
        spu.PORT(pe, physical_count) = counts.time;
        bool ready = !trouble.state || trouble.draw(256) >= trouble.stall;
        spu.PORT_OF(write, beat, ready) = ready;
        tell_answer();
        // Valid and payload come from registers alone: they are those of this cycle already.
        if (ready && spu.PORT_OF(write, beat, valid)) take_beat(words_of(spu.PORT_OF(write, beat, payload)));
        evaluate();
        counts.cycles++;
        counts.pop += spu.PORT(pmu, sample_pop);
        counts.feed += spu.PORT(pmu, sample_feed);
        counts.filtrate += spu.PORT(pmu, sample_filtrate);
        counts.collision += spu.PORT(pmu, sample_collision);
        counts.buffer_full += spu.PORT(pmu, sample_buffer_full);
        count_feeds(spu, counts);
        hear();
        at().count = 0;
    }

    void take_lane(Passing &now, const Operation &operation) {
        now.previous[now.count] = previous;
        now.operations[now.count++] = operation;
        if ((operation.facts & TAKEN_BRANCH_MASK) == TAKEN_BRANCH) previous = operation.target;
    }

    // Cores leave lanes empty as they like: which ones changes from cycle to cycle.
    void pass() {
        Passing &now = at();
        unsigned noise = uint32_t(counts.time) * 0x9E3779B1u >> 16, left = now.count;
        now.lanes = 0;
        for (unsigned lane = 0; left; lane++)
            if (left == LANES - lane || noise >> lane & 1) {
                now.lanes |= 1u << lane;
                left--;
            }
        now.first = rows;
        now.time = counts.time;
        rows += now.count;
        spu.PORT(sampling, valid) = now.lanes;
    }

    // What the SPU says in the cycle that begins: which operations are sampled, and how many were not for want of a slot.
    // Those passed a cycle earlier, so that selections come in program order.
    void hear() {
        const Passing &late = at(ANSWER_LATENCY + 1), &answered = at(ANSWER_LATENCY);
        for (unsigned count = spu.PORT(pmu, sample_collision); count; count--)
            selections.push_back({late.first, late.count, 0, late.time, 0});
        unsigned sampled = spu.PORT(sampling, sampled);
        if (!sampled) return;
        const auto slots = slots_of_lanes(spu);
        for (; sampled; sampled &= sampled - 1) {
            unsigned lane = __builtin_ctz(sampled);
            unsigned index = __builtin_popcount(answered.lanes & ((1u << lane) - 1));
            Flight &flight = flights[slots[lane]];
            flying += !flight.active;
            flight = {true, answered.first + index, counts.cycles - ANSWER_LATENCY, answered.operations[index],
                      answered.previous[index]};
            selections.push_back({flight.row, 1, 1, answered.time, destinations(spu) >> lane & 1});
        }
    }

    // What memory says in this cycle: what has become of a record, or that some write before has failed.
    void tell_answer() {
        bool done = counts.cycles == answers_at;
        spu.PORT(write, done) = done;
        spu.PORT(write, fault) = done ? FAULTS[answer.fault] | (answer.written + skipped) / BEAT_BYTES << FAULT_WORD.offset : 0;
#if EXTERNAL_ABORTS
        bool abort = unsettled && !done && counts.cycles - answered > KNOWN && trouble.draw(65536) < trouble.abort;
        spu.PORT(write, abort) = abort;
        if (abort) responses.push_back({ABORT, 0});
#endif
        if (!done) return;
        responses.push_back(answer);
        answered = counts.cycles;
        answers_at = NOWHERE;
    }

    void take_beat(const uint32_t *beat) {
        uint64_t address = get_field(beat, BEAT_ADDRESS);
        unsettled = true;
        if (!beats) {
            skipped = std::countr_zero(get_field(beat, BEAT_STROBE));
            good = MOST_BEATS;
            if (trouble.state && trouble.draw(256) < trouble.fault) {
                good = trouble.draw(MOST_BEATS);
                answer.fault = 1 + trouble.draw(std::size(FAULTS) - 1);
            }
        }
        if (beats < good && hole.holds(address)) {
            good = beats;
            answer.fault = hole.fault;
        }
        if (beats++ < good) store(address, beat);
        if (!get_field(beat, BEAT_LAST)) return;
        if (beats <= good) {
            counts.records++;
            answer.fault = 0;
        }
        answer.written = answer.fault && good ? good * BEAT_BYTES - skipped : 0;
        beats = 0;
        answers_at = counts.cycles + 1 + (trouble.state ? trouble.draw(trouble.late + 1) : 0);
    }

    void store(uint64_t address, const uint32_t *beat) {
        if (address < base || address - base + BEAT_BYTES > size) {
            counts.strays++;
            return;
        }
        uint64_t strobe = get_field(beat, BEAT_STROBE);
        for (unsigned byte = 0; byte < BEAT_BYTES; byte++)
            if (strobe >> byte & 1) memory[address - base + byte] = get_field(beat, {BEAT_DATA.offset + 8 * byte, 8});
    }

    // What the sampled operations do, told late by as much as the answer takes beyond one cycle. One finish is told in a
    // cycle, that of the oldest operation that has finished.
    void drive_in_flight() {
        unsigned issued = 0, completed = 0, translating = 0;
        Flight *ending = nullptr;
        for (unsigned slot = 0; flying && slot < SLOTS; slot++) {
            Flight &flight = flights[slot];
            if (!flight.active) continue;
            const Operation &operation = flight.operation;
            uint64_t age = age_of(flight);
            issued |= (age == operation.issue) << slot;
            completed |= (age == operation.finish) << slot;
            translating |= (age >= operation.translate_from && age < operation.translate_to) << slot;
            if (age >= operation.finish && (!ending || flight.row < ending->row)) ending = &flight;
        }
        spu.PORT(in_flight, issued) = issued;
        spu.PORT(in_flight, completed) = completed;
        spu.PORT(in_flight, translating) = translating;
#if PBT
        // Ends and taken branches are told in program order: of the branches, the last one before each end.
        for (Flight &flight : flights)
            if (ending && flight.active && flight.row < ending->row) ending = nullptr;
        bool told = !ending || ending->previous == NOWHERE;
        spu.PORT(branch, valid) = !told;
        if (!told) {
            spu.PORT(branch, target) = ending->previous | uint64_t(1) << LOCATION_NS.offset;
            ending->previous = NOWHERE;
            ending = nullptr;
        }
#endif
        spu.PORT(finish, valid) = ending != nullptr;
        if (ending) finish(*ending);
    }

    uint64_t age_of(const Flight &flight) const { return counts.cycles - (ANSWER_LATENCY - 1) - flight.since; }

    void finish(Flight &flight) {
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
        finishes.push_back({flight.row, age_of(flight)});
        flight.active = false;
        flying--;
    }

    // One cycle of the program.
    void advance() {
        idle = at().count || flying ? 0 : idle + 1;
        settled = flying ? 0 : settled + 1;
        cycle();
        counts.time++;
    }

    // Whether nothing that can be seen changes until the next operation passes. All that have passed are answered, so that none of
    // them will be in flight. The interval counter may not have settled; how many cycles are between two operations does not matter
    // to it.
    bool unchanging() const { return skipping && idle >= ANSWER_LATENCY && settled >= SETTLED; }

    // Gives operations their cycles until all have one or the interrupt is raised. A cycle that has lanes left stays open
    // for the next call. With `settle`, and whenever it is interrupted, it goes on until nothing is in flight any more.
    // Returns how many operations have a cycle.
    uint64_t play(const Operation *operations, uint64_t count, bool settle) {
        uint64_t next = 0;
        if (put_off && count) {
            if (operations[0].dispatch + counts.delay < counts.time) counts.delay = counts.time - operations[0].dispatch;
            put_off = false;
        }
        for (;;) {
            bool interrupted = spu.pmbirq;
            put_off |= interrupted;
            Passing &now = at();
            if (!interrupted)
                for (; next < count && now.count < LANES && operations[next].dispatch + counts.delay <= counts.time; next++)
                    take_lane(now, operations[next]);
            bool over = interrupted || next == count;
            if (over && !interrupted && !settle && now.count < LANES) break;
            if (over && !now.count && idle >= ANSWER_LATENCY) break;
            if (!over && !now.count && unchanging())
                counts.time = operations[next].dispatch + counts.delay;
            else
                advance();
        }
        return next;
    }

    // What software does comes after the operations that have passed: they are counted and answered first.
    void settle_answers() {
        for (unsigned ago = 0; ago < ANSWER_LATENCY;)
            if (at(ago).count) {
                advance();
                ago = 0;
            } else {
                ago++;
            }
        settled = 0;
    }

    void set_pe(const PEState &pe) {
        settle_answers();
        ::set_pe(spu, pe);
    }

    // An access, below EL1 that of the program's kernel: from EL1, or from EL2 to a register of its own. Its outcome.
    unsigned access(unsigned op1, unsigned crn, unsigned crm, unsigned op2, bool write, uint64_t &data) {
        settle_answers();
        unsigned el = spu.PORT(pe, el);
        if (!el) spu.PORT(pe, el) = op1 == OP1_OF_EL2 ? 2 : 1;
        spu.PORT(sysreg, valid) = 1;
        spu.PORT(sysreg, write) = write;
        spu.PORT(sysreg, op1) = op1;
        spu.PORT(sysreg, crn) = crn;
        spu.PORT(sysreg, crm) = crm;
        spu.PORT(sysreg, op2) = op2;
        spu.PORT(sysreg, wdata) = data;
        cycle();
        spu.PORT(sysreg, valid) = 0;
        spu.PORT(pe, el) = el;
        cycle();
        data = spu.PORT(sysreg, rdata);
        return spu.PORT(sysreg, outcome);
    }

    // The SPU and what is in flight in the core.
    void reset() {
        settle_answers();
        for (Flight &flight : flights) flight.active = false;
        flying = 0;
        spu.rst = 1;
        cycle();
        spu.rst = 0;
        beats = 0;
        answers_at = NOWHERE;
        unsettled = false;
    }

    // PSB CSYNC; false if it takes longer than any record can.
    bool drain() {
        settle_answers();
        spu.PORT(drain, request) = 1;
        bool drained = false;
        for (unsigned wait = 0; wait < 1000 && !drained; wait++) {
            cycle();
            drained = spu.PORT(drain, done);
        }
        spu.PORT(drain, request) = 0;
        unsettled = false;
        return drained;
    }
};

// Rows since the last call. Without room for all of them, it only says how many there are.
template <typename Row>
uint64_t hand_over(std::vector<Row> &rows, Row *out, uint64_t room) {
    uint64_t count = rows.size();
    if (room < count) return count;
    std::copy(rows.begin(), rows.end(), out);
    rows.clear();
    return count;
}

}  // namespace

extern "C" {

CompiledSPU *spu_new(const PEState *pe) { return new CompiledSPU(*pe); }
void spu_delete(CompiledSPU *compiled) { delete compiled; }

void spu_set_buffer(CompiledSPU *compiled, uint8_t *memory, uint64_t base, uint64_t size) {
    compiled->memory = memory;
    compiled->base = base;
    compiled->size = size;
}

void spu_set_pe(CompiledSPU *compiled, const PEState *pe) { compiled->set_pe(*pe); }

uint64_t spu_play(CompiledSPU *compiled, const Operation *operations, uint64_t count, bool settle) {
    return compiled->play(operations, count, settle);
}

unsigned spu_access(CompiledSPU *compiled, unsigned op1, unsigned crn, unsigned crm, unsigned op2, bool write, uint64_t *data) {
    return compiled->access(op1, crn, crm, op2, write, *data);
}

void spu_disturb_memory(CompiledSPU *compiled, uint64_t seed, unsigned stall, unsigned late, unsigned fault, unsigned abort) {
    compiled->trouble = {seed, stall, late, fault, abort};
}

void spu_set_faulting_range(CompiledSPU *compiled, uint64_t base, uint64_t size, unsigned fault) { compiled->hole = {base, size, fault}; }

void spu_reset(CompiledSPU *compiled) { compiled->reset(); }
void spu_set_skipping(CompiledSPU *compiled, bool skip) { compiled->skipping = skip; }
bool spu_drain(CompiledSPU *compiled) { return compiled->drain(); }
bool spu_interrupt(CompiledSPU *compiled) { return compiled->spu.pmbirq; }

void spu_counts(const CompiledSPU *compiled, Counts *counts) { *counts = compiled->counts; }

uint64_t spu_selections(CompiledSPU *compiled, Selection *out, uint64_t room) { return hand_over(compiled->selections, out, room); }
uint64_t spu_finishes(CompiledSPU *compiled, Finish *out, uint64_t room) { return hand_over(compiled->finishes, out, room); }
uint64_t spu_responses(CompiledSPU *compiled, Response *out, uint64_t room) { return hand_over(compiled->responses, out, room); }
}
