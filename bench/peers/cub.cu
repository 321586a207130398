// CUB's device-wide reduce, scan and sort of 32-bit integers (P1 to P3), measured as kiln-bench measures kiln's: from the first call of a
// batch to the end of its work. Temporary memory is allocated once, before.
//
//   nvcc -O3 -std=c++17 -arch=native -o cub cub.cu

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

__global__ void fill(std::uint32_t* out, std::size_t n) {
    for (std::size_t at = blockIdx.x * std::size_t{256} + threadIdx.x; at < n; at += gridDim.x * std::size_t{256}) {
        std::uint64_t word = (at + 1) * 0x9e3779b97f4a7c15ull;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
        word = (word ^ word >> 27) * 0x94d049bb133111ebull;
        out[at] = static_cast<std::uint32_t>(word ^ word >> 31);
    }
}

static double at_percent(std::vector<double> values, std::size_t percent) {
    std::sort(values.begin(), values.end());
    return values[(values.size() - 1) * percent / 100];
}

// `operation` is called with temporary memory, or with none to learn how much it needs, as CUB has it.
template <class Operation> void measure(const char* workload, int power, int batch, int batches, Operation operation) {
    using clock = std::chrono::steady_clock;
    std::size_t bytes = 0;
    check(operation(nullptr, bytes), workload);
    void* temporary = nullptr;
    check(cudaMalloc(&temporary, bytes), "cudaMalloc");
    for (int warm = 0; warm < 2; warm++) check(operation(temporary, bytes), workload);
    check(cudaDeviceSynchronize(), workload);
    std::vector<double> values;
    for (int b = 0; b < batches; b++) {
        const auto start = clock::now();
        for (int each = 0; each < batch; each++) check(operation(temporary, bytes), workload);
        check(cudaStreamSynchronize(0), workload);
        values.push_back(std::chrono::duration<double, std::nano>(clock::now() - start).count() / batch);
    }
    std::printf("{\"workload\":\"%s.%d\",\"subject\":\"CUB\",\"p50\":%.3f,\"p99\":%.3f,\"unit\":\"ns\"}\n", workload, power,
                at_percent(values, 50), at_percent(values, 99));
    std::fflush(stdout);
    check(cudaFree(temporary), "cudaFree");
}

int main() {
    const int sizes[2][3] = {{20, 50, 40}, {28, 5, 20}};
    for (const auto& size : sizes) {
        const int power = size[0], batch = size[1], batches = size[2], n = 1 << power;
        std::uint32_t *in = nullptr, *out = nullptr;
        check(cudaMalloc(&in, sizeof(std::uint32_t) * n), "cudaMalloc");
        check(cudaMalloc(&out, sizeof(std::uint32_t) * n), "cudaMalloc");
        fill<<<1024, 256>>>(in, n);
        measure("p1", power, batch, batches, [=](void* temporary, std::size_t& bytes) { return cub::DeviceReduce::Sum(temporary, bytes, in, out, n); });
        measure("p2", power, batch, batches,
                [=](void* temporary, std::size_t& bytes) { return cub::DeviceScan::ExclusiveSum(temporary, bytes, in, out, n); });
        measure("p3", power, batch, batches,
                [=](void* temporary, std::size_t& bytes) { return cub::DeviceRadixSort::SortKeys(temporary, bytes, in, out, n); });
        check(cudaFree(in), "cudaFree");
        check(cudaFree(out), "cudaFree");
    }
    return 0;
}
