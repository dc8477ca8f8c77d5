// The timing model: when each operation of a program dispatches, issues and finishes. model.py writes layout.h, which has the
// structs and constants that it shares with Python. docs/explanation/timing-model.md says what is modelled.

#include "components.h"

namespace {

constexpr unsigned PAGE_SHIFT = 12;
constexpr uint64_t PAGE_MASK = (1 << PAGE_SHIFT) - 1;
constexpr uint64_t FIRST_FRAME = 0x8000'0000 >> PAGE_SHIFT;
constexpr size_t PLANS_PER_PAGE = (PAGE_MASK + 1) / 4;

// What the model needs of an instruction.
struct Plan {
    uint64_t pc = NOTHING;
    uint32_t latency;  // from issue to result; of a load, what it takes longer than another one
    Kind kind;         // of an atomic operation LOAD or STORE
    decltype(Instruction::base) base;
    decltype(Instruction::sources) sources;
    decltype(Instruction::destinations) destinations;
};

// When an operation issues and finishes, and how long it waits for its translation, in cycles.
struct Times {
    uint64_t issue, finish;
    uint32_t wait = 0;
};

// How long a translation takes, and its events.
struct Translation {
    uint32_t wait;
    uint64_t events;
};

// How long it takes to fetch a line that is not in L1, its events, and where it was found.
struct Refill {
    uint32_t latency;
    uint64_t events;
    uint16_t source;
};

struct TimingModel {
    const Parameters parameters;

    Pages code;               // with instructions
    std::vector<Plan> plans;  // PLANS_PER_PAGE of each page of `code`
    Pages data;               // in the order of their first access

    Cache l1d, l2, system_cache, tlb, l2_tlb;
    Fills fills;
    Predictor predictor;

    // Cycles from the start of the program.
    uint64_t dispatch = 0;
    uint32_t room = 0;                     // operations that can still dispatch in that cycle
    uint64_t earliest = 0;                 // next dispatch after a redirection
    uint64_t retired = 0;                  // all operations so far
    uint64_t drained = 0;                  // the last store is in the cache
    uint64_t ready[NEVER_READ + 1] = {};   // by register
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
        plans.resize(PLANS_PER_PAGE * code.count());
        Plan &plan = plans[PLANS_PER_PAGE * page + (instruction.pc & PAGE_MASK) / 4];
        plan.pc = instruction.pc;
        plan.kind = Kind(instruction.kind);
        plan.latency = parameters.latencies[instruction.kind];
        if (plan.kind == Kind::ATOMIC) {
            plan.kind = instruction.facts & FACT_LOAD ? Kind::LOAD : Kind::STORE;
            plan.latency = parameters.atomic;
        }
        plan.base = instruction.base;
        std::ranges::copy(instruction.sources, plan.sources);
        std::ranges::copy(instruction.destinations, plan.destinations);
    }

    // Times operations in program order, up to the first one at a PC without an instruction. Returns how many were timed.
    uint64_t run(const Operation *operations, uint64_t count, Timed *timed) {
        for (uint64_t row = 0; row < count; row++) {
            const Plan *plan = find_plan(operations[row].pc);
            if (!plan) return row;
            perform(operations[row], *plan, timed[row]);
        }
        return count;
    }

    const Plan *find_plan(uint64_t pc) {
        uint64_t page = code.find(pc >> PAGE_SHIFT);
        if (page == NOTHING) return nullptr;
        const Plan &plan = plans[PLANS_PER_PAGE * page + (pc & PAGE_MASK) / 4];
        return plan.pc == pc ? &plan : nullptr;
    }

