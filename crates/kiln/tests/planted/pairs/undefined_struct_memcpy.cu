// A struct is copied out with memcpy, and one of its members was never set. Its padding is copied too, and no thread uses it.
// launch: grid 1 block 1
// args: in u32 32; out u32 64; returned u32 1

struct Item { char kind; int count; short flags; long long weight; };

extern "C" __global__ void bug_undefined_struct_memcpy(const unsigned* x, Item* z, unsigned* y) {
    Item items[3];
    for (int i = 0; i < 3; ++i) { items[i].kind = x[i]; items[i].count = i; items[i].weight = i; }
    memcpy(z, &items[x[1]], sizeof(Item)); // expect: uninitialised
    __threadfence();
    y[0] = *(volatile short*)&z[0].flags + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_memcpy(const unsigned* x, Item* z, unsigned* y) {
    Item items[3];
    for (int i = 0; i < 3; ++i) { items[i].kind = x[i]; items[i].count = i; items[i].flags = 3; items[i].weight = i; }
    memcpy(z, &items[x[1]], sizeof(Item));
    __threadfence();
    y[0] = *(volatile short*)&z[0].flags + 1;
}
