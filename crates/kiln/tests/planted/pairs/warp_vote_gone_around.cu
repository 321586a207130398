// A vote in a branch names all lanes, and half of them go around it and on with the code behind it.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_warp_vote_gone_around(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t], votes = 0;
    if (t < 16) votes = __ballot_sync(0xffffffff, v & 1); // expect: mask
    y[t] = votes + v;
}

extern "C" __global__ void fixed_warp_vote_gone_around(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t], votes = 0;
    if (t < 16) votes = __ballot_sync(0x0000ffff, v & 1);
    y[t] = votes + v;
}
