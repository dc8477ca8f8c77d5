// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
//
// Memory of the guest, and programs that it executes.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ring.h"

namespace guest {

inline uint64_t base;  // host address of the guest's address zero

// Read guest memory. Return whether it is mapped.
inline bool read(uint64_t address, void *buffer, size_t size) {
    iovec local{buffer, size}, remote{reinterpret_cast<void *>(address + base), size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == ssize_t(size);
}

// Return a zero-terminated string. It is empty if the memory is not mapped.
inline std::string text(uint64_t address) {
    std::string result;
    for (char character; read(address++, &character, 1) && character;) result += character;
    return result;
}

// Return an array of strings that ends with a null pointer.
inline std::vector<std::string> texts(uint64_t address) {
    std::vector<std::string> result;
    uint64_t pointer;
    for (; address && read(address, &pointer, sizeof(pointer)) && pointer; address += sizeof(pointer))
        result.push_back(text(pointer));
    return result;
}

// Program that the guest is about to execute.
struct Program {
    std::string path;
    std::vector<std::string> arguments;    // with argv[0]
    std::vector<std::string> environment;
};

constexpr unsigned MAX_SCRIPTS = 4;  // interpreters of a script that are scripts, as in Linux
constexpr size_t FIRST_BYTES = 256;  // Linux looks for the interpreter of a script in these bytes
constexpr unsigned MACHINE_OFFSET = 18, EM_AARCH64 = 183;

// Return the name on the host. QEMU looks for a file in the sysroot first.
inline std::string host_path(const ring::Header &header, const std::string &path) {
    std::string inside = header.sysroot + path;
    return path[0] == '/' && header.sysroot[0] && !access(inside.c_str(), F_OK) ? inside : path;
}

// Replace a script by its interpreter. Return whether the program is one for AArch64.
inline bool resolve(const ring::Header &header, Program &program) {
    for (unsigned scripts = 0; scripts <= MAX_SCRIPTS; scripts++) {
        program.path = host_path(header, program.path);
        char first[FIRST_BYTES] = {};
        int file = open(program.path.c_str(), O_RDONLY | O_CLOEXEC);
        ssize_t length = file < 0 ? -1 : pread(file, first, sizeof(first) - 1, 0);
        if (file >= 0) close(file);
        if (length < 0 || access(program.path.c_str(), X_OK)) return false;
        if (!memcmp(first, "\177ELF\2\1", 6)) return uint8_t(first[MACHINE_OFFSET]) == EM_AARCH64;
        if (first[0] != '#' || first[1] != '!') return false;
        std::string line(first + 2, strcspn(first + 2, "\n"));
        auto strip = [](const std::string &part) {
            size_t start = part.find_first_not_of(" \t"), end = part.find_last_not_of(" \t");
            return start == std::string::npos ? std::string() : part.substr(start, end - start + 1);
        };
        line = strip(line);
        size_t end = line.find_first_of(" \t");
        std::vector<std::string> arguments = {line.substr(0, end)};
        if (end != std::string::npos) arguments.push_back(strip(line.substr(end)));
        arguments.push_back(program.path);
        for (size_t index = 1; index < program.arguments.size(); index++) arguments.push_back(program.arguments[index]);
        program.path = arguments[0];
        program.arguments = arguments;
    }
    return false;
}

// Return the arguments of QEMU before the program.
inline std::vector<std::string> command(const ring::Header &header) {
    std::vector<std::string> result;
    for (const char *argument = header.command; *argument; argument += strlen(argument) + 1) result.push_back(argument);
    return result;
}

// Return the path of the program that this process executes, from the arguments of QEMU.
inline std::string own_path(const ring::Header &header) {
    std::ifstream file("/proc/self/cmdline");
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    size_t index = command(header).size();
    if (index < arguments.size() && arguments[index] == "-0") index += 2;
    return index < arguments.size() ? arguments[index] : "";
}

// Execute the program under QEMU, with this plugin. QEMU would pass the file to the kernel of the host, which cannot
// execute it. The function returns only if that fails.
inline void execute(const ring::Header &header, const Program &program) {
    std::vector<std::string> before = command(header);
    std::vector<const char *> arguments, environment;
    for (const std::string &argument : before) arguments.push_back(argument.c_str());
    if (!program.arguments.empty()) {
        arguments.push_back("-0");
        arguments.push_back(program.arguments[0].c_str());
    }
    arguments.push_back(program.path.c_str());
    for (size_t index = 1; index < program.arguments.size(); index++)
        arguments.push_back(program.arguments[index].c_str());
    for (const std::string &variable : program.environment) environment.push_back(variable.c_str());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    execve(arguments[0], const_cast<char **>(arguments.data()), const_cast<char **>(environment.data()));
}

}  // namespace guest
