// Adds numbers in threads, with a mutex, a condition variable, atomics and thread-local storage.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::condition_variable changed;
static std::queue<int> queue;
static std::atomic<long> total;
static thread_local int local;

static void consume() {
    for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [] { return !queue.empty(); });
        int value = queue.front();
        if (value < 0) break;
        queue.pop();
        lock.unlock();
        for (int i = 0; i < 200; i++) local += i % 3;
        total += value;
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(consume);
    for (int i = 0; i <= 100; i++) {
        {
            std::lock_guard lock(mutex);
            queue.push(i < 100 ? i : -1);
        }
        changed.notify_all();
    }
    for (auto &thread : threads) thread.join();
    std::printf("%ld\n", total.load());
}