    void perform(const Operation &operation, const Plan &plan, Timed &timed) {
        timed = {};
        timed.pc = operation.pc;
        timed.target = operation.target;
        timed.va = operation.va;
        timed.facts = operation.facts;
        if (operation.facts & FACT_VA_VALID) translate(timed);

        advance_dispatch();
        Times times = execute(operation, plan, timed);
        timed.dispatch = dispatch;
        timed.issue = times.issue - dispatch;
        timed.finish = times.finish - dispatch;
        timed.translate_from = timed.issue;
        timed.translate_to = timed.issue + times.wait;

        for (uint8_t destination : plan.destinations) ready[destination] = times.finish;
        ready[plan.base] = times.issue + 1;
        retired = std::max(retired, times.finish);
        window.append(retired);
        scheduler.append(times.issue);
    }

    // The cycle in which the next operation dispatches: in program order, and if scheduler and window are not full.
    void advance_dispatch() {
        uint64_t cycle = std::max({room ? dispatch : dispatch + 1, earliest, scheduler.oldest(), window.oldest()});
        if (cycle != dispatch) {
            dispatch = cycle;
            room = parameters.ops_per_cycle;
        }
        room--;
    }

    Times execute(const Operation &operation, const Plan &plan, Timed &timed) {
        uint64_t issue = dispatch + 1;
        for (uint8_t source : plan.sources) issue = std::max(issue, ready[source]);
        uint64_t finish = issue + plan.latency;
        switch (plan.kind) {
        case Kind::LOAD:
        case Kind::STORE:
            return access(plan, timed, issue);
        case Kind::MEMORY_BARRIER:
            issue = std::max(issue, retired);
            return {issue, std::max(issue + plan.latency, drained)};
        case Kind::SYNCHRONIZE:
            issue = std::max(issue, retired);
            finish = issue + plan.latency;
            earliest = finish + parameters.redirect;
            return {issue, finish};
        case Kind::BRANCH:
        case Kind::CALL:
        case Kind::RETURN:
            if (predictor.mispredicts(plan.kind, operation)) {
                timed.events = EVENT_MISPREDICTED;
                earliest = finish + parameters.redirect;
            }
            return {issue, finish};
        default:
            return {issue, finish};
        }
    }

    Times access(const Plan &plan, Timed &timed, uint64_t issue) {
        // A Store-Exclusive that fails accesses nothing.
        if (!(timed.facts & FACT_VA_VALID)) return {issue, issue + parameters.store};
        Translation translation = look_up(timed.va >> PAGE_SHIFT);
        timed.events = translation.events;
        // The latencies of the caches include the one cycle of a hit in the first-level TLB.
        uint64_t start = issue + translation.wait - 1;
        uint64_t finish = plan.kind == Kind::LOAD ? load(timed, start) + plan.latency : store(timed, start);
        return {issue, finish, translation.wait};
    }

    // Frames are assigned in the order of first accesses.
    void translate(Timed &timed) {
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

    // Returns the cycle in which the data arrives.
    uint64_t load(Timed &timed, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        timed.events |= EVENT_L1D_ACCESS;
        if (l1d.access(line)) {
            timed.data_source = DATA_SOURCE_L1D;
            uint64_t finish = start + parameters.l1d, arrival = fills.wait(line, finish);
            if (arrival != finish) timed.events |= EVENT_RECENTLY_FETCHED;
            return arrival;
        }
        Refill found = refill(line);
        timed.events |= EVENT_L1D_REFILL | found.events;
        timed.data_source = found.source;
        fills.add(line, start + found.latency, dispatch);
        return start + found.latency;
    }

    // Returns the cycle in which the store is in the store buffer. It is in the cache later, after the stores before it.
    uint64_t store(Timed &timed, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        uint64_t finish = std::max(start + parameters.store, stores.oldest());
        uint32_t latency = l1d.access(line) ? 1 : refill(line).latency / parameters.store_overlap;
        drained = std::max(drained, finish) + latency;
        stores.append(drained);
        return finish;
    }

    // The line is then in each level.
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

uint64_t timing_model_run(TimingModel *model, const Operation *operations, uint64_t count, Timed *timed) {
    return model->run(operations, count, timed);
}

uint64_t timing_model_cycles(const TimingModel *model) { return model->retired; }
}
