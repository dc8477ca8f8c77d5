// Compiled SPU with the soft core, for the driver in test_softcore.py. Each retired instruction adds a trace row.

#include <cstdint>
#include <memory>
#include <vector>

#include "design.h"
#include "layout.h"

struct Retirement {
    uint64_t cycle, time;              // clock cycle; time of the program
    uint32_t insn, pc, next, address;  // signals of RVFI
    uint32_t read, written, trap;
    uint32_t member;                   // the operation that starts here is a member of the sample population
};

struct Rig {
    design top;
    uint64_t cycle = 0, base = 0;
    std::vector<uint8_t> buffer;
    std::vector<Retirement> trace;
    uint64_t strays = 0;

    void clock() {
        top.clk = 0;
        top.eval();
        if (top.PORT(rvfi, valid))
            trace.push_back({cycle, top.time_, top.PORT(rvfi, insn), top.PORT(rvfi, pc_rdata), top.PORT(rvfi, pc_wdata),
                             top.PORT(rvfi, mem_addr), top.PORT(rvfi, mem_rmask), top.PORT(rvfi, mem_wmask),
                             top.PORT(rvfi, trap), top.member});
        if (top.beat)
            for (unsigned byte = 0; byte < 8; byte++) {
                uint64_t offset = top.address + byte - base;
                if (offset < buffer.size())
                    buffer[offset] = top.data >> 8 * byte;
                else
                    strays++;
            }
        top.clk = 1;
        top.eval();
        cycle++;
    }
};

extern "C" {

Rig *rig_new(uint64_t base, uint64_t size) {
    auto rig = new Rig;
    rig->base = base;
    rig->buffer.resize(size);
    rig->top.rst = 1;
    rig->clock();
    rig->top.rst = 0;
    return rig;
}

void rig_delete(Rig *rig) { delete rig; }

// Execute an MSR, or an MRS without `write`, in the current state of the PE.
uint64_t rig_access(Rig *rig, unsigned op1, unsigned crn, unsigned crm, unsigned op2, int write, uint64_t value) {
    auto &top = rig->top;
    top.PORT(sysreg, valid) = 1;
    top.PORT(sysreg, write) = write;
    top.PORT(sysreg, op1) = op1;
    top.PORT(sysreg, crn) = crn;
    top.PORT(sysreg, crm) = crm;
    top.PORT(sysreg, op2) = op2;
    top.PORT(sysreg, wdata) = value;
    rig->clock();
    top.PORT(sysreg, valid) = 0;
    for (unsigned waited = 1; waited < ACCESS_LATENCY; waited++)
        rig->clock();
    top.clk = 0;
    top.eval();
    return top.PORT(sysreg, outcome) ? ~uint64_t(0) : uint64_t(top.PORT(sysreg, rdata));
}

// Run the program for `cycles` cycles, or until PMBIRQ is asserted; stop it, and execute a PSB CSYNC. Return the cycles
// until it was idle, without the first one; -1 if it was not idle within 1000 cycles.
int rig_play(Rig *rig, uint64_t cycles) {
    auto &top = rig->top;
    top.run = 1;
    while (cycles-- && !top.pmbirq)
        rig->clock();
    top.run = 0;
    int wait = 0;
    while (rig->clock(), !top.idle)
        if (++wait == 1000)
            return -1;
    top.PORT(drain, request) = 1;
    while (rig->clock(), !top.PORT(drain, done))
        ;
    top.PORT(drain, request) = 0;
    rig->clock();
    return wait;
}

// Let other software run for `cycles` cycles.
void rig_wait(Rig *rig, uint64_t cycles) {
    while (cycles--)
        rig->clock();
}

int rig_interrupt(Rig *rig) { return rig->top.pmbirq; }
uint64_t rig_strays(Rig *rig) { return rig->strays; }
const uint8_t *rig_buffer(Rig *rig) { return rig->buffer.data(); }
uint64_t rig_retirements(Rig *rig) { return rig->trace.size(); }
const Retirement *rig_trace(Rig *rig) { return rig->trace.data(); }
}
