// Ports of a module that Verilator has translated. It spells `a__b` with the escape ___05F, and keeps ports of more than 64 bits as
// arrays of 32-bit words.

#pragma once

#include <cstdint>

#define PORT(group, name) group##___05F##name
#define PORT_OF(group, part, name) group##___05F##part##___05F##name

// A field of a struct port, at most 64 bits wide.
struct Field {
    unsigned offset, width;
};

inline uint64_t get_field(const uint32_t *words, Field field) {
    uint64_t number = 0;
    for (unsigned bit = 0; bit < field.width; bit++) {
        unsigned from = field.offset + bit;
        number |= uint64_t(words[from / 32] >> from % 32 & 1) << bit;
    }
    return number;
}

inline void put_field(uint32_t *words, Field field, uint64_t number) {
    for (unsigned bit = 0; bit < field.width; bit++) {
        unsigned to = field.offset + bit;
        words[to / 32] = (words[to / 32] & ~(1u << to % 32)) | uint32_t(number >> bit & 1) << to % 32;
    }
}
