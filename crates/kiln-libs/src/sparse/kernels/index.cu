// Offsets, row numbers and column numbers of sparse matrices: from one form to another, and those of a product.
//
// INDEX: their type. A line is a row, or a column where columns are compressed. Numbers that are out of range lead to results without a meaning, but to
// no access outside of the arrays.

#include "tile.cuh"

#define THREADS 256

__device__ __forceinline__ u64 thread_number() { return blockIdx.x * (u64)THREADS + threadIdx.x; }

// How many of the sorted numbers are less than `bound`.
template <class T> __device__ __forceinline__ u64 count_less(const T* sorted, u64 n, T bound) {
    u64 first = 0, last = n;
    while (first < last) {
        const u64 middle = first + (last - first) / 2;
        if (sorted[middle] < bound) first = middle + 1;
        else last = middle;
    }
    return first;
}

// The line that an element belongs to: the last one that does not begin behind it.
__device__ __forceinline__ u64 line_of(const INDEX* offsets, u64 lines, u64 element) {
    const u64 line = count_less(offsets + 1, lines, (INDEX)(element + 1));
    return line < lines ? line : lines - 1;
}

__device__ __forceinline__ u64 cut(INDEX offset, u64 n) { return (u64)offset < n ? (u64)offset : n; }

// From where lines begin to the line of each element.
extern "C" __global__ void __launch_bounds__(THREADS) expand(const INDEX* offsets, u64 lines, u64 n, INDEX* out) {
    const u64 at = thread_number();
    if (at < n) out[at] = (INDEX)line_of(offsets, lines, at);
}

// From the line of each element, in ascending order, to where lines begin.
extern "C" __global__ void __launch_bounds__(THREADS) compress(const INDEX* sorted, u64 n, u64 lines, INDEX* offsets) {
    const u64 line = thread_number();
    if (line <= lines) offsets[line] = (INDEX)count_less(sorted, n, (INDEX)line);
}

extern "C" __global__ void __launch_bounds__(THREADS) places(u64 n, u32* out) {
    const u64 at = thread_number();
    if (at < n) out[at] = (u32)at;
}

template <class T> __device__ __forceinline__ void gather(const T* in, const u32* from, u64 n, T* out) {
    const u64 at = thread_number();
    if (at < n) out[at] = in[from[at]];
}

extern "C" __global__ void __launch_bounds__(THREADS) gather_4(const u32* in, const u32* from, u64 n, u32* out) { gather(in, from, n, out); }
extern "C" __global__ void __launch_bounds__(THREADS) gather_8(const u64* in, const u32* from, u64 n, u64* out) { gather(in, from, n, out); }

// How many terms each element of A adds to A B: the elements of one row of B. One more number is 0, for the sum of all.
extern "C" __global__ void __launch_bounds__(THREADS)
    term_counts(const INDEX* a_columns, u64 a_n, const INDEX* b_offsets, u64 b_rows, u64 b_n, u64* counts) {
    const u64 at = thread_number();
    if (at > a_n) return;
    u64 count = 0;
    if (at < a_n && (u64)a_columns[at] < b_rows) {
        const u64 row = (u64)a_columns[at], first = cut(b_offsets[row], b_n), last = cut(b_offsets[row + 1], b_n);
        count = first < last ? last - first : 0;
    }
    counts[at] = count;
}

// The place of each term of A B, row by row: row times columns, plus column. A warp for each element of A.
extern "C" __global__ void __launch_bounds__(THREADS)
    term_keys(const INDEX* a_offsets, u64 rows, const INDEX* a_columns, u64 a_n, const INDEX* b_offsets, u64 b_rows, const INDEX* b_columns,
              u64 b_n, u64 columns, const u64* starts, u64 terms, u64* keys) {
    const u64 at = thread_number() / LANES;
    if (at >= a_n || (u64)a_columns[at] >= b_rows) return;
    const u64 row = line_of(a_offsets, rows, at), inner = (u64)a_columns[at];
    const u64 first = cut(b_offsets[inner], b_n), last = cut(b_offsets[inner + 1], b_n), start = starts[at];
    for (u64 e = threadIdx.x % LANES; first + e < last && start + e < terms; e += LANES) {
        const u64 column = (u64)b_columns[first + e];
        keys[start + e] = row * columns + (column < columns ? column : columns - 1);
    }
}

// Rows and columns of places that are sorted, each there once.
extern "C" __global__ void __launch_bounds__(THREADS) key_offsets(const u64* keys, u64 n, u64 rows, u64 columns, INDEX* offsets) {
    const u64 row = thread_number();
    if (row <= rows) offsets[row] = (INDEX)(row == rows ? n : count_less(keys, n, row * columns));
}
extern "C" __global__ void __launch_bounds__(THREADS) key_columns(const u64* keys, u64 n, u64 columns, INDEX* out) {
    const u64 at = thread_number();
    if (at < n) out[at] = (INDEX)(keys[at] % columns);
}

// Says that something is wrong at a place, unless something of a smaller kind, or at a smaller place, is wrong, too. The word is zero otherwise.
__device__ __forceinline__ void report(u64* info, u64 kind, u64 at) { atomicMax(info, ~(kind << 60 | at)); }

