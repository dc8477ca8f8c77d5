// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
//
// Plugin of QEMU user mode. It records the blocks that each thread executes, their memory accesses and the system calls
// that change the process, as words of a ring (ring.h). reader.cpp makes operations of them.
//
// This file and its headers may be used under either license: QEMU, into which they are loaded, is under the GPL.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unordered_map>

#include "api.h"
#include "guest.h"
#include "writer.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// QEMU reads it after the plugin is loaded, and so after `choose_version`.
EXPORT int qemu_plugin_version;
int qemu_plugin_version = 1;

namespace {

using ring::Kind;

constexpr uint64_t NONE = 1023, START = 1022;  // not the index of an instruction; no block was executed

// System calls of AArch64 Linux.
enum Call : int64_t {
    EXIT = 93, EXIT_GROUP = 94, RT_SIGACTION = 134, RT_SIGRETURN = 139, PRCTL = 167, BRK = 214, MREMAP = 216,
    CLONE = 220, EXECVE = 221, MMAP = 222, MPROTECT = 226, EXECVEAT = 281, CLONE3 = 435,
};

// Data of a callback at the start of a block: its number, and the index of its last mark.
//
// A block ends early only at an instruction that accesses memory: at a fault, or if QEMU cannot execute an atomic
// operation in parallel with other threads. Each such instruction, and the instruction after the last one, is a mark,
// which stores its index. If the index at the start of the next block is less than the index of the last mark, the
// instruction with that index has not retired.
constexpr unsigned MARK_SHIFT = 48;
constexpr uint64_t NUMBER_MASK = 0xFFFF'FFFF;

constexpr size_t SCOREBOARD_BYTES = 128;  // threads must not share a cache line, or a pair of adjacent lines
constexpr uint64_t ZVA_BYTES = 64;
constexpr unsigned NZCV_SHIFT = 28;
constexpr uint64_t TAG_BYTES = 16;  // bytes of memory with one Allocation Tag
constexpr unsigned TOP_BYTE = 56;   // bits of an address below the byte that is ignored
constexpr size_t REGISTERS = 34, SP = 31, CPSR = 32, VG = 33;  // X0 to X30, SP, CPSR and the length of vectors

struct Thread {
    ring::Writer writer;
    uint64_t mark = NONE, expected = START;  // last mark that was reached, and last mark of the block
    std::array<uint64_t, 6> arguments{};    // of the system call in progress
    std::array<qemu::RegisterHandle *, REGISTERS> registers{};
    bool length_written = false;  // of its vectors. It changes only by prctl

    explicit Thread(ring::Header *header) : writer(header) {}
};

// The model `initial-exec` makes an access a load instead of a call.
thread_local Thread *self __attribute__((tls_model("initial-exec"))) = nullptr;

qemu::Interface api;
ring::Header *header;
qemu::Scoreboard *marks;  // of each thread, the last mark that was reached. Null if the plugin cannot read registers
bool recording;           // the process is recorded
bool announced;           // the mappings at the start were written

struct Known {
    uint32_t number;
    std::vector<uint32_t> words;
};
std::unordered_map<uint64_t, std::vector<Known>> known;  // blocks by PC; QEMU translates one block at a time

__attribute__((constructor)) void choose_version() {
    auto exists = [](const char *name) { return dlsym(RTLD_DEFAULT, name) != nullptr; };
    qemu_plugin_version = exists("qemu_plugin_read_memory_vaddr") ? 4 : exists("qemu_plugin_n_vcpus") ? 1 : 3;
}

uint64_t &reached_mark(Thread &thread, unsigned cpu) {
    return marks ? *static_cast<uint64_t *>(api.scoreboard(marks, cpu)) : thread.mark;
}

// Write the mappings of files, and of the stack, that QEMU has made for the program. The host's view includes those of
// QEMU itself.
void write_mappings(ring::Writer &writer) {
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file) return;
    char line[2 * ring::TEXT_BYTES];
    while (fgets(line, sizeof(line), file)) {
        unsigned long start, end, offset;
        char protection[5];
        int at = 0;
        if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, protection, &offset, &at) < 4) continue;
        char *path = line + at;
        path[strcspn(path, "\n")] = 0;
        if (path[0] != '/' && end - start != STACK_BYTES) continue;
        uint64_t payload[] = {start - guest::base, end - start, offset};
        writer.put_event(Event::INITIAL, payload, path[0] == '/' ? path : "[stack]");
    }
    fclose(file);
    writer.put_event(Event::INITIAL, std::array<uint64_t, 3>{}, "");  // the end
}

