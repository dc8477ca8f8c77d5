// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
//
// The part of QEMU's plugin interface that the plugin uses. Every function is looked up by its name, because versions 1
// (QEMU 7.2) and 4 (QEMU 10) have different functions, and packages of QEMU have no header.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace qemu {

using Id = uint64_t;
struct Block;
struct Instruction;
struct Scoreboard;
struct RegisterHandle;

struct ScoreboardEntry {
    Scoreboard *scoreboard;
    size_t offset;
};

// Arrays of GLib.
template <typename Element>
struct Array {
    Element *data;
    unsigned length;
};

struct Register {
    RegisterHandle *handle;
    const char *name, *feature;
};

using ThreadFunction = void (*)(Id, unsigned thread);
using BlockFunction = void (*)(Id, Block *);
using StepFunction = void (*)(unsigned thread, void *data);
using AccessFunction = void (*)(unsigned thread, uint32_t information, uint64_t address, void *data);
using CallFunction = void (*)(Id, unsigned thread, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t);
using ReturnFunction = void (*)(Id, unsigned thread, int64_t number, int64_t result);

constexpr int NO_REGISTERS = 0, READ_REGISTERS = 1;  // flags of a callback
constexpr int READS_AND_WRITES = 3;
constexpr int INLINE_STORE = 1;  // operation of an inline callback

struct Interface {
    // Present in every version.
    void (*on_translation)(Id, BlockFunction);
    void (*on_block)(Block *, StepFunction, int flags, void *data);
    void (*on_instruction)(Instruction *, StepFunction, int flags, void *data);
    void (*on_access)(Instruction *, AccessFunction, int flags, int kinds, void *data);
    void (*on_call)(Id, CallFunction);
    void (*on_return)(Id, ReturnFunction);
    size_t (*instructions)(const Block *);
    Instruction *(*instruction)(const Block *, size_t index);
    uint64_t (*address)(const Instruction *);
    void *(*host_address)(const Instruction *);
    void *content;  // its type depends on the version: see `read_word`

    // Null in version 1.
    Array<char> *(*registers)();
    int (*read_register)(RegisterHandle *, Array<uint8_t> *);
    Scoreboard *(*new_scoreboard)(size_t bytes);
    void *(*scoreboard)(Scoreboard *, unsigned thread);
    void (*store_inline)(Instruction *, int operation, ScoreboardEntry, uint64_t value);
    Array<uint8_t> *(*new_bytes)();
    Array<uint8_t> *(*resize_bytes)(Array<uint8_t> *, unsigned);

    // Look the functions up. Return whether QEMU has those of every version.
    bool find() {
        bool found = find(on_translation, "qemu_plugin_register_vcpu_tb_trans_cb") &&
                     find(on_block, "qemu_plugin_register_vcpu_tb_exec_cb") &&
                     find(on_instruction, "qemu_plugin_register_vcpu_insn_exec_cb") &&
                     find(on_access, "qemu_plugin_register_vcpu_mem_cb") &&
                     find(on_call, "qemu_plugin_register_vcpu_syscall_cb") &&
                     find(on_return, "qemu_plugin_register_vcpu_syscall_ret_cb") &&
                     find(instructions, "qemu_plugin_tb_n_insns") && find(instruction, "qemu_plugin_tb_get_insn") &&
                     find(address, "qemu_plugin_insn_vaddr") && find(host_address, "qemu_plugin_insn_haddr") &&
                     find(content, "qemu_plugin_insn_data");
        find(registers, "qemu_plugin_get_registers");
        find(read_register, "qemu_plugin_read_register");
        find(new_scoreboard, "qemu_plugin_scoreboard_new");
        find(scoreboard, "qemu_plugin_scoreboard_find");
        find(store_inline, "qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu");
        find(new_bytes, "g_byte_array_new");
        find(resize_bytes, "g_byte_array_set_size");
        return found;
    }

    // Return whether the plugin can read registers.
    bool exact() const {
        return registers && read_register && new_scoreboard && scoreboard && store_inline && new_bytes && resize_bytes;
    }

    // Return the instruction word. Before version 3 the function returns a pointer to it.
    uint32_t read_word(const Instruction *source, int version) const {
        uint32_t word = 0;
        if (version < 3)
            word = *reinterpret_cast<const uint32_t *(*)(const Instruction *)>(content)(source);
        else
            reinterpret_cast<size_t (*)(const Instruction *, void *, size_t)>(content)(source, &word, sizeof(word));
        return word;
    }

    template <typename Function>
    static bool find(Function &function, const char *name) {
        function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
        return function != nullptr;
    }
};

}  // namespace qemu
