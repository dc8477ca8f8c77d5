// Timing model: computes the cycles in which each operation of a program dispatches, issues and finishes. model.py
// generates layout.h, with the structs and constants that are shared with Python. docs/explanation/timing-model.md
// describes the model.

#include "components.h"
#include "resources.h"

namespace {

constexpr unsigned PAGE_SHIFT = 12;
constexpr uint64_t PAGE_MASK = (1 << PAGE_SHIFT) - 1;
constexpr uint64_t FIRST_FRAME = 0x8000'0000 >> PAGE_SHIFT;    // page frames are allocated from 2 GiB upward
constexpr size_t INSTRUCTIONS_PER_PAGE = (PAGE_MASK + 1) / 4;  // an A64 instruction has 4 bytes

// Instruction as the timing model uses it.
struct StaticInstruction {
    uint64_t pc = INVALID;
    uint64_t target = INVALID;  // of the last time that the branch was taken
    uint32_t latency;           // from issue to result; for LOAD in addition to the access, and 0 unless it is atomic
    Kind kind;                  // LOAD or STORE for an atomic operation, never ATOMIC
    uint8_t bytes;              // size of the access
    uint16_t occupancy;         // cycles for which its port is busy
    bool conditional;           // branch
    uint32_t ports;             // bit mask of the ports through which it can issue, or 0 for any number
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

// Arrival, latency without waiting, events and data source of a line that misses L1.
struct Refill {
    uint64_t arrival;
    uint32_t latency;
    uint64_t events;
    uint16_t source;
};

struct TimingModel {
    const Parameters parameters;

    Pages code;                                   // pages with instructions
    std::vector<StaticInstruction> instructions;  // INSTRUCTIONS_PER_PAGE for each page of `code`
    uint64_t last_code_page = INVALID, last_code_number = 0;
    Pages pages;                                  // pages of memory, in the order of their first access

    Cache l1i, l1d, l2, system_cache, itlb, tlb, l2_tlb;
    Fills fills;
    Predictor predictor;
    Prefetcher prefetcher;
    Calendar ports{CALENDAR_CYCLES};
    MissBuffers misses;
    Channel l2_channel, system_cache_channel, dram_channel;
    PendingStores pending_stores;
    uint64_t fetched_line = INVALID;  // line of the last instruction, as a virtual address

    // Cycles from the start of the program.
    uint64_t dispatch = 0;                // dispatch of the last operation
    uint32_t remaining = 0;               // operations that can still dispatch in that cycle
    uint64_t redirected = 0;              // earliest dispatch after the last redirection of fetch
    uint64_t issued = 0;                  // issue of the last operation
    uint64_t retired = 0;                 // retirement of the last operation
    uint64_t drained = 0;                 // the last store has been written to the cache
    uint64_t ready[NEVER_READ + 1] = {};  // the value of each register is available
    Queue window, scheduler, stores;

    explicit TimingModel(const Parameters &p)
        : parameters(p),
          l1i(p.l1i_bytes >> LINE_SHIFT, p.l1i_ways),
          l1d(p.l1d_bytes >> LINE_SHIFT, p.l1d_ways),
          l2(p.l2_bytes >> LINE_SHIFT, p.l2_ways),
          system_cache(p.system_cache_bytes >> LINE_SHIFT, p.system_cache_ways),
          itlb(p.itlb_entries, std::max(p.itlb_entries, 1u)),
          tlb(p.tlb_entries, p.tlb_entries),
          l2_tlb(p.l2_tlb_entries, p.l2_tlb_ways),
          fills(p.window),
          predictor(p.predictor_bits, p.return_stack),
          prefetcher(p.prefetch_streams, p.prefetch_distance),
          misses(p.outstanding),
          l2_channel(p.l2_line),
          system_cache_channel(p.system_cache_line),
          dram_channel(p.dram_line),
          pending_stores(p.store_buffer),
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
        entry.ports = parameters.ports[instruction.kind];
        entry.occupancy = parameters.occupancy[instruction.kind];
        entry.bytes = instruction.bytes;
        entry.conditional = instruction.facts & FACT_CONDITIONAL;
        if (entry.kind == Kind::ATOMIC) {
            entry.kind = instruction.facts & FACT_LOAD ? Kind::LOAD : Kind::STORE;
            entry.latency = parameters.atomic;
        }
        entry.base = instruction.base;
        std::ranges::copy(instruction.sources, entry.sources);
        std::ranges::copy(instruction.destinations, entry.destinations);
    }

