// A lane takes part in a vote that does not name it.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_warp_vote_unnamed_caller(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = __ballot_sync(0x0000ffff, x[t] & 1); // expect: mask
}

extern "C" __global__ void fixed_warp_vote_unnamed_caller(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = __ballot_sync(0xffffffff, x[t] & 1);
}
