// Counts how often the instruction at each address was executed. executed.py generates layout.h, with the struct of the
// operations.

#include <array>
#include <map>

#include "layout.h"

namespace {

constexpr unsigned PAGE_SHIFT = 12;
constexpr uint64_t INSTRUCTIONS = (1 << PAGE_SHIFT) / 4;  // of a page
constexpr uint64_t NO_PAGE = ~uint64_t(0);                // more than any page number

struct Counter {
    std::map<uint64_t, std::array<uint64_t, INSTRUCTIONS>> pages;
    uint64_t last_page = NO_PAGE;
    uint64_t *last = nullptr;  // counts of this page

    void add(const TimedOperation &operation) {
        uint64_t page = operation.pc >> PAGE_SHIFT;
        if (page != last_page) {
            last_page = page;
            last = pages[page].data();
        }
        last[operation.pc / 4 % INSTRUCTIONS]++;
    }

    // Write the addresses that were executed, and their counts, unless both are null. Return their number.
    uint64_t list(uint64_t *addresses, uint64_t *counts) const {
        uint64_t number = 0;
        for (const auto &[page, of_page] : pages)
            for (uint64_t index = 0; index < INSTRUCTIONS; index++) {
                if (!of_page[index]) continue;
                if (addresses) {
                    addresses[number] = (page << PAGE_SHIFT) + 4 * index;
                    counts[number] = of_page[index];
                }
                number++;
            }
        return number;
    }
};

}  // namespace

extern "C" {

Counter *executed_new() { return new Counter; }
void executed_delete(Counter *counter) { delete counter; }

void executed_add(Counter *counter, const TimedOperation *operations, uint64_t count) {
    for (uint64_t row = 0; row < count; row++) counter->add(operations[row]);
}

uint64_t executed_list(const Counter *counter, uint64_t *addresses, uint64_t *counts) {
    return counter->list(addresses, counts);
}
}
