// The memory workloads M1 to M6 for allocators that are written in C++, with the requests and the output of kiln-bench: one
// JSON object a line, with the names of its workloads.
//
// An allocator is a type with `void* allocate(std::size_t)`, which answers nullptr where there is not enough memory,
// `void release(void*, std::size_t)`, and `cudaStream_t stream()`.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// Spins for so many clocks; in spin.cu.
void launch_spin(void* out, long long clocks, cudaStream_t stream);

namespace workloads {

constexpr int REPEATS = 5;
// What the measured runs of a point of M2 fill together, as in kiln-bench: a run of a thousand blocks is over before the caches
// are warm. And what they fill at the most before the last of them begins.
constexpr double FILLED_NS = 50e6;
constexpr double ENOUGH_NS = 30e9;
constexpr std::size_t MIB = std::size_t{1} << 20;
constexpr std::size_t PAIR_BYTES = 64 << 10;

inline double now() {
    using namespace std::chrono;
    return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

inline double at_percent(std::vector<double> values, std::size_t percent) {
    if (values.empty()) return 0.0;
    std::sort(values.begin(), values.end());
    return values[(values.size() - 1) * percent / 100];
}

inline void print_row(const std::string& workload, const std::string& subject, double p50, double p99, const char* unit) {
    std::printf("{\"workload\":\"%s\",\"subject\":\"%s\",\"p50\":%.3f,\"p99\":%.3f,\"unit\":\"%s\"}\n", workload.c_str(),
                subject.c_str(), p50, p99, unit);
    std::fflush(stdout);
}

// The generator of every workload.
class Lcg {
  public:
    static constexpr std::uint64_t SEED = 42;

    explicit Lcg(std::uint64_t seed = SEED) : state_(seed) {}

    std::uint64_t draw() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return state_ >> 33;
    }

  private:
    std::uint64_t state_;
};

struct Block {
    void* at;
    std::size_t bytes;
};

template <class Allocator>
void pair(Allocator& allocator) {
    allocator.release(allocator.allocate(PAIR_BYTES), PAIR_BYTES);
}

// M1: the median over batches, the 99th percentile over single pairs less the clock.
template <class Allocator>
void one_thread(const std::string& subject, Allocator& allocator) {
    for (int i = 0; i < 1000; ++i) pair(allocator);
    std::vector<double> p50s, p99s;
    for (int repeat = 0; repeat < REPEATS; ++repeat) {
        std::vector<double> batches, looks, singles;
        for (int batch = 0; batch < 1000; ++batch) {
            const double start = now();
            for (int i = 0; i < 256; ++i) pair(allocator);
            batches.push_back((now() - start) / 256);
        }
        for (int i = 0; i < 1000; ++i) {
            const double start = now();
            looks.push_back(now() - start);
        }
        const double look = at_percent(looks, 50);
        for (int i = 0; i < 50000; ++i) {
            const double start = now();
            pair(allocator);
            singles.push_back(std::max(now() - start - look, 0.0));
        }
        p50s.push_back(at_percent(batches, 50));
        p99s.push_back(at_percent(singles, 99));
    }
    print_row("m1", subject, at_percent(p50s, 50), at_percent(p99s, 50), "ns");
}

struct Lived {
    // For each operation, and for all of them.
    double nanoseconds;
    double time_ns;
    std::size_t peak_live;
};

// M2, once.
template <class Allocator>
Lived random_lives(Allocator& allocator, std::size_t count, std::size_t max_bytes, std::uint64_t seed = Lcg::SEED) {
    constexpr std::size_t LIVE_LIMIT = 16000 * MIB;
    Lcg random(seed);
    std::vector<Block> live;
    live.reserve(count);
    std::size_t live_bytes = 0, allocated = 0, operations = 0, peak = 0;
    const double start = now();
    for (std::size_t step = 0; step < 2 * count; ++step) {
        const std::size_t bytes = 1 + random.draw() % max_bytes;
        const bool allocates = live.empty() || (random.draw() % 100 < 73 && allocated < count && live_bytes + bytes < LIVE_LIMIT);
        ++operations;
        if (allocates) {
            ++allocated;
            void* at = allocator.allocate(bytes);
            if (at == nullptr) continue;
            live.push_back({at, bytes});
            live_bytes += bytes;
            peak = std::max(peak, live_bytes);
        } else {
            const std::size_t at = random.draw() % live.size();
            const Block block = live[at];
            live[at] = live.back();
            live.pop_back();
            allocator.release(block.at, block.bytes);
            live_bytes -= block.bytes;
        }
    }
    const double time = now() - start;
    for (const Block& block : live) allocator.release(block.at, block.bytes);
    return {time / static_cast<double>(operations), time, peak};
}

// M2 and M4. `make` gives an allocator of its own for each point, with `std::size_t peak_reserved()`; 0 gives no row of M4.
template <class Make>
void time_and_space(const std::string& subject, Make make) {
    for (std::size_t mib : {1, 4, 64, 256, 1024}) {
        for (std::size_t count : {1000, 10000, 100000}) {
            auto allocator = make();
            const Lived warm = random_lives(*allocator, count, mib * MIB);
            std::vector<double> values;
            double measured_ns = 0.0;
            while ((values.size() < REPEATS && measured_ns < ENOUGH_NS) || measured_ns < FILLED_NS) {
                const Lived lived = random_lives(*allocator, count, mib * MIB);
                values.push_back(lived.nanoseconds);
                measured_ns += lived.time_ns;
            }
            const std::string point = "max " + std::to_string(mib) + " MiB n " + std::to_string(count);
            print_row("m2 " + point, subject, at_percent(values, 50), at_percent(values, 99), "ns");
            const std::size_t reserved = allocator->peak_reserved();
            if (reserved == 0) continue;
            const double ratio = static_cast<double>(reserved) / static_cast<double>(warm.peak_live);
            print_row("m4 " + point, subject, ratio, ratio, "res/live");
        }
    }
}

// M2 and M4 of a program that never repeats itself: another seed in every run. `make` as above.
template <class Make>
void never_repeating(const std::string& subject, Make make) {
    constexpr std::size_t COUNT = 10000;
    for (std::size_t mib : {1, 4, 64, 256, 1024}) {
        auto allocator = make();
        std::vector<double> values;
        std::size_t peak_live = 0;
        for (int run = 0; run <= REPEATS; ++run) {
            const Lived lived = random_lives(*allocator, COUNT, mib * MIB, Lcg::SEED + static_cast<std::uint64_t>(run));
            peak_live = std::max(peak_live, lived.peak_live);
            if (run > 0) values.push_back(lived.nanoseconds);
        }
        const std::string point = "never repeating max " + std::to_string(mib) + " MiB n " + std::to_string(COUNT);
        print_row("m2 " + point, subject, at_percent(values, 50), at_percent(values, 99), "ns");
        const std::size_t reserved = allocator->peak_reserved();
        if (reserved == 0) continue;
        const double ratio = static_cast<double>(reserved) / static_cast<double>(peak_live);
        print_row("m4 " + point, subject, ratio, ratio, "res/live");
    }
}

// M3. `make` gives a thread its allocator on a separate stream.
template <class Make>
void many_threads(const std::string& subject, Make make) {
    constexpr int PAIRS = 20000;
    for (int threads : {1, 4, 8, 16}) {
        std::vector<double> values;
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            std::vector<std::thread> running;
            const double start = now();
            for (int thread = 0; thread < threads; ++thread) {
                running.emplace_back([&] {
                    auto allocator = make();
                    for (int i = 0; i < PAIRS; ++i) pair(*allocator);
                });
            }
            for (auto& thread : running) thread.join();
            values.push_back((now() - start) / (PAIRS * threads));
        }
        print_row("m3 " + std::to_string(threads) + " threads", subject + ", wall per pair", at_percent(values, 50),
                  at_percent(values, 99), "ns");
    }
}

