// Structs are copied from one array to the next by whole words; one member was never set and is used.
// launch: grid 1 block 32
// args: out u32 64; out u32 64; returned u32 32

struct Item { char kind; int count; };

static __device__ __noinline__ void set(Item* item, int count) { item->kind = 1; if (count != 7) item->count = count; }
static __device__ __noinline__ void set_all(Item* item, int count) { item->kind = 1; item->count = count; }

extern "C" __global__ void bug_undefined_struct_global(Item* a, Item* b, unsigned* y) {
    unsigned t = threadIdx.x;
    set(&a[t], t);
    b[t] = a[t]; // expect: uninitialised
    y[t] = ((volatile Item*)b)[t].count + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_global(Item* a, Item* b, unsigned* y) {
    unsigned t = threadIdx.x;
    set_all(&a[t], t);
    b[t] = a[t];
    y[t] = ((volatile Item*)b)[t].count + 1;
}
