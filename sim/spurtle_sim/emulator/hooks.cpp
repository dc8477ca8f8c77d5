// Records the instructions that Unicorn executes. hooks.py writes layout.h, which has the structs and constants that are
// shared with Python.

#include <algorithm>
#include <utility>

#include <unicorn/unicorn.h>

#include "layout.h"

namespace {

struct Hooks {
    const Word *const words;  // of the instruction at `start` and of those that follow it
    const uint64_t start;

    Operation *rows = nullptr;
    uint64_t room = 0;
    uint64_t count = 0;
    Stop stopped = Stop::NO;
    bool matched = true;  // each instruction has accessed as many bytes as its word says

    // The instruction that executes. Its row is complete when the PC of the next one is known.
    Operation *current = nullptr;
    Word word{};
    uint64_t lowest = 0;  // address that it has accessed
    uint64_t bytes = 0;   // that it has accessed

    void stop(uc_engine *uc, Stop reason) {
        stopped = reason;
        uc_emu_stop(uc);
    }

    // Before an instruction executes. If the emulator is stopped here, the instruction does not execute.
    void begin(uc_engine *uc, uint64_t pc) {
        complete(pc);
        if (count == room) return stop(uc, Stop::FULL);
        // The table covers each page that can be executed.
        word = words[(pc - start) / 4];
        if (!word.facts || pc % 4) return stop(uc, Stop::UNKNOWN);
        current = &rows[count++];
        *current = {};
        current->pc = pc;
        current->facts = word.facts;
        lowest = ~uint64_t(0);
        bytes = 0;
        if (word.passes && passes(uc)) current->facts |= FACT_TAKEN;
    }

    // Whether a conditional select or compare passes, which the PC of the next instruction does not show.
    bool passes(uc_engine *uc) const {
        uint32_t nzcv;
        uc_reg_read(uc, UC_ARM64_REG_NZCV, &nzcv);
        return word.passes >> (nzcv >> 28) & 1;
    }

    // One of the pieces of a wide access, or a whole one.
    void access(uint64_t address, unsigned size) {
        lowest = std::min(lowest, address);
        bytes += size;
    }

    // `next` is the PC of the instruction that follows.
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
        matched &= word.irregular || bytes == word.traffic;
        current = nullptr;
    }
};

void on_instruction(uc_engine *uc, uint64_t pc, uint32_t, void *hooks) { static_cast<Hooks *>(hooks)->begin(uc, pc); }

void on_access(uc_engine *, uc_mem_type, uint64_t address, int size, int64_t, void *hooks) {
    static_cast<Hooks *>(hooks)->access(address, size);
}

}  // namespace

extern "C" {
// Adds the hooks to an emulator; returns null if it refuses.
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

// Records into `rows` from now on.
void hooks_begin(Hooks *hooks, Operation *rows, uint64_t room) {
    hooks->rows = rows;
    hooks->room = room;
    hooks->count = 0;
}

// Why the hooks have stopped the emulator since the last call.
Stop hooks_stopped(Hooks *hooks) { return std::exchange(hooks->stopped, Stop::NO); }

// Number of rows since `hooks_begin`; the last instruction may still execute.
uint64_t hooks_count(const Hooks *hooks) { return hooks->count; }

// The program ends at `pc`. The row of an instruction there is removed: it has not retired.
void hooks_end(Hooks *hooks, uint64_t pc) {
    if (hooks->current && hooks->current->pc == pc) {
        hooks->current = nullptr;
        --hooks->count;
    }
    hooks->complete(pc);
}

// Whether each instruction has accessed as many bytes as its word says.
bool hooks_matched(const Hooks *hooks) { return hooks->matched; }
}
