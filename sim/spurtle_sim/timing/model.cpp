// Timing model: computes the cycles in which each operation of a program dispatches, issues and finishes. model.py
// generates layout.h, with the structs and constants that are shared with Python. docs/explanation/timing-model.md
// describes the model.

#include "components.h"

namespace {

constexpr unsigned PAGE_SHIFT = 12;
constexpr uint64_t PAGE_MASK = (1 << PAGE_SHIFT) - 1;
constexpr uint64_t FIRST_FRAME = 0x8000'0000 >> PAGE_SHIFT;    // page frames are allocated from 2 GiB upward
constexpr size_t INSTRUCTIONS_PER_PAGE = (PAGE_MASK + 1) / 4;  // an A64 instruction has 4 bytes

// Instruction as the timing model uses it.
struct StaticInstruction {
    uint64_t pc = INVALID;
    uint32_t latency;  // from issue to result; for LOAD in addition to the access, and 0 unless it is atomic
    Kind kind;         // LOAD or STORE for an atomic operation, never ATOMIC
    decltype(Instruction::base) base;
    decltype(Instruction::sources) sources;
    decltype(Instruction::destinations) destinations;
};

// Cycles in which an operation issues and finishes, and its translation latency.
struct Times {
    uint64_t issue, finish;
    uint32_t translation = 0;
};

// Latency and events of a translation.
struct Translation {
    uint32_t latency;
    uint64_t events;
};

// Latency, events and data source of a fetch of a line that misses L1.
struct Refill {
    uint32_t latency;
    uint64_t events;
    uint16_t source;
};

struct TimingModel {
    const Parameters parameters;

    Pages code;                                   // pages with instructions
    std::vector<StaticInstruction> instructions;  // INSTRUCTIONS_PER_PAGE for each page of `code`
    Pages data;                                   // pages of data, in the order of their first access

    Cache l1d, l2, system_cache, tlb, l2_tlb;
    Fills fills;
    Predictor predictor;

    // Cycles from the start of the program.
    uint64_t dispatch = 0;                // dispatch of the last operation
    uint32_t remaining = 0;               // operations that can still dispatch in that cycle
    uint64_t redirected = 0;              // earliest dispatch after the last redirection of fetch
    uint64_t retired = 0;                 // retirement of the last operation
    uint64_t drained = 0;                 // the last store has been written to the cache
    uint64_t ready[NEVER_READ + 1] = {};  // the value of each register is available
    Queue window, scheduler, stores;

    explicit TimingModel(const Parameters &p)
        : parameters(p),
          l1d(p.l1d_bytes >> LINE_SHIFT, p.l1d_ways),
          l2(p.l2_bytes >> LINE_SHIFT, p.l2_ways),
          system_cache(p.system_cache_bytes >> LINE_SHIFT, p.system_cache_ways),
          tlb(p.tlb_entries, p.tlb_entries),
          l2_tlb(p.l2_tlb_entries, p.l2_tlb_ways),
          fills(p.window),
          predictor(p.predictor_bits, p.return_stack),
          window(p.window),
          scheduler(p.scheduler),
          stores(p.store_buffer) {}

    void define(const Instruction &instruction) {
        size_t page = code.find_or_add(instruction.pc >> PAGE_SHIFT);
        instructions.resize(INSTRUCTIONS_PER_PAGE * code.count());
        StaticInstruction &entry = instructions[INSTRUCTIONS_PER_PAGE * page + (instruction.pc & PAGE_MASK) / 4];
        entry.pc = instruction.pc;
        entry.kind = Kind(instruction.kind);
        entry.latency = parameters.latencies[instruction.kind];
        if (entry.kind == Kind::ATOMIC) {
            entry.kind = instruction.facts & FACT_LOAD ? Kind::LOAD : Kind::STORE;
            entry.latency = parameters.atomic;
        }
        entry.base = instruction.base;
        std::ranges::copy(instruction.sources, entry.sources);
        std::ranges::copy(instruction.destinations, entry.destinations);
    }

    // Compute the timing of operations in program order. Stop at the first operation whose PC has no instruction, and
    // return the number of operations before it.
    uint64_t run(const Operation *operations, uint64_t count, TimedOperation *timed) {
        for (uint64_t row = 0; row < count; row++) {
            const StaticInstruction *instruction = find_instruction(operations[row].pc);
            if (!instruction) return row;
            perform(operations[row], *instruction, timed[row]);
        }
        return count;
    }

    const StaticInstruction *find_instruction(uint64_t pc) {
        uint64_t page = code.find(pc >> PAGE_SHIFT);
        if (page == INVALID) return nullptr;
        const StaticInstruction &instruction = instructions[INSTRUCTIONS_PER_PAGE * page + (pc & PAGE_MASK) / 4];
        return instruction.pc == pc ? &instruction : nullptr;
    }

    void perform(const Operation &operation, const StaticInstruction &instruction, TimedOperation &timed) {
        timed = {};
        timed.pc = operation.pc;
        timed.target = operation.target;
        timed.va = operation.va;
        timed.facts = operation.facts;
        if (operation.facts & FACT_VA_VALID) translate(timed);

        advance_dispatch();
        Times times = execute(operation, instruction, timed);
        timed.dispatch = dispatch;
        timed.issue = times.issue - dispatch;
        timed.finish = times.finish - dispatch;
        timed.translate_from = timed.issue;
        timed.translate_to = timed.issue + times.translation;

        for (uint8_t destination : instruction.destinations) ready[destination] = times.finish;
        // Writeback of the base register does not wait for the access. It takes one cycle after issue.
        ready[instruction.base] = times.issue + 1;
        retired = std::max(retired, times.finish);
        window.append(retired);
        scheduler.append(times.issue);
    }

