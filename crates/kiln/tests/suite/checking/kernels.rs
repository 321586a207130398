//! Small kernels in PTX with known mistakes.

/// `store(data, n)` writes its index to the first n elements; `load(data, out, at)` copies element `at` of `data`, counted with a sign, to
/// `out`; `follow(list, out)` copies what the first pointer of the list points to, and `push(list)` writes there.
pub(super) const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 data, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r5, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r5;
    @%p ret;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}
.visible .entry load(.param .u64 data, .param .u64 out, .param .s32 at) {
    .reg .b32 %r<3>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [out]; ld.param.s32 %r1, [at];
    mul.wide.s32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r2, [%rd4];
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry wide(.param .u64 data, .param .u64 out) {
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [out];
    ld.global.u64 %rd3, [%rd1];
    st.global.u64 [%rd2], %rd3;
    ret;
}
.visible .entry follow(.param .u64 list, .param .u64 out) {
    .reg .b32 %r<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [list]; ld.param.u64 %rd2, [out];
    ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry push(.param .u64 list) {
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [list];
    ld.global.u64 %rd2, [%rd1];
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
";