// M5: requests of 2 MiB and more that are refused while a tenth of the limit is free.
template <class Allocator>
void nine_tenths(const std::string& subject, Allocator& allocator, std::size_t limit) {
    Lcg random;
    std::vector<Block> live;
    std::size_t live_bytes = 0, refused = 0;
    const std::size_t most = limit / 10 * 9;
    for (int step = 0; step < 200000; ++step) {
        const std::size_t least = std::size_t{4096} << (random.draw() % 16);
        const std::size_t bytes = std::min(least + random.draw() % least, most);
        while (live_bytes + bytes > most && !live.empty()) {
            const std::size_t at = random.draw() % live.size();
            const Block block = live[at];
            live[at] = live.back();
            live.pop_back();
            allocator.release(block.at, block.bytes);
            live_bytes -= block.bytes;
        }
        void* at = allocator.allocate(bytes);
        if (at == nullptr) {
            refused += bytes >= 2 * MIB;
        } else {
            live.push_back({at, bytes});
            live_bytes += bytes;
        }
    }
    for (const Block& block : live) allocator.release(block.at, block.bytes);
    print_row("m5", subject, static_cast<double>(refused), static_cast<double>(refused), "refused");
}

// M6: kernels of one thread that spin, four on each stream; each gets 8 bytes.
template <class Make>
void overlap(const std::string& subject, Make make) {
    for (int streams : {1, 2, 4}) {
        std::vector<decltype(make())> allocators;
        for (int stream = 0; stream < streams; ++stream) allocators.push_back(make());
        auto once = [&] {
            const double start = now();
            for (int kernel = 0; kernel < 4; ++kernel) {
                for (auto& allocator : allocators) {
                    void* at = allocator->allocate(8);
                    launch_spin(at, 1000000, allocator->stream());
                    allocator->release(at, 8);
                }
            }
            for (auto& allocator : allocators) cudaStreamSynchronize(allocator->stream());
            return (now() - start) / 1e3;
        };
        once();
        std::vector<double> values;
        for (int repeat = 0; repeat < REPEATS; ++repeat) values.push_back(once());
        print_row("m6 " + std::to_string(streams) + " streams warm", subject, at_percent(values, 50), at_percent(values, 99), "us");
    }
}

}  // namespace workloads