// Offsets that do not ascend from 0 to the number of elements.
extern "C" __global__ void __launch_bounds__(THREADS) check_offsets(const INDEX* offsets, u64 lines, u64 n, u64* info) {
    const u64 at = thread_number();
    if (at > lines) return;
    const u64 offset = (u64)offsets[at];
    const bool is_wrong = offset > n || (at == 0 && offset != 0) || (at == lines && offset != n) || (at > 0 && offset < (u64)offsets[at - 1]);
    if (is_wrong) report(info, 0, at);
}
// Numbers that are not below a size.
extern "C" __global__ void __launch_bounds__(THREADS) check_range(const INDEX* indices, u64 n, u64 size, u64 kind, u64* info) {
    const u64 at = thread_number();
    if (at < n && (u64)indices[at] >= size) report(info, kind, at);
}
// Numbers that come behind a greater one.
extern "C" __global__ void __launch_bounds__(THREADS) check_order(const INDEX* indices, u64 n, u64 kind, u64* info) {
    const u64 at = thread_number();
    if (at > 0 && at < n && indices[at] < indices[at - 1]) report(info, kind, at);
}

// The same three as assertions: launched before an operation on a simulated device, where a matrix that the host does not know is checked each time. A message
// says which call and which argument it is about, at which element, and what to do.
extern "C" __device__ void __assertfail(const char* message, const char* file, u32 line, const char* function, size_t character_bytes);

#define FILE_NAME "kiln-libs/src/sparse/kernels/index.cu"
#define LOOK "; look at the matrix with check_indices"

// The call and the argument, as `device_index_check.rs` numbers them.
__device__ __noinline__ const char* subject_name(u32 subject) {
    switch (subject & 0xff) {
        case 0: return "sparse.convert: `from`";
        case 1: return "sparse.sort_coordinates: `from`";
        case 2: return "sparse.product_structure: `a`";
        case 3: return "sparse.product_structure: `b`";
        case 4: return "sparse.spgemm: `a`";
        case 5: return "sparse.spgemm: `b`";
        case 6: return "sparse.spgemm: `c`";
        default: return "sparse.triangular_solve: `a`";
    }
}
// Where the transpose is stored, its rows are columns.
__device__ __forceinline__ const char* line_name(u32 subject) { return subject & 0x100 ? " in column " : " in row "; }

struct Message {
    char text[256];
    u32 length = 0;

    __device__ __noinline__ void add(const char* part) {
        while (*part && length < sizeof text - 1) text[length++] = *part++;
        text[length] = 0;
    }
    __device__ __noinline__ void add(long long number) {
        char digits[24];
        u32 at = sizeof digits;
        digits[--at] = 0;
        u64 rest = number < 0 ? 0 - (u64)number : (u64)number;
        do digits[--at] = (char)('0' + rest % 10);
        while (rest /= 10);
        if (number < 0) digits[--at] = '-';
        add(digits + at);
    }
};

__device__ __noinline__ void fail_offset(u32 subject, u64 at, long long value, u64 n) {
    Message message;
    message.add(subject_name(subject));
    message.add(" has the offset ");
    message.add(value);
    message.add(" at ");
    message.add((long long)at);
    message.add(", with ");
    message.add((long long)n);
    message.add(" elements; let offsets ascend from 0 to the number of elements" LOOK);
    __assertfail(message.text, FILE_NAME, __LINE__, "assert_offsets", 1);
}
__device__ __noinline__ void fail_range(u32 subject, u64 at, long long value, u64 size) {
    Message message;
    message.add(subject_name(subject));
    message.add(" has element ");
    message.add((long long)at);
    message.add(line_name(subject));
    message.add(value);
    message.add(" of ");
    message.add((long long)size);
    message.add("; count from 0" LOOK);
    __assertfail(message.text, FILE_NAME, __LINE__, "assert_range", 1);
}
__device__ __noinline__ void fail_order(u32 subject, u64 at, long long value, long long before) {
    Message message;
    message.add(subject_name(subject));
    message.add(" has element ");
    message.add((long long)at);
    message.add(line_name(subject));
    message.add(value);
    message.add(" behind one");
    message.add(line_name(subject));
    message.add(before);
    message.add("; use sort_coordinates first");
    __assertfail(message.text, FILE_NAME, __LINE__, "assert_order", 1);
}

extern "C" __global__ void __launch_bounds__(THREADS) assert_offsets(const INDEX* offsets, u64 lines, u64 n, u32 subject) {
    const u64 at = thread_number();
    if (at > lines) return;
    const u64 offset = (u64)offsets[at];
    const bool is_wrong = offset > n || (at == 0 && offset != 0) || (at == lines && offset != n) || (at > 0 && offset < (u64)offsets[at - 1]);
    if (is_wrong) fail_offset(subject, at, (long long)offsets[at], n);
}
extern "C" __global__ void __launch_bounds__(THREADS) assert_range(const INDEX* indices, u64 n, u64 size, u32 subject) {
    const u64 at = thread_number();
    if (at < n && (u64)indices[at] >= size) fail_range(subject, at, (long long)indices[at], size);
}
extern "C" __global__ void __launch_bounds__(THREADS) assert_order(const INDEX* indices, u64 n, u32 subject) {
    const u64 at = thread_number();
    if (at > 0 && at < n && indices[at] < indices[at - 1]) fail_order(subject, at, (long long)indices[at], (long long)indices[at - 1]);
}
