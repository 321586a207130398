// PyTorch's caching allocator on the memory workloads.

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "workloads.hpp"

namespace caching = c10::cuda::CUDACachingAllocator;

namespace {

class Caching {
  public:
    Caching() : stream_(c10::cuda::getStreamFromPool()) {}

    void* allocate(std::size_t bytes) {
        try {
            return caching::raw_alloc_with_stream(bytes, stream_);
        } catch (const c10::OutOfMemoryError&) {
            return nullptr;
        }
    }

    void release(void* at, std::size_t) { caching::raw_delete(at); }

    cudaStream_t stream() const { return stream_; }

    std::size_t peak_reserved() const {
        return static_cast<std::size_t>(caching::getDeviceStats(0).reserved_bytes[0].peak);
    }

  private:
    c10::cuda::CUDAStream stream_;
};

std::unique_ptr<Caching> fresh() {
    caching::emptyCache();
    caching::resetPeakStats(0);
    return std::make_unique<Caching>();
}

}  // namespace

int main() {
    const std::string subject = "PyTorch caching allocator";
    if (c10::cuda::device_count() == 0) {
        std::puts("absent: PyTorch finds no device");
        return 0;
    }
    c10::cuda::set_device(0);
    caching::init(c10::cuda::device_count());
    Caching allocator;
    workloads::one_thread(subject, allocator);
    workloads::never_repeating(subject, fresh);
    workloads::time_and_space(subject, fresh);
    workloads::many_threads(subject, [] { return std::make_unique<Caching>(); });
    constexpr std::size_t LIMIT = std::size_t{16} << 30;
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    auto filled = fresh();
    caching::setMemoryFraction(static_cast<double>(LIMIT) / static_cast<double>(total), 0);
    workloads::nine_tenths(subject + ", limit of 16 GiB", *filled, LIMIT);
    caching::setMemoryFraction(1.0, 0);
    fresh();
    workloads::overlap(subject, [] { return std::make_unique<Caching>(); });
    return 0;
}