// Return the calling thread, which opens a lane when it executes its first block or translates it.
Thread &current() {
    if (!self) [[unlikely]] {
        self = new Thread(header);
        self->writer.put_event(Event::THREAD, {});
        if (!announced) write_mappings(self->writer);
        announced = true;
    }
    return *self;
}

void on_block(unsigned cpu, void *data) {
    if (!recording) return;
    Thread &thread = current();
    uint64_t &mark = reached_mark(thread, cpu);
    if (thread.expected != START && mark != thread.expected && mark != NONE)
        thread.writer.put(ring::word(Kind::CUT, mark));
    mark = NONE;
    thread.expected = reinterpret_cast<uint64_t>(data) >> MARK_SHIFT;
    thread.writer.put(ring::word(Kind::BLOCK) | (reinterpret_cast<uint64_t>(data) & NUMBER_MASK));
    thread.writer.publish();
}

void on_access(unsigned, uint32_t, uint64_t address, void *index) {
    if (recording) current().writer.put_access(reinterpret_cast<uint64_t>(index), address);
}

void on_mark(unsigned, void *index) {
    if (recording) current().mark = reinterpret_cast<uint64_t>(index);
}

// Read a register. The callback must have the flag READ_REGISTERS.
uint64_t read_register(Thread &thread, size_t number) {
    if (!thread.registers[CPSR]) {
        qemu::Array<char> *all = api.registers();
        for (unsigned entry = 0; entry < all->length; entry++) {
            auto &found = reinterpret_cast<qemu::Register *>(all->data)[entry];
            if (!strcmp(found.name, "cpsr")) thread.registers[CPSR] = found.handle;
            if (!strcmp(found.name, "sp")) thread.registers[SP] = found.handle;
            if (!strcmp(found.name, "vg")) thread.registers[VG] = found.handle;
            if (found.name[0] == 'x' && isdigit(found.name[1]))
                thread.registers[size_t(atoi(found.name + 1))] = found.handle;
        }
    }
    thread_local qemu::Array<uint8_t> *bytes = api.new_bytes();
    api.resize_bytes(bytes, 0);
    int size = api.read_register(thread.registers[number], bytes);
    uint64_t value = 0;
    memcpy(&value, bytes->data, std::min<size_t>(size < 0 ? 0 : size_t(size), sizeof(value)));
    return value;
}

// Before a conditional select or compare.
void on_condition(unsigned, void *index) {
    if (!recording) return;
    Thread &thread = current();
    uint64_t flags = read_register(thread, CPSR) >> NZCV_SHIFT & 15;
    thread.writer.put(ring::word(Kind::OUTCOME, reinterpret_cast<uint64_t>(index), flags));
}

// Before the first SVE instruction of a block.
void on_vectors(unsigned, void *index) {
    if (!recording) return;
    Thread &thread = current();
    if (thread.length_written) return;
    thread.length_written = true;
    thread.writer.put(ring::word(Kind::LENGTH, reinterpret_cast<uint64_t>(index), read_register(thread, VG)));
}

// Return whether QEMU reports no access of an instruction that accesses memory: DC ZVA, DC GVA and DC GZVA.
bool is_zero(uint32_t word) {
    uint32_t operation = word & 0xFFFF'FFE0;
    return operation == 0xD50B'7420 || operation == 0xD50B'7460 || operation == 0xD50B'7480;
}

// The same for accesses of Allocation Tags: LDG, and STG, ST2G.
bool is_tag(uint32_t word) {
    uint32_t opcode = word & 0xFFE0'0C00;
    return opcode == 0xD960'0000 || ((word & 0xFF60'0000) == 0xD920'0000 && word & 0xC00);
}

// Before an instruction of which QEMU reports no access. `data` has its index and its word.
void on_silent_access(unsigned, void *data) {
    if (!recording) return;
    auto index = reinterpret_cast<uint64_t>(data) >> 32;
    auto word = uint32_t(reinterpret_cast<uint64_t>(data));
    Thread &thread = current();
    size_t number = is_tag(word) ? word >> 5 & 31 : word & 31;
    uint64_t address = number == 31 && !is_tag(word) ? 0 : read_register(thread, number);
    if (is_tag(word)) {
        bool post_indexed = (word >> 10 & 3) == 1;
        if (!post_indexed) address += uint64_t(int64_t(int32_t(word << 11) >> 23)) * TAG_BYTES;
        address &= (uint64_t(1) << TOP_BYTE) - TAG_BYTES;
    } else {
        address &= ~(ZVA_BYTES - 1);
    }
    thread.writer.put_access(index, address);
}

