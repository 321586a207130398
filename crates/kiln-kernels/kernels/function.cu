// nvrtc: --gpu-architecture=compute_80
// Device functions: templates, recursion, pointers, virtual calls.

struct Sum { template <class T> static __device__ T apply(T a, T b) { return a + b; } };
struct Largest { template <class T> static __device__ T apply(T a, T b) { return a > b ? a : b; } };

template <class T, class Op>
__device__ void fold(const T* in, T* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    T v = in[i * n];
    for (unsigned k = 1; k < n; ++k) v = Op::apply(v, in[i * n + k]);
    out[i] = v;
}

template <class T, class Op>
__global__ void fold_rows(const T* in, T* out, unsigned n) { fold<T, Op>(in, out, n); }

template __global__ void fold_rows<int, Sum>(const int*, int*, unsigned);
template __global__ void fold_rows<double, Largest>(const double*, double*, unsigned);
template __global__ void fold_rows<unsigned char, Largest>(const unsigned char*, unsigned char*, unsigned);

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void fibonacci_all(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void ackermann_all(unsigned* out) { out[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 5); }

__device__ __noinline__ void quicksort(int* a, int lo, int hi) {
    if (lo >= hi) return;
    int pivot = a[(lo + hi) / 2], i = lo, j = hi;
    while (i <= j) {
        while (a[i] < pivot) ++i;
        while (a[j] > pivot) --j;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quicksort(a, lo, j);
    quicksort(a, i, hi);
}

extern "C" __global__ void quicksort_rows(int* data, int n) { quicksort(data + (blockIdx.x * blockDim.x + threadIdx.x) * n, 0, n - 1); }

struct Triple { int x; double y; short z[3]; };

__device__ __noinline__ Triple twist(Triple t, int by) {
    Triple r;
    r.x = t.z[by % 3] + by;
    r.y = t.x * 0.5 + t.y;
    r.z[0] = (short)t.y;
    r.z[1] = t.z[0];
    r.z[2] = t.z[1];
    return r;
}

extern "C" __global__ void pass_struct(Triple start, double* out) {
    Triple t = start;
    for (int k = 0; k <= (int)threadIdx.x % 7; ++k) t = twist(t, k + threadIdx.x);
    out[threadIdx.x] = t.x + t.y + t.z[0] * 3 + t.z[1] * 5 + t.z[2] * 7;
}

typedef int (*Step)(int);
__device__ __noinline__ int half_of(int n) { return n / 2; }
__device__ __noinline__ int triple_of(int n) { return 3 * n + 1; }
__device__ __noinline__ int square_of(int n) { return n * n; }
__device__ Step steps[3] = {half_of, triple_of, square_of};

extern "C" __global__ void call_table(const int* in, const int* which, int* out) {
    unsigned i = threadIdx.x;
    out[i] = steps[which[i]](in[i]);
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Rectangle : Shape {
    float w, h;
    __device__ Rectangle(float a, float b) : w(a), h(b) {}
    __device__ float area() const override { return w * h; }
};

extern "C" __global__ void virtual_areas(const float* in, float* out) {
    float v = in[threadIdx.x];
    Square square(v);
    Rectangle rectangle(v, 3.0f);
    const Shape* shape = threadIdx.x & 1 ? (const Shape*)&square : (const Shape*)&rectangle;
    out[threadIdx.x] = shape->area();
}
