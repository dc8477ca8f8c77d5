// Waveforms of the cycles around some samples, if WAVES_FST or WAVES_VCD is 1.

#pragma once

#include <cerrno>
#include <memory>

#include "design.h"
#include "layout.h"

#if WAVES_FST
#include "verilated_fst_c.h"
using WaveFile = VerilatedFstC;
#elif WAVES_VCD
#include "verilated_vcd_c.h"
using WaveFile = VerilatedVcdC;

// File that discards its data after a failed write. VerilatedVcd would report the failure with a lock that it holds, and
// wait for itself.
struct DiscardingFile final : VerilatedVcdFile {
    int error = 0;  // errno of the failed write

    ssize_t write(const char *data, ssize_t size) override {
        if (error) return size;
        ssize_t written = VerilatedVcdFile::write(data, size);
        if (written >= 0 || errno == EAGAIN || errno == EINTR) return written;
        error = errno;
        return size;
    }
};
#endif

#define TRACED (WAVES_FST || WAVES_VCD)

#if TRACED

// Writer of the waveforms, from the selection of the sample before number `first` until sample `last` has left the SPU.
// Samples are numbered from 1.
struct Waves {
#if WAVES_VCD
    DiscardingFile output;  // before `file`, which refers to it
#endif
    std::unique_ptr<WaveFile> file;
    uint64_t first = 0, last = 0;
    uint64_t sampled = 0;  // samples so far
    uint64_t settled = 0;  // cycles since the last operation of the samples was in flight

    void open(design &spu, const char *path, uint64_t from, uint64_t to) {
#if WAVES_VCD
        file = std::make_unique<WaveFile>(&output);
#else
        file = std::make_unique<WaveFile>();
#endif
        spu.trace(file.get(), 99);  // levels of the hierarchy
        file->open(path);
        first = from;
        last = to;
    }

    // Count the samples of a cycle, and end the file after the last one.
    void advance(uint64_t samples, bool in_flight, uint64_t settle_cycles) {
        sampled += samples;
        settled = sampled < last || in_flight ? 0 : settled + 1;
        if (file && settled > settle_cycles) close();
    }

    // Write the values at a time, in half cycles.
    void dump(uint64_t time) {
        if (file && sampled + 1 >= first) file->dump(time);
    }

    void close() {
        if (file) file->close();
        file.reset();
    }

    // Return errno of a failed write, or zero. The writer of FST does not report one.
    int error() const {
#if WAVES_VCD
        return output.error;
#else
        return 0;
#endif
    }
};

#endif
