// Access to the ports of a module that Verilator has translated. Verilator spells `a__b` with the escape ___05F, and
// stores ports of more than 64 bits as arrays of 32-bit words.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define PORT(group, name) group##___05F##name
#define PORT_OF(group, part, name) group##___05F##part##___05F##name

// Return the 32-bit words of a port of any width, least significant word first. The host must be little-endian.
template <typename Port>
auto words_of(Port &port) {
    if constexpr (requires { port.data(); })
        return port.data();
    else
        return reinterpret_cast<uint32_t *>(&port);
}

// Return whether two values of a port are equal.
template <typename Port>
bool same_port(const Port &one, const Port &other) {
    return !std::memcmp(&one, &other, sizeof one);
}

// Field of a struct port, at most 64 bits wide: its first bit and its width.
struct Field {
    unsigned offset, width;
};

// Encoding of a System register. op0 is 3.
struct Encoding {
    unsigned op1, crn, crm, op2;

    bool operator==(const Encoding &) const = default;
};

inline uint64_t low_bits(unsigned width) { return width < 64 ? (uint64_t(1) << width) - 1 : ~uint64_t(0); }

inline uint64_t get_field(const uint32_t *words, Field field) {
    uint64_t number = 0;
    for (unsigned bit = 0; bit < field.width;) {
        unsigned from = field.offset + bit;
        number |= uint64_t(words[from / 32] >> from % 32) << bit;
        bit += 32 - from % 32;
    }
    return number & low_bits(field.width);
}

inline void put_field(uint32_t *words, Field field, uint64_t number) {
    for (unsigned bit = 0; bit < field.width;) {
        unsigned to = field.offset + bit, count = std::min(32 - to % 32, field.width - bit);
        uint32_t mask = low_bits(count) << to % 32;
        words[to / 32] = (words[to / 32] & ~mask) | (uint32_t(number >> bit) << to % 32 & mask);
        bit += count;
    }
}
