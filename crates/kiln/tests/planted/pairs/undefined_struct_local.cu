// A member of a struct in local memory is used that was never set. The padding of the struct is copied and is no mistake.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

struct Item { char kind; int count; short flags; long long weight; };

static __device__ __noinline__ unsigned total(Item item) {
    return item.kind + item.count + item.flags + (unsigned)item.weight; // expect: uninitialised
}

extern "C" __global__ void bug_undefined_struct_local(const unsigned* x, unsigned* y) {
    Item items[3];
    for (int i = 0; i < 3; ++i) { items[i].kind = x[i]; items[i].flags = 2; items[i].weight = i; }
    items[1].count = 1; items[2].count = 2;
    Item one = items[x[threadIdx.x] % 3]; // expect: uninitialised
    y[threadIdx.x] = total(one); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_local(const unsigned* x, unsigned* y) {
    Item items[3];
    for (int i = 0; i < 3; ++i) { items[i].kind = x[i]; items[i].flags = 2; items[i].weight = i; }
    items[0].count = 0; items[1].count = 1; items[2].count = 2;
    Item one = items[x[threadIdx.x] % 3];
    y[threadIdx.x] = total(one);
}
