// RMM's resources on the memory workloads: its pool over cudaMalloc, and cuda_async.

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#if __has_include(<rmm/mr/pool_memory_resource.hpp>)
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#else
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#endif
#include <rmm/resource_ref.hpp>

#include "workloads.hpp"

namespace {

constexpr std::size_t ALIGN = 256;

// A resource on a stream of its own.
class OnStream {
  public:
    explicit OnStream(rmm::device_async_resource_ref resource) : resource_(resource) {}

    void* allocate(std::size_t bytes) {
        try {
            return resource_.allocate(stream_.view(), bytes, ALIGN);
        } catch (const rmm::bad_alloc&) {
            return nullptr;
        }
    }

    void release(void* at, std::size_t bytes) { resource_.deallocate(stream_.view(), at, bytes, ALIGN); }

    cudaStream_t stream() const { return stream_.value(); }

    // What was free before the resource was made.
    void set_before(std::size_t free) { before_ = free; }

    // The pools give nothing back while they live, so what is missing now is the peak.
    std::size_t peak_reserved() const {
        std::size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        return before_ - std::min(free, before_);
    }

  private:
    rmm::device_async_resource_ref resource_;
    rmm::cuda_stream stream_;
    std::size_t before_ = 0;
};

// A resource that is made for one point, so that what it reserves is of that point.
template <class Resource>
struct Fresh {
    std::unique_ptr<Resource> resource;
    OnStream on_stream;

    explicit Fresh(std::unique_ptr<Resource> made) : resource(std::move(made)), on_stream(*resource) {}

    void* allocate(std::size_t bytes) { return on_stream.allocate(bytes); }
    void release(void* at, std::size_t bytes) { on_stream.release(at, bytes); }
    std::size_t peak_reserved() const { return on_stream.peak_reserved(); }
};

template <class Make>
void run(const std::string& subject, Make make) {
    auto resource = make(0);
    rmm::device_async_resource_ref reference{*resource};
    OnStream allocator{reference};
    workloads::one_thread(subject, allocator);
    workloads::many_threads(subject, [&] { return std::make_unique<OnStream>(reference); });
    workloads::overlap(subject, [&] { return std::make_unique<OnStream>(reference); });
    workloads::time_and_space(subject, [&] {
        std::size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        using Resource = typename decltype(make(0))::element_type;
        auto fresh = std::make_unique<Fresh<Resource>>(make(0));
        fresh->on_stream.set_before(free);
        return fresh;
    });
    constexpr std::size_t LIMIT = std::size_t{16} << 30;
    auto limited = make(LIMIT);
    OnStream filled{rmm::device_async_resource_ref{*limited}};
    workloads::nine_tenths(subject + ", limit of 16 GiB", filled, LIMIT);
}

}  // namespace

int main() {
    cudaFree(nullptr);
    using Cuda = rmm::mr::cuda_memory_resource;
    run("RMM pool", [](std::size_t limit) {
        using Pool = decltype(rmm::mr::pool_memory_resource{Cuda{}, std::size_t{1}});
        if (limit > 0) return std::make_unique<Pool>(Cuda{}, limit, limit);
        return std::make_unique<Pool>(Cuda{}, std::size_t{256} << 20);
    });
    run("RMM cuda_async", [](std::size_t limit) {
        // It has no limit of its own; M5 is then met from the whole device.
        (void)limit;
        return std::make_unique<rmm::mr::cuda_async_memory_resource>();
    });
    return 0;
}