    // Compute the timing of operations in program order, and of those on wrong paths between them. Stop at the first
    // operation whose PC has no instruction, and when `rows` may not hold the next operation and its wrong path. Return
    // the number of operations before it, and in `written` the number of rows.
    uint64_t run(const Operation *operations, uint64_t count, TimedOperation *rows, uint64_t space, uint64_t &written) {
        TimedOperation *next = rows, *last = rows + space - parameters.wrong_path;
        uint64_t row = 0;
        for (; row < count && next < last; row++) {
            StaticInstruction *instruction = find_instruction(operations[row].pc);
            if (!instruction) break;
            perform(operations[row], *instruction, *next++);
            if (parameters.wrong_path) next = follow_wrong_path(operations[row], *instruction, next);
        }
        written = next - rows;
        return row;
    }

    // Append the operations that dispatch on the wrong path after a mispredicted branch, until the end of the branch.
    // Return the end of the rows.
    TimedOperation *follow_wrong_path(const Operation &operation, StaticInstruction &branch, TimedOperation *next) {
        if (next[-1].facts & FACT_BRANCH && next[-1].facts & FACT_TAKEN) branch.target = operation.target;
        if (!(next[-1].events & EVENT_MISPREDICTED)) return next;
        uint64_t end = dispatch + next[-1].finish, pc = predictor.predicted;
        if (branch.conditional) pc = operation.facts & FACT_TAKEN ? operation.pc + 4 : branch.target;
        for (uint32_t count = 0; count < parameters.wrong_path; count++) {
            uint64_t cycle = remaining ? dispatch : dispatch + 1;
            const StaticInstruction *instruction = find_instruction(pc);
            if (cycle >= end || !instruction) break;
            dispatch_in(cycle);
            // A flush ends the operation with the branch. It does not retire, so its record has no facts.
            *next = {};
            next->pc = pc;
            next->dispatch = dispatch;
            next->issue = next->translate_from = next->translate_to = 1;
            next->finish = std::max<uint32_t>(end - dispatch, 2);
            next++;
            pc = predicted_next(*instruction);
        }
        return next;
    }

    // Return the predicted address of the next instruction, or INVALID if it is not known.
    uint64_t predicted_next(const StaticInstruction &instruction) const {
        Kind kind = instruction.kind;
        bool branch = kind == Kind::BRANCH || kind == Kind::CALL || kind == Kind::RETURN;
        bool taken = branch && (!instruction.conditional || predictor.predicts_taken(instruction.pc));
        return taken ? instruction.target : instruction.pc + 4;
    }

    StaticInstruction *find_instruction(uint64_t pc) {
        if (pc >> PAGE_SHIFT != last_code_page) {
            uint64_t page = code.find(pc >> PAGE_SHIFT);
            if (page == INVALID) return nullptr;
            last_code_page = pc >> PAGE_SHIFT;
            last_code_number = page;
        }
        StaticInstruction &instruction = instructions[INSTRUCTIONS_PER_PAGE * last_code_number + (pc & PAGE_MASK) / 4];
        return instruction.pc == pc ? &instruction : nullptr;
    }

