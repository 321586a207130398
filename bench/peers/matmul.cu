// Square matrix products by cuBLASLt (B1), measured as kiln-bench measures kiln's: with the algorithm that the library expects to be the
// fastest, and with the fastest of sixteen that it proposes.
//
//   nvcc -O3 -std=c++17 -arch=native -o matmul matmul.cu -lcublasLt

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(int status, const char* what) {
    if (status == 0) return;
    std::fprintf(stderr, "%s: %d\n", what, status);
    std::exit(1);
}

__global__ void fill(std::uint32_t* out, std::size_t words, std::uint64_t seed) {
    for (std::size_t at = blockIdx.x * std::size_t{256} + threadIdx.x; at < words; at += gridDim.x * std::size_t{256}) {
        std::uint64_t word = (at + seed) * 0x9e3779b97f4a7c15ull;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
        word = (word ^ word >> 27) * 0x94d049bb133111ebull;
        out[at] = static_cast<std::uint32_t>(word ^ word >> 31);
    }
}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Type {
    const char* name;
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    std::size_t in_bytes, out_bytes;
};

struct Product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t a, b, d;
    void *x, *y, *z, *workspace;
    std::size_t workspace_bytes;
    bool is_double;

    void call(const cublasLtMatmulAlgo_t& algorithm) const {
        const float one = 1, zero = 0;
        const double double_one = 1, double_zero = 0;
        const void* alpha = is_double ? static_cast<const void*>(&double_one) : &one;
        const void* beta = is_double ? static_cast<const void*>(&double_zero) : &zero;
        check(cublasLtMatmul(handle, description, alpha, x, a, y, b, beta, z, d, z, d, &algorithm, workspace, workspace_bytes, 0), "cublasLtMatmul");
    }

    // Nanoseconds of one product on the device, in a graph of so many.
    double device(const cublasLtMatmulAlgo_t& algorithm, int calls, int batches) const {
        cudaStream_t stream;
        check(cudaStreamCreate(&stream), "cudaStreamCreate");
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        const float one = 1, zero = 0;
        const double double_one = 1, double_zero = 0;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
        for (int each = 0; each < calls; each++)
            check(cublasLtMatmul(handle, description, is_double ? static_cast<const void*>(&double_one) : &one, x, a, y, b,
                                 is_double ? static_cast<const void*>(&double_zero) : &zero, z, d, z, d, &algorithm, workspace, workspace_bytes, stream),
                  "cublasLtMatmul");
        check(cudaStreamEndCapture(stream, &graph), "capture");
        check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
        cudaEvent_t start, end;
        check(cudaEventCreate(&start), "cudaEventCreate");
        check(cudaEventCreate(&end), "cudaEventCreate");
        check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
        std::vector<double> times;
        for (int batch = 0; batch < batches; batch++) {
            check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
            check(cudaEventRecord(start, stream), "cudaEventRecord");
            check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
            check(cudaEventRecord(end, stream), "cudaEventRecord");
            check(cudaEventSynchronize(end), "cudaEventSynchronize");
            float milliseconds;
            check(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
            times.push_back(milliseconds * 1e6 / calls);
        }
        cudaEventDestroy(start);
        cudaEventDestroy(end);
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
        cudaStreamDestroy(stream);
        return median(times);
    }

    double submission(const cublasLtMatmulAlgo_t& algorithm, int calls) const {
        using clock = std::chrono::steady_clock;
        std::vector<double> times;
        for (int batch = 0; batch < 7; batch++) {
            const auto start = clock::now();
            for (int each = 0; each < calls; each++) call(algorithm);
            times.push_back(std::chrono::duration<double, std::nano>(clock::now() - start).count() / calls);
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        }
        return median(times);
    }
};

static void row(const Type& type, int n, const char* what, const char* subject, double value) {
    std::printf("{\"workload\":\"b1.%s.%d.%s\",\"subject\":\"%s\",\"p50\":%.1f,\"p99\":%.1f,\"unit\":\"ns\"}\n", type.name, n, what, subject, value, value);
    std::fflush(stdout);
}

static void measure(cublasLtHandle_t handle, const Type& type, int n) {
    const std::size_t elements = static_cast<std::size_t>(n) * n;
    Product product{};
    product.handle = handle;
    product.is_double = type.scale == CUDA_R_64F;
    product.workspace_bytes = 32 << 20;
    check(cudaMalloc(&product.x, elements * type.in_bytes), "cudaMalloc");
    check(cudaMalloc(&product.y, elements * type.in_bytes), "cudaMalloc");
    check(cudaMalloc(&product.z, elements * type.out_bytes), "cudaMalloc");
    check(cudaMalloc(&product.workspace, product.workspace_bytes), "cudaMalloc");
    fill<<<1024, 256>>>(static_cast<std::uint32_t*>(product.x), elements * type.in_bytes / 4, 1);
    fill<<<1024, 256>>>(static_cast<std::uint32_t*>(product.y), elements * type.in_bytes / 4, 1ull << 40);
    check(cublasLtMatmulDescCreate(&product.description, type.compute, type.scale), "description");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(cublasLtMatmulDescSetAttribute(product.description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "transa");
    check(cublasLtMatrixLayoutCreate(&product.a, type.in, n, n, n), "layout");
    check(cublasLtMatrixLayoutCreate(&product.b, type.in, n, n, n), "layout");
    check(cublasLtMatrixLayoutCreate(&product.d, type.out, n, n, n), "layout");
    cublasLtMatmulPreference_t preference;
    check(cublasLtMatmulPreferenceCreate(&preference), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &product.workspace_bytes, sizeof product.workspace_bytes),
          "workspace");
    std::vector<cublasLtMatmulHeuristicResult_t> found(16);
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle, product.description, product.a, product.b, product.d, product.d, preference, 16, found.data(), &count), "heuristic");
    double first = product.device(found[0].algo, 1, 3);
    const int calls = std::clamp<int>(20e6 / first, 2, 100);
    first = product.device(found[0].algo, calls, 7);
    double best = first;
    for (int at = 1; at < count; at++) best = std::min(best, product.device(found[at].algo, std::clamp<int>(2e6 / first, 1, 50), 3));
    row(type, n, "device", "cuBLASLt", first);
    row(type, n, "device", "cuBLASLt, fastest of 16", best);
    row(type, n, "submit", "cuBLASLt", product.submission(found[0].algo, std::clamp<int>(20e6 / first, 2, 200)));
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(product.a);
    cublasLtMatrixLayoutDestroy(product.b);
    cublasLtMatrixLayoutDestroy(product.d);
    cublasLtMatmulDescDestroy(product.description);
    for (void* memory : {product.x, product.y, product.z, product.workspace}) cudaFree(memory);
}

int main() {
    const Type types[] = {
        {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 2, 2}, {"f32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 4, 4},
        {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, 4, 4}, {"f64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, 8, 8},
        {"f8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1, 2},
    };
    cublasLtHandle_t handle;
    check(cublasLtCreate(&handle), "cublasLtCreate");
    for (int n : {64, 512, 1024, 4096, 16384})
        for (const Type& type : types) measure(handle, type, n);
    return 0;
}
