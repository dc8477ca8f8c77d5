// A board at the end of a pseudo-terminal: the compiled design, with bytes from there as bits on its line, and back.

#include <atomic>
#include <cstdint>

#include <unistd.h>

#include "design.h"
#include "layout.h"

namespace {

constexpr unsigned BITS_PER_BYTE = 10;

// What is on a line in one direction: a byte between its start and its stop bit.
struct Shifter {
    uint32_t bits = 0;
    unsigned left = 0;   // bits of it
    unsigned timer = 0;  // cycles until the next one
};

struct Simulation {
    VerilatedContext context;
    design board{&context};
    uint64_t cycles = 0;
    Shifter to, from;
    uint8_t heard[256];
    unsigned heard_count = 0, heard_place = 0;
    uint8_t said;
    bool waits = false;
    // The LEDs, in the order of LEDS in top.py, that were on since they were last read. The host reads and clears them
    // while another thread simulates.
    std::atomic<unsigned> lit{0};

    Simulation() {
        board.rx = 1;
        board.rst = 1;
        cycle();
        board.rst = 0;
    }

    void cycle() {
        board.clk = 0;
        board.eval();
        board.clk = 1;
        board.eval();
        cycles++;
        const unsigned on = board.running | board.full << 1 | board.sending << 2 | board.collision << 3;
        // Most cycles light no other LED, and a load takes less time than a read-modify-write.
        if (on & ~lit.load(std::memory_order_relaxed)) lit.fetch_or(on, std::memory_order_relaxed);
    }

    // The next bit of what the host sends. Only every so many cycles it is asked whether there is something.
    void send(int port) {
        if (to.timer) {
            to.timer--;
            return;
        }
        if (!to.left) {
            if (heard_place == heard_count) {
                if (cycles % 64) return;
                ssize_t count = read(port, heard, sizeof heard);
                heard_place = 0;
                heard_count = count > 0 ? count : 0;
                if (!heard_count) return;
            }
            to.bits = uint32_t(heard[heard_place++]) << 1 | 1u << (BITS_PER_BYTE - 1);
            to.left = BITS_PER_BYTE;
        }
        board.rx = to.bits & 1;
        to.bits >>= 1;
        to.left--;
        to.timer = DIVISOR - 1;
    }

    // The bits that the board sends, each read in its middle.
    void receive(int port) {
        if (!from.left) {
            if (board.tx) return;
            from = {0, BITS_PER_BYTE, DIVISOR / 2};
        }
        if (from.timer) {
            from.timer--;
            return;
        }
        from.bits |= uint32_t(board.tx) << (BITS_PER_BYTE - from.left);
        from.timer = DIVISOR - 1;
        if (--from.left) return;
        said = from.bits >> 1;
        waits = true;
        hand_over(port);
    }

    // Whether the host has taken what the board has said. One that does not read makes the board wait, which a UART would not: so
    // a slow host loses nothing here.
    bool hand_over(int port) {
        if (waits && write(port, &said, 1) == 1) waits = false;
        return !waits;
    }
};

}  // namespace

extern "C" {

Simulation *simulation_new() { return new Simulation; }
void simulation_delete(Simulation *simulation) { delete simulation; }
uint64_t simulation_cycles(const Simulation *simulation) { return simulation->cycles; }
void simulation_button(Simulation *simulation, int level) { simulation->board.button = level; }
unsigned simulation_lit(Simulation *simulation) { return simulation->lit.exchange(0); }

// So many cycles, or until the host does not read; it is at the other end of `port`, which does not block.
void simulation_run(Simulation *simulation, int port, uint64_t cycles) {
    for (uint64_t end = simulation->cycles + cycles; simulation->cycles < end && simulation->hand_over(port);) {
        simulation->send(port);
        simulation->cycle();
        simulation->receive(port);
    }
}
}
