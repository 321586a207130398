// nvrtc: --gpu-architecture=compute_80
// Control flow that diverges.

extern "C" __global__ void divergent_loops(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r = 0;
    for (int k = 0; k < v % 17; ++k) {
        if ((k ^ v) % 5 == 0) continue;
        for (int j = k; j < 20; j += 3) {
            if (j * k > v) break;
            if (j == 13 && v % 11 == 0) {
                out[i] = -r;
                return;
            }
            r += j ^ k;
        }
        if (r > n) goto done;
        r ^= k;
    }
    r += 1000;
done:
    out[i] = r;
}

extern "C" __global__ void switch_table(const int* in, int* out) {
    int i = threadIdx.x, v = in[i], r;
    switch (v & 15) {
    case 0: r = v + 1; break;
    case 1: r = v * 3; break;
    case 2: r = v ^ 0x55; break;
    case 3: r = v - 9; // falls through
    case 4: r = v >> 2; break;
    case 5: r = -v; break;
    case 6: r = v * v; break;
    case 7: r = v | 0x100; break;
    case 8: r = v % 7; break;
    case 9: r = ~v; break;
    case 11: r = v << 3; break;
    default: r = 42;
    }
    out[i] = r;
}

extern "C" __global__ void early_exit(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i];
    if (v < 0) {
        out[i] = -1;
        return;
    }
    while (v > 9) {
        int s = 0;
        for (; v; v /= 10) s += v % 10;
        v = s;
    }
    out[i] = v;
}

// A small interpreter: every thread runs its own program.
extern "C" __global__ void interpret(const unsigned char* programs, int* out, unsigned len) {
    const unsigned char* p = programs + threadIdx.x * len;
    int stack[8], top = 0, steps = 0;
    for (unsigned pc = 0; pc < len && steps < 200; ++steps) {
        unsigned char op = p[pc++];
        if (op < 0x80) {
            stack[top++ & 7] = op;
        } else if (op < 0xa0) {
            int a = stack[--top & 7];
            int b = stack[--top & 7];
            stack[top++ & 7] = op & 1 ? a + b : op & 2 ? a - b : a * b;
        } else if (op < 0xc0) {
            if (stack[--top & 7] > 64) pc += op & 3;
        } else if (op < 0xd0) {
            pc = op & 1 ? 0 : pc;
        } else {
            stack[top & 7] = stack[(top - 1) & 7];
            ++top;
        }
    }
    out[threadIdx.x] = stack[(top - 1) & 7] + steps * 1000;
}

extern "C" __global__ void named_barriers(const int* in, int* out) {
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    if (t < 64) {
        s[t] = in[t] * 2;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[t - 64] = s[t - 64] + s[127 - t];
    }
}
