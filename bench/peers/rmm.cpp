// RMM's resources on the memory workloads: its pool over cudaMalloc, bins over the pool, its arena, and cuda_async. Written
// against RMM 26.10, whose resources are values that share what they hold.

#include <rmm/cuda_stream.hpp>
#include <rmm/error.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

#include "workloads.hpp"

namespace {

constexpr std::size_t ALIGN = 256;
constexpr std::size_t GIB = std::size_t{1} << 30;

// Whether what is missing on the device is what a resource needed, or what it was told to take.
enum class Takes { as_needed, at_once };

std::size_t free_on_device() {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return free;
}

// A resource on a separate stream.
class OnStream {
  public:
    explicit OnStream(rmm::device_async_resource_ref resource) : resource_(resource) {}

    void* allocate(std::size_t bytes) {
        try {
            return resource_.allocate(cuda::stream_ref{stream_.value()}, bytes, ALIGN);
        } catch (const rmm::bad_alloc&) {
            return nullptr;
        }
    }

    void release(void* at, std::size_t bytes) noexcept {
        resource_.deallocate(cuda::stream_ref{stream_.value()}, at, bytes, ALIGN);
    }

    cudaStream_t stream() const { return stream_.value(); }

  private:
    rmm::device_async_resource_ref resource_;
    rmm::cuda_stream stream_;
};

// A resource that is made for one point, so that what it reserves is of that point.
template <class Resource>
class Fresh {
  public:
    template <class Make>
    Fresh(Make make, Takes takes)
        : takes_(takes), free_before_(free_on_device()), resource_(make(0)), on_stream_(resource_) {}

    void* allocate(std::size_t bytes) { return on_stream_.allocate(bytes); }
    void release(void* at, std::size_t bytes) { on_stream_.release(at, bytes); }

    // The pools give nothing back while they live, so what is missing now is the peak; 0 says nothing about need.
    std::size_t peak_reserved() const {
        return takes_ == Takes::at_once ? 0 : free_before_ - std::min(free_on_device(), free_before_);
    }

  private:
    Takes takes_;
    std::size_t free_before_;
    Resource resource_;
    OnStream on_stream_;
};

// `make` gives a resource with a limit in bytes; 0 is none.
template <class Make>
void run(const std::string& subject, Takes takes, Make make) {
    using Resource = decltype(make(0));
    {
        Resource resource = make(0);
        OnStream allocator{resource};
        workloads::one_thread(subject, allocator);
        workloads::many_threads(subject, [&] { return std::make_unique<OnStream>(resource); });
        workloads::overlap(subject, [&] { return std::make_unique<OnStream>(resource); });
    }
    workloads::never_repeating(subject, [&] { return std::make_unique<Fresh<Resource>>(make, takes); });
    workloads::time_and_space(subject, [&] { return std::make_unique<Fresh<Resource>>(make, takes); });
    constexpr std::size_t LIMIT = 16 * GIB;
    Resource limited = make(LIMIT);
    OnStream filled{limited};
    workloads::nine_tenths(subject + ", limit of 16 GiB", filled, LIMIT);
}

rmm::mr::pool_memory_resource pool(std::size_t limit) {
    rmm::mr::cuda_memory_resource upstream;
    if (limit > 0) return rmm::mr::pool_memory_resource{upstream, limit, limit};
    return rmm::mr::pool_memory_resource{upstream, std::size_t{256} << 20};
}

}  // namespace

int main() {
    cudaFree(nullptr);
    // A refusal is an answer here, and M5 has thousands.
    rmm::default_logger().set_level(rapids_logger::level_enum::off);
    run("RMM pool", Takes::as_needed, pool);
    run("RMM binning over pool", Takes::as_needed, [](std::size_t limit) {
        // Bins of 256 KiB to 4 MiB, as in RMM's own benchmark of random allocations.
        return rmm::mr::binning_memory_resource{pool(limit), 18, 22};
    });
    run("RMM arena", Takes::at_once, [](std::size_t limit) {
        // It takes all it may use when it is made; 32 GiB hold what M2 has live twice over.
        return rmm::mr::arena_memory_resource{rmm::mr::cuda_memory_resource{}, limit > 0 ? limit : 32 * GIB};
    });
    run("RMM cuda_async", Takes::as_needed, [](std::size_t) {
        // It has no limit; M5 is then met from the whole device.
        return rmm::mr::cuda_async_memory_resource{};
    });
    return 0;
}
