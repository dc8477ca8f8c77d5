// Decoder of the words of one thread, and table of blocks.
#pragma once

#include <signal.h>

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ring.h"

using Handlers = std::unordered_set<uint64_t>;  // addresses of signal handlers

constexpr uint64_t PAGE_BYTES = 4096;
constexpr uint64_t GRANULE_BITS = 64;            // unit of the register VG
constexpr uint64_t LONGEST_HANDLER = 1 << 20;  // rows that are kept for the target of an interrupted branch

// Instruction words in a page, as they were executed last.
struct Page {
    std::array<uint32_t, PAGE_BYTES / 4> words{};
    uint64_t version = 1;  // incremented when a word changes
};

// Block of instructions. QEMU ends a block at a branch, and after at most two pages.
struct Block {
    uint64_t pc;
    std::vector<uint32_t> words;
    std::vector<Operation> rows;  // its operations without addresses and outcomes
    std::vector<Word> facts;
    bool scalable = false;  // it has an SVE instruction
    Page *first, *last;
    uint64_t versions = 0;  // of its pages, when it was known to be their content

    uint64_t end() const { return pc + 4 * words.size(); }
};

class Blocks {
   public:
    Block *find(uint32_t number) const { return number < blocks.size() ? blocks[number].get() : nullptr; }

    void define(const std::vector<uint64_t> &payload) {
        auto block = std::make_unique<Block>();
        block->pc = payload[1];
        for (uint64_t index = 0; index < payload[2]; index++)
            block->words.push_back(uint32_t(payload[3 + index / 2] >> (index % 2 ? 32 : 0)));
        block->first = page(block->pc);
        block->last = page(block->end() - 4);
        if (blocks.size() <= payload[0]) blocks.resize(payload[0] + 1);
        blocks[payload[0]] = std::move(block);
    }

    // Return whether the block is classified, and is what its pages contain.
    bool is_current(Block &block) {
        if (block.versions == block.first->version + block.last->version) [[likely]]
            return true;
        if (block.rows.empty()) return false;
        for (size_t index = 0; index < block.words.size(); index++)
            if (word(block, index) != block.words[index]) return false;
        block.versions = block.first->version + block.last->version;
        return true;
    }

    void classify(Block &block, const Word *words, bool exact) {
        block.facts.assign(words, words + block.words.size());
        block.rows.assign(block.words.size(), Operation{});
        for (size_t index = 0; index < block.words.size(); index++) {
            Operation &row = block.rows[index];
            row.pc = block.pc + 4 * index;
            row.facts = words[index].facts;
            row.vectors = words[index].vectors;
            block.scalable |= row.vectors != 0;
            if (words[index].passes && !exact) row.facts |= FACT_TAKEN;  // the outcome is not known
            uint32_t &present = word(block, index);
            if (present && present != block.words[index]) page(row.pc)->version++;
            present = block.words[index];
        }
        block.versions = block.first->version + block.last->version;
    }

   private:
    Page *page(uint64_t address) {
        auto &found = pages[address / PAGE_BYTES];
        if (!found) found = std::make_unique<Page>();
        return found.get();
    }

    static uint32_t &word(const Block &block, size_t index) {
        uint64_t address = block.pc + 4 * index;
        Page *page = address / PAGE_BYTES == block.pc / PAGE_BYTES ? block.first : block.last;
        return page->words[address % PAGE_BYTES / 4];
    }

    std::vector<std::unique_ptr<Block>> blocks;  // by number
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
};

// Operations of one thread. A row is final when the target of its branch and its outcome are known.
class Decoder {
   public:
    bool seen = false;

    // Start a block, which completes the block before it.
    void start(Block &next, const Handlers &handlers) {
        if (returning)
            resume(next.pc, handlers);
        else if (block)
            end_block(next.pc, handlers);
        else if (next.pc != after && handlers.contains(next.pc))
            interrupted.push_back(NO_ROW);
        returning = false;
        block = &next;
        cut = next.words.size();
        base = rows.size();
        rows.insert(rows.end(), next.rows.begin(), next.rows.end());
        if (next.scalable) set_lengths();
    }

    void on_word(uint64_t word) {
        uint64_t index = ring::index_of(word);
        if (!block || index >= block->words.size()) return;
        Operation &row = rows[base + index];
        switch (ring::kind_of(word)) {
            case ring::Kind::ACCESS:
                if (row.facts & (FACT_LOAD | FACT_STORE)) {
                    row.va = word & ring::ADDRESS_MASK;
                    row.facts |= FACT_VA_VALID;
                }
                break;
            case ring::Kind::OUTCOME:
                if (block->facts[index].passes >> (word & 15) & 1) row.facts |= FACT_TAKEN;
                break;
            case ring::Kind::LENGTH:
                length = uint16_t((word & ring::ADDRESS_MASK) * GRANULE_BITS / LENGTH_UNIT);
                set_lengths();
                break;
            case ring::Kind::CUT:
                cut = index;
                break;
            default:
                break;
        }
    }

