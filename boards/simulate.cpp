// Simulation of a board: the compiled design, with its UART connected to a pseudo-terminal.

#include <atomic>
#include <cstdint>

#include <unistd.h>

#include "design.h"
#include "layout.h"

namespace {

constexpr unsigned BITS_PER_BYTE = 10;

// One direction of the line: a byte with its start and stop bit.
struct Shifter {
    uint32_t bits = 0;
    unsigned remaining = 0;  // number of bits to be transferred
    unsigned timer = 0;      // cycles until the next bit
};

struct Simulation {
    VerilatedContext context;
    design board{&context};
    uint64_t cycles = 0;
    Shifter to, from;
    uint8_t received[256];  // bytes from the host
    unsigned received_count = 0, received_index = 0;
    uint8_t sent;  // byte for the host
    bool pending = false;
    // LEDs that were lit since the last read, in the order of LEDS in top.py. The host reads and clears them while
    // another thread simulates.
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
        // In most cycles no LED is added, and a load takes less time than a read-modify-write.
        if (on & ~lit.load(std::memory_order_relaxed)) lit.fetch_or(on, std::memory_order_relaxed);
    }

    // Drive the next bit from the host. The pseudo-terminal is polled only every 64 cycles, because a system call is
    // slow.
    void send(int port) {
        if (to.timer) {
            to.timer--;
            return;
        }
        if (!to.remaining) {
            if (received_index == received_count) {
                if (cycles % 64) return;
                ssize_t count = read(port, received, sizeof received);
                received_index = 0;
                received_count = count > 0 ? count : 0;
                if (!received_count) return;
            }
            to.bits = uint32_t(received[received_index++]) << 1 | 1u << (BITS_PER_BYTE - 1);
            to.remaining = BITS_PER_BYTE;
        }
        board.rx = to.bits & 1;
        to.bits >>= 1;
        to.remaining--;
        to.timer = DIVISOR - 1;
    }

    // Sample the bits from the board, each in its middle.
    void receive(int port) {
        if (!from.remaining) {
            if (board.tx) return;
            from = {0, BITS_PER_BYTE, DIVISOR / 2};
        }
        if (from.timer) {
            from.timer--;
            return;
        }
        from.bits |= uint32_t(board.tx) << (BITS_PER_BYTE - from.remaining);
        from.timer = DIVISOR - 1;
        if (--from.remaining) return;
        sent = from.bits >> 1;
        pending = true;
        deliver(port);
    }

    // Write the pending byte to the pseudo-terminal; return whether none is pending. While the host does not read, the
    // simulation waits. A real UART would lose bytes; here a slow host loses none.
    bool deliver(int port) {
        if (pending && write(port, &sent, 1) == 1) pending = false;
        return !pending;
    }
};

}  // namespace

extern "C" {

Simulation *simulation_new() { return new Simulation; }
void simulation_delete(Simulation *simulation) { delete simulation; }
uint64_t simulation_cycles(const Simulation *simulation) { return simulation->cycles; }
void simulation_button(Simulation *simulation, int level) { simulation->board.button = level; }
unsigned simulation_read_leds(Simulation *simulation) { return simulation->lit.exchange(0); }

// Simulate `cycles` cycles, or fewer if the host does not read. `port` is a nonblocking pseudo-terminal.
void simulation_run(Simulation *simulation, int port, uint64_t cycles) {
    for (uint64_t end = simulation->cycles + cycles; simulation->cycles < end && simulation->deliver(port);) {
        simulation->send(port);
        simulation->cycle();
        simulation->receive(port);
    }
}
}
