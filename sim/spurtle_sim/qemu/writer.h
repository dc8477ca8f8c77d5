// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
//
// Writer of the lane of one thread.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "ring.h"

namespace ring {

constexpr long WAIT_NANOSECONDS = 20'000'000;  // then the thread checks that the reader exists
constexpr int FAILED = 125;                    // exit status of `spurtle profile` if it failed itself

class Writer {
   public:
    // Open a lane for the calling thread.
    explicit Writer(Header *shared) : header(shared) {
        for (uint64_t index = 0; index < LANES; index++) {
            Lane &candidate = header->lanes[index];
            State expected = State::FREE;
            if (candidate.state.load(std::memory_order_relaxed) != State::FREE) continue;
            // The reader does not look at a lane before its numbers are set.
            if (!candidate.state.compare_exchange_strong(expected, State::LOCKED)) continue;
            lane = &candidate;
            words = ring::words(header, index);
            lane->process = uint32_t(getpid());
            lane->thread = uint32_t(syscall(SYS_gettid));
            lane->parent = uint32_t(getppid());
            lane->order = header->order.fetch_add(1);
            lane->forks = header->forks.load();
            limit = lane->written = lane->head.load();
            lane->state.store(State::OPEN, std::memory_order_release);
            uint64_t opened = header->opened.load();
            while (opened <= index && !header->opened.compare_exchange_weak(opened, index + 1)) {
            }
            return;
        }
        header->exhausted = 1;
        _exit(FAILED);
    }

    // Write a word.
    void put(uint64_t word) {
        if (lane->written >= limit) [[unlikely]]
            wait();
        words[lane->written % WORDS] = word;
        lane->written++;
    }

    // Write that the instruction `index` of the current block has accessed `address`. Accesses of one instruction are
    // merged: the word is not published before the next block, and so it can still be changed.
    void put_access(uint64_t index, uint64_t address) {
        uint64_t word = ring::word(Kind::ACCESS, index, address & ADDRESS_MASK);
        if (access && index_of(*access) == index) {
            *access = std::min(*access, word);
            return;
        }
        put(word);
        access = &words[(lane->written - 1) % WORDS];
    }

    // Write an event with a payload and a text.
    void put_event(Event event, std::span<const uint64_t> payload, const char *text = nullptr) {
        uint64_t characters[TEXT_BYTES / 8] = {};
        size_t length = 0;
        if (text) {
            strncpy(reinterpret_cast<char *>(characters), text, TEXT_BYTES - 1);
            length = strlen(reinterpret_cast<char *>(characters)) / 8 + 1;
        }
        put(ring::word(Kind::EVENT) | (payload.size() + length) << COUNT_SHIFT | uint64_t(event));
        for (uint64_t word : payload) put(word);
        for (size_t index = 0; index < length; index++) put(characters[index]);
        publish();
    }

    // Let the reader read the words until here.
    void publish() {
        lane->head.store(lane->written, std::memory_order_release);
        access = nullptr;
    }

    // Close the lane. The reader reads the rest.
    void close() {
        publish();
        lane->state.store(State::ENDED, std::memory_order_release);
    }

   private:
    // Wait until the reader has read a half of the ring. This ends, because the thread holds no lock of QEMU that the
    // reader needs, and the reader reads every lane. If there is no reader any more, the words are overwritten.
    __attribute__((noinline)) void wait() {
        publish();
        while (lane->written - lane->tail.load(std::memory_order_acquire) >= WORDS / 2) {
            if (header->closed || kill(pid_t(header->reader), 0)) {
                limit = ~uint64_t(0);
                return;
            }
            lane->waiting.store(1);
            if (lane->written - lane->tail.load() >= WORDS / 2) {
                timespec timeout{0, WAIT_NANOSECONDS};
                syscall(SYS_futex, &lane->waiting, FUTEX_WAIT, 1, &timeout, nullptr, 0);
            }
            lane->waiting.store(0);
        }
        limit = lane->tail.load(std::memory_order_acquire) + WORDS;
    }

    Header *const header;
    Lane *lane;
    uint64_t *words;
    uint64_t limit;              // there is space up to here
    uint64_t *access = nullptr;  // word of the last access, while it can still be changed
};

}  // namespace ring