// Return whether an instruction may access memory: loads and stores, SVE, SME, and System instructions such as DC ZVA.
bool may_access(uint32_t word) {
    uint32_t group = word >> 25 & 15;
    return (group & 5) == 4 || group == 2 || group == 0 || (word & 0xFFC0'0000) == 0xD500'0000;
}

bool is_scalable(uint32_t word) { return (word >> 25 & 15) == 2; }  // SVE

bool is_condition(uint32_t word) {  // CSEL and similar; CCMP, CCMN; FCSEL, FCCMP
    return (word & 0x1FE0'0000) == 0x1A80'0000 || (word & 0x1FE0'0410) == 0x1A40'0000 ||
           (word & 0xFF20'0400) == 0x1E20'0400;
}

// Return the number of a block. The same code is translated again after QEMU has discarded its translations; other code
// at the same PC is another block.
uint32_t number_of(uint64_t pc, const std::vector<uint32_t> &words) {
    auto &candidates = known[pc];
    for (const Known &candidate : candidates)
        if (candidate.words == words) return candidate.number;
    auto number = uint32_t(header->blocks.fetch_add(1));
    std::vector<uint64_t> payload = {number, pc, words.size()};
    for (size_t index = 0; index < words.size(); index += 2)
        payload.push_back(words[index] | uint64_t(index + 1 < words.size() ? words[index + 1] : 0) << 32);
    current().writer.put_event(Event::DEFINE, payload);
    candidates.push_back({number, words});
    return number;
}

void on_translation(qemu::Id, qemu::Block *block) {
    size_t count = api.instructions(block);
    std::vector<uint32_t> words(count);
    for (size_t index = 0; index < count; index++)
        words[index] = api.read_word(api.instruction(block, index), qemu_plugin_version);
    const qemu::Instruction *first = api.instruction(block, 0);
    uint64_t pc = api.address(first);
    guest::base = reinterpret_cast<uint64_t>(api.host_address(first)) - pc;
    if (!recording) return;

    uint64_t mark = NONE;
    for (size_t index = 0; index < count; index++)
        if (may_access(words[index])) mark = index;
    if (mark + 1 < count) mark++;

    uint64_t data = number_of(pc, words) | mark << MARK_SHIFT;
    api.on_block(block, on_block, qemu::NO_REGISTERS, reinterpret_cast<void *>(data));
    bool scalable = false;
    for (size_t index = 0; index < count; index++) {
        qemu::Instruction *instruction = api.instruction(block, index);
        bool access = may_access(words[index]);
        void *at = reinterpret_cast<void *>(index);
        if (access || index == mark) {
            if (marks)
                api.store_inline(instruction, qemu::INLINE_STORE, {marks, 0}, index);
            else
                api.on_instruction(instruction, on_mark, qemu::NO_REGISTERS, at);
        }
        if (header->exact && is_condition(words[index]))
            api.on_instruction(instruction, on_condition, qemu::READ_REGISTERS, at);
        if (header->exact && !scalable && is_scalable(words[index])) {
            api.on_instruction(instruction, on_vectors, qemu::READ_REGISTERS, at);
            scalable = true;
        }
        if (header->exact && (is_zero(words[index]) || is_tag(words[index])))
            api.on_instruction(instruction, on_silent_access, qemu::READ_REGISTERS,
                               reinterpret_cast<void *>(index << 32 | words[index]));
        if (access) api.on_access(instruction, on_access, qemu::NO_REGISTERS, qemu::READS_AND_WRITES, at);
    }
}

// Close the lane of the calling thread.
void end_lane() {
    if (!self) return;
    self->writer.close();
    delete self;
    self = nullptr;
}

// Take over execve and execveat, so that the new program is executed under QEMU too.
void on_execution(std::string path, uint64_t arguments, uint64_t environment) {
    if (path == "/proc/self/exe") path = guest::own_path(*header);  // the host's is QEMU
    guest::Program program{path, guest::texts(arguments), guest::texts(environment)};
    if (!guest::resolve(*header, program)) {
        if (recording && !access(program.path.c_str(), X_OK))
            current().writer.put_event(Event::REFUSED, {}, program.path.c_str());
        return;
    }
    if (recording) {
        current().writer.put_event(Event::EXECUTE, {}, std::filesystem::absolute(program.path).c_str());
        end_lane();
    }
    guest::execute(*header, program);
}

void on_call(qemu::Id, unsigned, int64_t number, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
             uint64_t a5, uint64_t, uint64_t) {
    if (number == EXECVE) return on_execution(guest::text(a0), a1, a2);
    if (number == EXECVEAT) {
        std::string path = guest::text(a1);
        if (int(a0) != AT_FDCWD && path[0] != '/')
            path = "/proc/self/fd/" + std::to_string(int(a0)) + (path.empty() ? "" : "/" + path);
        return on_execution(path, a2, a3);
    }
    if (!recording) return;
    Thread &thread = current();
    thread.arguments = {a0, a1, a2, a3, a4, a5};
    uint64_t handler = 0;
    switch (number) {
        case EXIT:
        case EXIT_GROUP:
            thread.writer.put_event(Event::EXIT, std::array{uint64_t(number == EXIT_GROUP)});
            return end_lane();
        case CLONE:
        case CLONE3:
            return thread.writer.put_event(Event::FORK, std::array{header->forks.fetch_add(1) + 1});
        case RT_SIGRETURN:
            return thread.writer.put_event(Event::SIGRETURN, {});
        case RT_SIGACTION:
            if (a1 && guest::read(a1, &handler, sizeof(handler)) && handler > 1)  // not SIG_DFL, SIG_IGN
                thread.writer.put_event(Event::HANDLER, std::array{handler});
            return;
        case PRCTL:
            if (a0 == PR_SET_NAME) thread.writer.put_event(Event::NAME, {}, guest::text(a1).c_str());
            return;
    }
}

void on_return(qemu::Id, unsigned, int64_t number, int64_t result) {
    if (!recording || (result < 0 && result > -4096)) return;
    Thread &thread = current();
    if (number == PRCTL) thread.length_written = false;
    const auto &[a0, a1, a2, flags, descriptor, offset] = thread.arguments;
    char path[ring::TEXT_BYTES] = "//anon";
    if (number == BRK) {
        thread.writer.put_event(Event::HEAP, std::array{uint64_t(result)});
    } else if (number == MMAP) {
        if (!(flags & MAP_ANONYMOUS)) {  // QEMU passes descriptors to the host
            std::string link = "/proc/self/fd/" + std::to_string(int(descriptor));
            ssize_t length = readlink(link.c_str(), path, sizeof(path) - 1);
            path[std::max<ssize_t>(length, 0)] = 0;
        }
        thread.writer.put_event(Event::MAP, std::array{uint64_t(result), a1, offset, a2}, path);
    } else if (number == MREMAP) {
        uint64_t both = PROT_READ | PROT_WRITE;
        thread.writer.put_event(Event::MAP, std::array{uint64_t(result), a2, uint64_t(0), both}, path);
    } else if (number == MPROTECT && a2 & PROT_EXEC) {
        thread.writer.put_event(Event::PROTECT, std::array{a0, a1, a2});
    }
}

// The child of a fork has the lanes and the translations of its parent.
void in_child() {
    self = nullptr;
    recording &= header->follow != 0;
    announced = true;
}

}  // namespace

EXPORT int qemu_plugin_install(qemu::Id id, const void *, int count, char **arguments) {
    std::string file;
    for (int index = 0; index < count; index++)
        if (!strncmp(arguments[index], "ring=", 5)) file = arguments[index] + 5;
    // The descriptor is closed at once: the guest may close all its descriptors, and may use any number.
    int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
    void *shared = mmap(nullptr, ring::BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (descriptor < 0 || shared == MAP_FAILED || !api.find()) {
        fprintf(stderr, "spurtle: the plugin cannot be used: it is for `spurtle profile`\n");
        return 1;
    }
    close(descriptor);
    header = static_cast<ring::Header *>(shared);
    uint32_t first = 0;
    recording = header->first.compare_exchange_strong(first, uint32_t(getpid())) || first == uint32_t(getpid()) ||
                header->follow;
    header->exact = api.exact();
    if (header->exact) marks = api.new_scoreboard(SCOREBOARD_BYTES);

    pthread_atfork(nullptr, nullptr, in_child);
    api.on_translation(id, on_translation);
    api.on_call(id, on_call);
    api.on_return(id, on_return);
    return 0;
}