    void perform(const Operation &operation, const StaticInstruction &instruction, TimedOperation &timed) {
        timed = {};
        timed.pc = operation.pc;
        timed.target = operation.target;
        timed.va = operation.va;
        timed.facts = operation.facts;
        timed.vectors = operation.vectors;
        if (operation.facts & FACT_VA_VALID) translate(timed);

        if (l1i.present() || itlb.present()) fetch(operation.pc);
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

    // Fetch an instruction. An instruction in another line than the one before it dispatches after TLB and cache have
    // answered. Fetch does not run ahead, so that a miss delays it by the complete latency.
    void fetch(uint64_t pc) {
        if (pc >> LINE_SHIFT == fetched_line) return;
        fetched_line = pc >> LINE_SHIFT;
        uint64_t start = std::max(remaining ? dispatch : dispatch + 1, redirected), cycle = start;
        if (itlb.present() && !itlb.access(pc >> PAGE_SHIFT))
            cycle += l2_tlb.access(pc >> PAGE_SHIFT) ? parameters.l2_tlb : parameters.walk;
        if (l1i.present()) {
            uint64_t line = physical(pc) >> LINE_SHIFT;
            if (!l1i.access(line)) cycle = refill(line, cycle).arrival;
        }
        if (cycle != start) redirected = cycle;
    }

    // Return the physical address. Page frames are allocated in the order of the first accesses.
    uint64_t physical(uint64_t va) {
        uint64_t frame = FIRST_FRAME + pages.find_or_add(va >> PAGE_SHIFT);
        return frame << PAGE_SHIFT | (va & PAGE_MASK);
    }

    // Advance `dispatch` to the cycle of the next operation. Dispatch is in program order. It stalls until the end of a
    // redirection, and while the scheduler or the window is full.
    void advance_dispatch() {
        uint64_t next = remaining ? dispatch : dispatch + 1;
        uint64_t cycle = std::max({next, redirected, scheduler.oldest(), window.oldest()});
        dispatch_in(cycle);
    }

    void dispatch_in(uint64_t cycle) {
        if (cycle != dispatch) {
            dispatch = cycle;
            remaining = parameters.ops_per_cycle;
        }
        remaining--;
    }

    Times execute(const Operation &operation, const StaticInstruction &instruction, TimedOperation &timed) {
        uint64_t issue = dispatch + 1;  // an operation issues at the earliest in the cycle after its dispatch
        for (uint8_t source : instruction.sources) issue = std::max(issue, ready[source]);
        if (instruction.kind == Kind::MEMORY_BARRIER || instruction.kind == Kind::SYNCHRONIZE)
            issue = std::max(issue, retired);
        if (parameters.in_order) issue = std::max(issue, issued);
        if (instruction.ports) issue = ports.reserve(issue, instruction.ports, instruction.occupancy);
        issued = issue;
        uint64_t finish = issue + instruction.latency;
        switch (instruction.kind) {
        case Kind::LOAD:
        case Kind::STORE:
            return access(instruction, timed, issue);
        case Kind::MEMORY_BARRIER:
            return {issue, std::max(finish, drained)};
        case Kind::SYNCHRONIZE:
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
        uint64_t end = timed.va + instruction.bytes;
        uint64_t finish = loads ? load(timed, end, start) + instruction.latency : store(timed, end, start);
        return {issue, finish, translation.latency};
    }

    void translate(TimedOperation &timed) {
        timed.pa = physical(timed.va);
        timed.facts |= FACT_PA_VALID;
        if (timed.facts & FACT_LOAD) timed.facts |= FACT_DATA_SOURCE_VALID;
    }

    Translation look_up(uint64_t page) {
        if (tlb.access(page)) return {1, EVENT_TLB_ACCESS};
        if (l2_tlb.access(page)) return {1 + parameters.l2_tlb, EVENT_TLB_ACCESS};
        return {1 + parameters.walk, EVENT_TLB_ACCESS | EVENT_TLB_WALK};
    }

    // Return the cycle in which the data of a load up to the address `end` arrives.
    uint64_t load(TimedOperation &timed, uint64_t end, uint64_t start) {
        timed.events |= EVENT_L1D_ACCESS;
        timed.data_source = DATA_SOURCE_L1D;
        if (parameters.forwarding && start < drained) {
            const PendingStores::Entry *store = pending_stores.find(timed.va, end, start);
            if (store && store->begin <= timed.va && end <= store->end)
                return std::max(start, store->ready) + parameters.forwarding;
            if (store) start = store->written;
        }
        uint64_t arrival = load_line(timed, start);
        if (parameters.prefetch_streams) prefetch(timed, start);
        return arrival;
    }

    uint64_t load_line(TimedOperation &timed, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        if (l1d.access(line)) {
            uint64_t finish = start + parameters.l1d, arrival = fills.data_cycle(line, finish);
            if (arrival != finish) timed.events |= EVENT_RECENTLY_FETCHED;
            return arrival;
        }
        Refill fill = fetch_line(line, start);
        timed.events |= EVENT_L1D_REFILL | fill.events;
        timed.data_source = fill.source;
        return fill.arrival;
    }

    // Fetch a line into L1 through a miss buffer.
    Refill fetch_line(uint64_t line, uint64_t start) {
        Refill fill;
        misses.fetch(start, [&](uint64_t cycle) { return (fill = refill(line, cycle)).arrival; });
        fills.add(line, fill.arrival, dispatch);
        return fill;
    }

    // Fetch the line that a load with this stride will need, if it is in the same page and a miss buffer is free.
    void prefetch(const TimedOperation &timed, uint64_t start) {
        uint64_t target = prefetcher.next(timed.pc, timed.va);
        if (target >> PAGE_SHIFT != timed.va >> PAGE_SHIFT || !misses.available(start)) return;
        uint64_t line = ((timed.pa & ~PAGE_MASK) | (target & PAGE_MASK)) >> LINE_SHIFT;
        if (!l1d.access(line)) fetch_line(line, start);
    }

    // Return the cycle in which the store enters the store buffer. It is written to the cache later, after the stores
    // before it.
    uint64_t store(TimedOperation &timed, uint64_t end, uint64_t start) {
        uint64_t line = timed.pa >> LINE_SHIFT;
        uint64_t finish = std::max(start + parameters.store, stores.oldest());
        drained = std::max(drained, finish);
        if (l1d.access(line)) {
            drained++;
        } else {
            Refill fill = refill(line, drained);
            drained = fill.arrival - fill.latency + fill.latency / parameters.store_overlap;
        }
        stores.append(drained);
        if (parameters.forwarding) pending_stores.append({timed.va, end, finish, drained});
        return finish;
    }

    // Fetch a line that missed L1, from `cycle` on. It is then present in each level through which it was fetched.
    Refill refill(uint64_t line, uint64_t cycle) {
        if (l2.access(line)) return transfer(l2_channel, cycle, parameters.l2, EVENT_L2D_ACCESS, DATA_SOURCE_L2);
        constexpr uint64_t MISSED = EVENT_L2D_ACCESS | EVENT_L2D_MISS | EVENT_LLC_ACCESS;
        if (system_cache.access(line))
            return transfer(system_cache_channel, cycle, parameters.system_cache, MISSED, DATA_SOURCE_SYSTEM_CACHE);
        return transfer(dram_channel, cycle, parameters.dram, MISSED | EVENT_LLC_MISS, DATA_SOURCE_DRAM);
    }

    static Refill transfer(Channel &channel, uint64_t cycle, uint32_t latency, uint64_t events, uint16_t source) {
        return {channel.transfer(cycle) + latency, latency, events, source};
    }
};

}  // namespace

extern "C" {

TimingModel *timing_model_new(const Parameters *parameters) { return new TimingModel(*parameters); }
void timing_model_delete(TimingModel *model) { delete model; }

void timing_model_define(TimingModel *model, const Instruction *instructions, uint64_t count) {
    for (uint64_t row = 0; row < count; row++) model->define(instructions[row]);
}

uint64_t timing_model_run(TimingModel *model, const Operation *operations, uint64_t count, TimedOperation *rows,
                          uint64_t space, uint64_t *written) {
    return model->run(operations, count, rows, space, *written);
}

uint64_t timing_model_cycles(const TimingModel *model) { return model->retired; }
}