    // Complete the block of a system call, whose last instruction is SVC.
    void complete() {
        if (block) base = rows.size();
        after = block ? block->end() : after;
        block = nullptr;
    }

    void on_return_from_signal() {
        complete();
        returning = true;
    }

    // Complete the last block of a thread that ended by `signal`, or otherwise. Return the PC of the instruction that
    // did not retire, or 0 if there is none.
    uint64_t finish(uint32_t signal) {
        uint64_t pc = 0;
        if (block) {
            cut = std::min(cut, first_without_access(0));
            if (cut == block->words.size() && (signal == SIGILL || signal == SIGTRAP)) cut--;
            if (cut < block->words.size()) pc = block->pc + 4 * cut;
            rows.resize(base + cut);
            base = rows.size();
            block = nullptr;
        }
        interrupted.clear();
        return pc;
    }

    // Return the number of final rows.
    uint64_t final() const {
        uint64_t count = block ? base : rows.size();
        for (uint64_t row : interrupted)
            if (row != NO_ROW) return std::min(count, row);
        return count;
    }

    // Move final rows to `output`. Return their number.
    uint64_t take(Operation *output, uint64_t capacity) {
        if (final() == 0 && rows.size() > LONGEST_HANDLER) interrupted.clear();
        uint64_t count = std::min(final(), capacity);
        std::copy_n(rows.begin(), count, output);
        rows.erase(rows.begin(), rows.begin() + ptrdiff_t(count));
        base -= count;
        for (uint64_t &row : interrupted)
            if (row != NO_ROW) row -= count;
        return count;
    }

   private:
    static constexpr uint64_t NO_ROW = ~uint64_t(0);

    // Return the index of the first instruction from `start` on that has to access memory and has not.
    uint64_t first_without_access(uint64_t start) const {
        for (uint64_t index = start; index < block->words.size(); index++) {
            const Word &word = block->facts[index];
            if (word.traffic && !word.irregular && !(rows[base + index].facts & FACT_VA_VALID)) return index;
        }
        return block->words.size();
    }

    // Set the length of the vectors in the rows of the current block.
    void set_lengths() {
        constexpr unsigned OTHERS = (1u << LENGTH_SHIFT) - 1;  // the other members
        for (uint64_t row = base; row < rows.size(); row++)
            if (unsigned vectors = rows[row].vectors)
                rows[row].vectors = uint16_t((vectors & OTHERS) | unsigned(length) << LENGTH_SHIFT);
    }

    // Complete the current block. `next` is the PC after it.
    void end_block(uint64_t next, const Handlers &handlers) {
        uint64_t last = block->words.size() - 1;
        if (cut > last && next != block->end()) cut = first_without_access(last);
        bool complete = cut > last;
        uint64_t resumed = complete ? block->end() : block->pc + 4 * cut;
        rows.resize(base + cut);
        base = rows.size();
        Operation *row = complete ? &rows.back() : nullptr;
        bool branch = row && row->facts & FACT_BRANCH;
        bool signaled = branch ? !is_successor(*row, block->words[last], next, handlers)
                               : next != resumed && handlers.contains(next);
        if (signaled)
            interrupted.push_back(branch ? rows.size() - 1 : NO_ROW);
        else if (branch)
            resolve(*row, next);
        block = nullptr;
    }

    // Continue at `next` after a signal handler. Another handler may be entered first.
    void resume(uint64_t next, const Handlers &handlers) {
        if (interrupted.empty() || handlers.contains(next)) return;
        if (interrupted.back() != NO_ROW) resolve(rows[interrupted.back()], next);
        interrupted.pop_back();
    }

    static void resolve(Operation &row, uint64_t next) {
        row.target = next;
        if (next != row.pc + 4) row.facts |= FACT_TAKEN;
    }

    // Return whether a branch can have led to `next`. Otherwise a signal handler was entered after it.
    static bool is_successor(const Operation &row, uint32_t word, uint64_t next, const Handlers &handlers) {
        if (row.facts & FACT_INDIRECT) return !handlers.contains(next);
        auto target = [&](unsigned bits, unsigned shift) {  // immediate of `bits` bits at bit `shift`
            return row.pc + uint64_t(int64_t(uint64_t(word) << (64 - bits - shift)) >> (64 - bits)) * 4;
        };
        bool unconditional = (word & 0x7C00'0000) == 0x1400'0000;  // B, BL
        bool test = (word & 0x7E00'0000) == 0x3600'0000;           // TBZ, TBNZ
        uint64_t taken = unconditional ? target(26, 0) : test ? target(14, 5) : target(19, 5);
        return next == taken || (!unconditional && next == row.pc + 4);
    }

    std::vector<Operation> rows;
    std::vector<uint64_t> interrupted;  // row of each branch that a signal interrupted, or NO_ROW
    Block *block = nullptr;             // the current block, whose rows start at `base`
    uint64_t base = 0;
    uint64_t cut = 0;        // index of the first instruction of the block that has not retired
    uint64_t after = 0;      // PC after the last system call
    uint16_t length = 0;     // of vectors, in LENGTH_UNIT
    bool returning = false;  // the last system call was rt_sigreturn
};
