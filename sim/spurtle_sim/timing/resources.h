// Resources that operations occupy for some cycles: issue ports, memory channels, miss buffers and pending stores.

#pragma once

#include "components.h"

// Use of up to 32 units in future cycles. Operations reserve units in program order, and not in the order of cycles.
struct Calendar {
    struct Entry {
        uint64_t cycle = INVALID;
        uint32_t used = 0;  // bit mask of units
    };
    // Ring, indexed by cycle. Reservations further ahead than its size are not recorded.
    std::vector<Entry> entries;
    uint64_t mask;

    explicit Calendar(size_t size) : entries(size), mask(size - 1) {}

    uint32_t used(uint64_t cycle) const {
        const Entry &entry = entries[cycle & mask];
        return entry.cycle == cycle ? entry.used : 0;
    }

    // Reserve one of `units` for `duration` cycles, from the first possible cycle on. Return that cycle.
    uint64_t reserve(uint64_t cycle, uint32_t units, unsigned duration) {
        for (;; cycle++) {
            uint32_t free = units & ~used(cycle);
            for (unsigned later = 1; free && later < duration; later++) free &= ~used(cycle + later);
            if (!free) continue;
            uint32_t unit = free & -free;
            for (unsigned later = 0; later < duration; later++) use(cycle + later, unit);
            return cycle;
        }
    }

private:
    void use(uint64_t cycle, uint32_t unit) {
        Entry &entry = entries[cycle & mask];
        if (entry.cycle == cycle)
            entry.used |= unit;
        else if (entry.cycle == INVALID || entry.cycle < cycle)
            entry = {cycle, unit};
    }
};

constexpr size_t CALENDAR_CYCLES = 4096;  // more than the latency of most operations

// Connection to a cache or to memory. It transfers one line in `interval` cycles, or any number if `interval` is zero.
struct Channel {
    uint32_t interval;
    Calendar calendar{CALENDAR_CYCLES};

    explicit Channel(uint32_t interval) : interval(interval) {}

    // Return the cycle in which a transfer begins that is requested in `cycle`.
    uint64_t transfer(uint64_t cycle) {
        if (!interval) return cycle;
        return std::max(cycle, calendar.reserve(cycle / interval, 1, 1) * interval);
    }
};

// Buffers for lines that are being fetched. Without a buffer, any number of lines can be fetched.
struct MissBuffers {
    std::vector<uint64_t> free_from;  // cycles

    explicit MissBuffers(uint32_t count) : free_from(count) {}

    // Return whether a buffer is free in `cycle`.
    bool available(uint64_t cycle) const {
        return free_from.empty() || *std::ranges::min_element(free_from) <= cycle;
    }

    // Fetch a line in `cycle`, or when a buffer is free, and return its arrival. `arrival_of` returns the arrival of a
    // line whose fetch begins in the cycle that is its argument.
    template <typename Fetch>
    uint64_t fetch(uint64_t cycle, Fetch arrival_of) {
        if (free_from.empty()) return arrival_of(cycle);
        uint64_t &buffer = *std::ranges::min_element(free_from);
        return buffer = arrival_of(std::max(cycle, buffer));
    }
};

// Stores in the store buffer, whose data later loads can read.
struct PendingStores {
    struct Entry {
        uint64_t begin = 0, end = 0;  // addresses
        uint64_t ready = 0;           // the data is in the store buffer
        uint64_t written = 0;         // the data is in the cache
    };
    std::vector<Entry> entries;  // ring
    size_t next = 0;

    explicit PendingStores(uint32_t size) : entries(size) {}

    void append(const Entry &entry) {
        entries[next] = entry;
        next = next + 1 < entries.size() ? next + 1 : 0;
    }

    // Return the latest store that has bytes from `begin` to `end` and is not written by `cycle`, or nullptr.
    const Entry *find(uint64_t begin, uint64_t end, uint64_t cycle) const {
        size_t index = next;
        for (size_t count = entries.size(); count; count--) {
            index = (index ? index : entries.size()) - 1;
            const Entry &entry = entries[index];
            if (entry.written <= cycle) return nullptr;  // stores are written in program order
            if (entry.begin < end && begin < entry.end) return &entry;
        }
        return nullptr;
    }
};

// Prefetcher that recognizes loads whose addresses have a constant stride.
struct Prefetcher {
    struct Stream {
        uint64_t pc = INVALID;
        uint64_t address = 0;  // of the last load
        int64_t stride = 0;
    };
    std::vector<Stream> streams;  // indexed by PC
    int64_t distance;

    Prefetcher(uint32_t streams, uint32_t distance) : streams(streams), distance(distance) {}

    // Return the address to prefetch after a load, or INVALID. A stride below a line is extended to a line.
    uint64_t next(uint64_t pc, uint64_t address) {
        Stream &stream = streams[pc >> 2 & (streams.size() - 1)];
        int64_t stride = address - stream.address;
        bool repeated = stream.pc == pc && stride && stride == stream.stride;
        stream = {pc, address, stream.pc == pc ? stride : 0};
        if (!repeated) return INVALID;
        constexpr int64_t LINE = 1 << LINE_SHIFT;
        int64_t step = stride > 0 ? std::max(stride, LINE) : std::min(stride, -LINE);
        return address + step * distance;
    }
};
