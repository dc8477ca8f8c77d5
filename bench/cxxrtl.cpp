// Plays operations on the CXXRTL model of an SPU with one lane and one slot: an operation passes in each cycle.
// cxxrtl.py writes design.h, which contains the model, and stimulus.h, which contains the ports, the register writes of
// software and the operation of the core.

#include <cstdint>
#include <iterator>
#include <vector>

#include "design.h"
#include "stimulus.h"

namespace {

// An MSR instruction.
struct Write {
    unsigned op1, crn, crm, op2;
    uint64_t value;
};
constexpr Write WRITES[] = REGISTER_WRITES;

constexpr uint32_t OPERATION[] = OPERATION_WORDS;
constexpr unsigned OP1_OF_EL2 = 4;
constexpr uint64_t NEVER = ~uint64_t(0);

template <typename Port>
void drive(Port &port, uint64_t number) {
    port.template set<uint64_t>(number);
}

struct Player {
    MODEL spu;
    uint64_t cycles = 0;
    uint64_t time = 0;           // system counter
    uint64_t passed = NEVER;     // cycle in which the operation in flight passed the sampling point
    uint64_t done_at = NEVER;    // cycle in which memory asserts `done`
    uint64_t records = 0;
    std::vector<uint8_t> memory = std::vector<uint8_t>(SIZE);

    Player() {
        SET_PE(spu);
        drive(spu.p_write____beat____ready, 1);
        for (unsigned word = 0; word < std::size(OPERATION); word++) spu.p_finish____operation.data[word] = OPERATION[word];
        drive(spu.p_rst, 1);
        cycle();
        drive(spu.p_rst, 0);
        cycle();
        for (const Write &write : WRITES) access(write);
    }

    void access(const Write &write) {
        drive(spu.p_pe____el, write.op1 == OP1_OF_EL2 ? 2 : 1);
        drive(spu.p_sysreg____valid, 1);
        drive(spu.p_sysreg____write, 1);
        drive(spu.p_sysreg____op1, write.op1);
        drive(spu.p_sysreg____crn, write.crn);
        drive(spu.p_sysreg____crm, write.crm);
        drive(spu.p_sysreg____op2, write.op2);
        drive(spu.p_sysreg____wdata, write.value);
        cycle();
        drive(spu.p_sysreg____valid, 0);
        drive(spu.p_pe____el, 0);
        for (unsigned waited = 1; waited < ACCESS_LATENCY; waited++) cycle();
        cycle();  // Context synchronization: the control registers take effect for operations one cycle later
    }

    void play(uint64_t count) {
        drive(spu.p_sampling____valid, 1);
        for (; count; count--) {
            cycle();
            time++;
        }
        drive(spu.p_sampling____valid, 0);
    }

    void cycle() {
        drive_in_flight();
        drive(spu.p_pe____physical__count, time);
        drive(spu.p_write____done, cycles == done_at);
        drive(spu.p_clk, 0);
        spu.step();
        // A step computes combinational outputs from the register values before it. Outputs are therefore read after
        // the falling edge: in the step of the rising edge, registers change, but combinational outputs do not yet.
        if (spu.p_sampling____sampled.get<bool>()) passed = cycles - ANSWER_LATENCY;
        if (spu.p_write____beat____valid.get<bool>()) store();
        drive(spu.p_clk, 1);
        spu.step();
        cycles++;
    }

    // Events are reported ANSWER_LATENCY - 1 cycles late, so that none is due before the answer of the SPU arrives.
    void drive_in_flight() {
        uint64_t age = passed == NEVER ? NEVER : cycles - (ANSWER_LATENCY - 1) - passed;
        drive(spu.p_in__flight____issued, age == ISSUE);
        drive(spu.p_in__flight____completed, age == FINISH);
        drive(spu.p_in__flight____translating, age >= TRANSLATE_FROM && age < TRANSLATE_TO);
        drive(spu.p_finish____valid, age == FINISH);
        if (age == FINISH) passed = NEVER;
    }

    void store() {
        const auto &beat = spu.p_write____beat____payload;
        uint64_t offset = beat.slice<BEAT_ADDRESS>().val().get<uint64_t>() - BASE;
        uint64_t strobe = beat.slice<BEAT_STROBE>().val().get<uint64_t>();
        uint64_t data = beat.slice<BEAT_DATA>().val().get<uint64_t>();
        for (; strobe; strobe >>= 1, data >>= 8, offset++)
            if (strobe & 1 && offset < SIZE) memory[offset] = data;
        if (!beat.slice<BEAT_LAST>().val().get<bool>()) return;
        records++;
        done_at = cycles + 1;
    }
};

}  // namespace

extern "C" {

Player *player_new() { return new Player; }
void player_delete(Player *player) { delete player; }
void player_play(Player *player, uint64_t cycles) { player->play(cycles); }
uint64_t player_records(const Player *player) { return player->records; }
const uint8_t *player_memory(const Player *player) { return player->memory.data(); }
}
