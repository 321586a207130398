//! Kernels that do what they say, and kernels that go wrong in every way there is.

/// What the kernels are written in.
pub(crate) const PTX: &str = concat!(
    include_str!("../copy.ptx"),
    include_str!("endless.ptx"),
    "
// Writes its block, and then an address that no block has.
.visible .entry illegal(.param .u64 to) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
    mov.u64 %rd1, 64;
    st.global.u32 [%rd1], %r0;
    ret;
}

.visible .entry misaligned(.param .u64 to) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
    add.s64 %rd1, %rd0, 1;
    st.global.u32 [%rd1], %r0;
    ret;
}

.visible .entry traps(.param .u64 to) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [to];
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
    trap;
    ret;
}

.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 text[6] = {102, 97, 108, 115, 101, 0};

.visible .entry asserts(.param .u64 to) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    mov.u32 %r1, 1;
    {
        .param .b64 message;
        .param .b64 file;
        .param .b32 line;
        .param .b64 function;
        .param .b64 size;
        st.param.b64 [message+0], %rd1;
        st.param.b64 [file+0], %rd1;
        st.param.b32 [line+0], %r1;
        st.param.b64 [function+0], %rd1;
        st.param.b64 [size+0], 1;
        call.uni __assertfail, (message, file, line, function, size);
    }
    ret;
}

// Writes its block, a word far from it that is not its own, and then an address that no block has.
.visible .entry wild(.param .u64 to, .param .u32 words) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r1, [words];
    mul.wide.s32 %rd1, %r1, 4;
    add.s64 %rd1, %rd0, %rd1;
    mov.u32 %r0, 77;
    st.global.u32 [%rd0], %r0;
    st.global.u32 [%rd1], %r0;
    membar.sys;
    mov.u64 %rd2, 64;
    st.global.u32 [%rd2], %r0;
    ret;
}"
);
