// Records the instructions that Unicorn executes. hooks.py generates layout.h, with the structs and constants that are
// shared with Python.

#include <algorithm>
#include <utility>

#include <unicorn/unicorn.h>

#include "layout.h"

namespace {

struct Hooks {
    const Word *const words;  // words of the instructions from address `start`
    const uint64_t start;

    Operation *rows = nullptr;
    uint64_t capacity = 0;  // number of rows
    uint64_t count = 0;     // number of recorded rows
    StopReason stop_reason = StopReason::NONE;
    bool traffic_matches = true;  // every instruction has accessed the number of bytes that its word specifies

    // The instruction in execution. Its row is completed when the PC of the next instruction is known.
    Operation *current = nullptr;
    Word word{};
    uint64_t lowest = 0;  // lowest address that it has accessed
    uint64_t bytes = 0;   // number of bytes that it has accessed

    void stop(uc_engine *uc, StopReason reason) {
        stop_reason = reason;
        uc_emu_stop(uc);
    }

    // Start an instruction, before it executes. If the emulator is stopped here, the instruction does not execute.
    void begin(uc_engine *uc, uint64_t pc) {
        complete(pc);
        if (count == capacity) return stop(uc, StopReason::FULL);
        // The table covers every executable page. At any other PC Unicorn reports a fault and does not call this hook.
        word = words[(pc - start) / 4];
        if (!word.facts || pc % 4) return stop(uc, StopReason::UNCLASSIFIED);
        current = &rows[count++];
        *current = {};
        current->pc = pc;
        current->facts = word.facts;
        lowest = ~uint64_t(0);
        bytes = 0;
        if (word.passes && passes(uc)) current->facts |= FACT_TAKEN;
    }

    // Return whether the condition of a conditional select or compare passes. The PC of the next instruction does not
    // depend on it.
    bool passes(uc_engine *uc) const {
        uint32_t nzcv;
        uc_reg_read(uc, UC_ARM64_REG_NZCV, &nzcv);
        return word.passes >> (nzcv >> 28) & 1;
    }

    // Record an access, which can be a part of a wide access.
    void access(uint64_t address, unsigned size) {
        lowest = std::min(lowest, address);
        bytes += size;
    }

    // Complete the row of the current instruction. `next` is the PC of the next instruction.
    void complete(uint64_t next) {
        if (!current) return;
        if (word.facts & FACT_BRANCH) {
            current->target = next;
            if (next != current->pc + 4) current->facts |= FACT_TAKEN;
        }
        if (bytes) {
            current->va = lowest;
            current->facts |= FACT_VA_VALID;
        }
        traffic_matches &= word.irregular || bytes == word.traffic;
        current = nullptr;
    }
};

void on_instruction(uc_engine *uc, uint64_t pc, uint32_t, void *hooks) { static_cast<Hooks *>(hooks)->begin(uc, pc); }

void on_access(uc_engine *, uc_mem_type, uint64_t address, int size, int64_t, void *hooks) {
    static_cast<Hooks *>(hooks)->access(address, size);
}

}  // namespace

extern "C" {
// Add the hooks to an emulator. Return null if it does not accept them.
Hooks *hooks_new(uc_engine *uc, const Word *words, uint64_t start) {
    auto *hooks = new Hooks{words, start};
    uc_hook hook;
    auto add = [&](int type, auto *callback) {
        return uc_hook_add(uc, &hook, type, reinterpret_cast<void *>(callback), hooks, 0, ~uint64_t(0)) == UC_ERR_OK;
    };
    if (add(UC_HOOK_CODE, on_instruction) && add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, on_access)) return hooks;
    delete hooks;
    return nullptr;
}

void hooks_delete(Hooks *hooks) { delete hooks; }

// Record into `rows` from now on.
void hooks_record_to(Hooks *hooks, Operation *rows, uint64_t capacity) {
    hooks->rows = rows;
    hooks->capacity = capacity;
    hooks->count = 0;
}

// Return the reason for which the hooks have stopped the emulator since the last call.
StopReason hooks_take_stop_reason(Hooks *hooks) { return std::exchange(hooks->stop_reason, StopReason::NONE); }

// Return the number of rows recorded since `hooks_record_to`. The last instruction can still be in execution.
uint64_t hooks_count(const Hooks *hooks) { return hooks->count; }

// Complete the last row of a program that ends at `pc`. If the last instruction is at `pc`, it has not retired and its
// row is removed.
void hooks_finish(Hooks *hooks, uint64_t pc) {
    if (hooks->current && hooks->current->pc == pc) {
        hooks->current = nullptr;
        --hooks->count;
    }
    hooks->complete(pc);
}

// Return whether every instruction has accessed the number of bytes that its word specifies.
bool hooks_traffic_matches(const Hooks *hooks) { return hooks->traffic_matches; }
}
