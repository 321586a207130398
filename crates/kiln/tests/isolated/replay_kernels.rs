//! Kernels of a module without variables, so that they can be done again.

/// What the kernels are written in.
pub(crate) const PTX: &str = concat!(
    include_str!("../copy.ptx"),
    include_str!("endless.ptx"),
    "
// One more than it was: done twice, it shows.
.visible .entry bump(.param .u64 at) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [at];
    ld.global.u32 %r0, [%rd0];
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0], %r0;
    ret;
}

.visible .entry sum(.param .u64 left, .param .u64 right, .param .u64 to) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [left];
    ld.param.u64 %rd1, [right];
    ld.param.u64 %rd2, [to];
    ld.global.u32 %r0, [%rd0];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r0, %r0, %r1;
    st.global.u32 [%rd2], %r0;
    ret;
}

// Writes its block, goes around for a while, and then writes an address that no block has.
.visible .entry late(.param .u64 to, .param .u32 rounds) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .reg .pred %p;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
again:
    ld.volatile.global.u32 %r0, [%rd0];
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra again;
    mov.u64 %rd1, 64;
    st.global.u32 [%rd1], %r0;
    ret;
}"
);