    // Advance `dispatch` to the cycle of the next operation. Dispatch is in program order. It stalls until the end of a
    // redirection, and while the scheduler or the window is full.
    void advance_dispatch() {
        uint64_t next = remaining ? dispatch : dispatch + 1;
        uint64_t cycle = std::max({next, redirected, scheduler.oldest(), window.oldest()});
        if (cycle != dispatch) {
            dispatch = cycle;
            remaining = parameters.ops_per_cycle;
        }
        remaining--;
    }

    Times execute(const Operation &operation, const StaticInstruction &instruction, TimedOperation &timed) {
        uint64_t issue = dispatch + 1;  // an operation issues at the earliest in the cycle after its dispatch
        for (uint8_t source : instruction.sources) issue = std::max(issue, ready[source]);
        uint64_t finish = issue + instruction.latency;
        switch (instruction.kind) {
        case Kind::LOAD:
        case Kind::STORE:
            return access(instruction, timed, issue);
        case Kind::MEMORY_BARRIER:
            issue = std::max(issue, retired);
            return {issue, std::max(issue + instruction.latency, drained)};
        case Kind::SYNCHRONIZE:
            issue = std::max(issue, retired);
            finish = issue + instruction.latency;
            redirected = finish + parameters.redirect;
            return {issue, finish};
        case Kind::BRANCH:
        case Kind::CALL:
        case Kind::RETURN:
            if (predictor.mispredicts(instruction.kind, operation)) {
                timed.events = EVENT_MISPREDICTED;
                redirected = finish + parameters.redirect;
            }
            return {issue, finish};
        default:
            return {issue, finish};
        }
    }

    Times access(const StaticInstruction &instruction, TimedOperation &timed, uint64_t issue) {
        // A Store-Exclusive that fails does not access memory.
        if (!(timed.facts & FACT_VA_VALID)) return {issue, issue + parameters.store};
        Translation translation = look_up(timed.va >> PAGE_SHIFT);
        timed.events = translation.events;
        // The latencies of the caches include one cycle, that of a hit in the first-level TLB.
        uint64_t start = issue + translation.latency - 1;
        bool loads = instruction.kind == Kind::LOAD;
        uint64_t finish = loads ? load(timed, start) + instruction.latency : store(timed, start);
        return {issue, finish, translation.latency};
    }

    // Translate the address. Page frames are allocated in the order of the first accesses.
    void translate(TimedOperation &timed) {
        uint64_t frame = FIRST_FRAME + data.find_or_add(timed.va >> PAGE_SHIFT);
        timed.pa = frame << PAGE_SHIFT | (timed.va & PAGE_MASK);
        timed.facts |= FACT_PA_VALID;
        if (timed.facts & FACT_LOAD) timed.facts |= FACT_DATA_SOURCE_VALID;
    }

    Translation look_up(uint64_t page) {
        if (tlb.access(page)) return {1, EVENT_TLB_ACCESS};
        if (l2_tlb.access(page)) return {1 + parameters.l2_tlb, EVENT_TLB_ACCESS};
        return {1 + parameters.walk, EVENT_TLB_ACCESS | EVENT_TLB_WALK};
    }

    // Return the cycle in which the data arrives.
    uint64_t load(TimedOperation &timed, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        timed.events |= EVENT_L1D_ACCESS;
        if (l1d.access(line)) {
            timed.data_source = DATA_SOURCE_L1D;
            uint64_t finish = start + parameters.l1d, arrival = fills.data_cycle(line, finish);
            if (arrival != finish) timed.events |= EVENT_RECENTLY_FETCHED;
            return arrival;
        }
        Refill fill = refill(line);
        timed.events |= EVENT_L1D_REFILL | fill.events;
        timed.data_source = fill.source;
        fills.add(line, start + fill.latency, dispatch);
        return start + fill.latency;
    }

    // Return the cycle in which the store enters the store buffer. It is written to the cache later, after the stores
    // before it.
    uint64_t store(TimedOperation &timed, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        uint64_t finish = std::max(start + parameters.store, stores.oldest());
        uint32_t latency = l1d.access(line) ? 1 : refill(line).latency / parameters.store_overlap;
        drained = std::max(drained, finish) + latency;
        stores.append(drained);
        return finish;
    }

    // Fetch a line that missed L1. It is then present in each level through which it was fetched.
    Refill refill(uint64_t line) {
        if (l2.access(line)) return {parameters.l2, EVENT_L2D_ACCESS, DATA_SOURCE_L2};
        constexpr uint64_t MISSED = EVENT_L2D_ACCESS | EVENT_L2D_MISS | EVENT_LLC_ACCESS;
        if (system_cache.access(line)) return {parameters.system_cache, MISSED, DATA_SOURCE_SYSTEM_CACHE};
        return {parameters.dram, MISSED | EVENT_LLC_MISS, DATA_SOURCE_DRAM};
    }
};

}  // namespace

extern "C" {

TimingModel *timing_model_new(const Parameters *parameters) { return new TimingModel(*parameters); }
void timing_model_delete(TimingModel *model) { delete model; }

void timing_model_define(TimingModel *model, const Instruction *instructions, uint64_t count) {
    for (uint64_t row = 0; row < count; row++) model->define(instructions[row]);
}

uint64_t timing_model_run(TimingModel *model, const Operation *operations, uint64_t count, TimedOperation *timed) {
    return model->run(operations, count, timed);
}

uint64_t timing_model_cycles(const TimingModel *model) { return model->retired; }
}
