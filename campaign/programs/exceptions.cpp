// Throws exceptions through frames with destructors, and rethrows them.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

static int destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

static void descend(int depth) {
    Guard guard;
    if (depth == 0) throw std::out_of_range("bottom");
    descend(depth - 1);
}

int main() {
    int caught = 0;
    for (int i = 0; i < 40; i++) {
        try {
            try {
                descend(i % 10);
            } catch (const std::out_of_range &error) {
                throw std::runtime_error(std::string(error.what()) + std::to_string(i));
            }
        } catch (const std::exception &error) {
            caught += std::string(error.what()).size();
        }
    }
    std::printf("%d %d\n", caught, destroyed);
    return std::vector<int>(3).at(2);
}
