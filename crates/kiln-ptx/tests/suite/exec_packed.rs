//! Undefined parts of packed values: each half and each byte is undefined apart.

use crate::exec_undefined::carries;

/// What is undefined of `%r2` after `code`, where bits 8 to 15 of `%r3` are undefined, and bits 24 to 31 of `%r4`.
fn result(code: &str, bits: u64) {
    let load = "ld.data.b32 %r1, [%data]; and.b32 %r3, %r1, 0xffff; shl.b32 %r4, %r1, 16;";
    carries(&format!("{load} {code} cvt.u64.u32 %rd3, %r2; st.global.b64 [%out], %rd3;"), bits);
}

const LOW: u64 = 0xffff;
const HIGH: u64 = 0xffff_0000;

#[test]
fn arithmetic_on_two_halves_keeps_them_apart() {
    for operation in [
        "add.rn.f16x2 %r2, #, %r0;",
        "add.sat.f16x2 %r2, %r0, #;",
        "sub.f16x2 %r2, %r0, #;",
        "mul.rn.ftz.f16x2 %r2, #, #;",
        "fma.rn.f16x2 %r2, %r0, %r0, #;",
        "fma.rn.relu.f16x2 %r2, #, %r0, %r0;",
        "min.f16x2 %r2, #, %r0;",
        "max.NaN.f16x2 %r2, #, %r0;",
        "neg.f16x2 %r2, #;",
        "abs.f16x2 %r2, #;",
        "ex2.approx.f16x2 %r2, #;",
        "tanh.approx.f16x2 %r2, #;",
        "add.bf16x2 %r2, #, %r0;",
        "fma.rn.bf16x2 %r2, %r0, #, %r0;",
        "max.bf16x2 %r2, #, %r0;",
        "neg.bf16x2 %r2, #;",
        "add.u16x2 %r2, #, %r0;",
        "min.s16x2 %r2, #, %r0;",
        "max.s16x2.relu %r2, #, %r0;",
        "vadd2.u32.u32.u32 %r2, #, %r0, %r1;",
        "vmax2.u32.u32.u32 %r2, #, %r0, %r0;",
        "vabsdiff2.s32.s32.s32.sat %r2, %r0, #, %r0;",
    ] {
        result(&operation.replace('#', "%r3"), LOW);
        result(&operation.replace('#', "%r4"), HIGH);
    }
}

#[test]
fn arithmetic_on_four_bytes_keeps_them_apart() {
    for operation in ["vadd4.u32.u32.u32", "vsub4.s32.s32.s32", "vmin4.u32.u32.u32", "vavrg4.u32.u32.u32"] {
        result(&format!("{operation} %r2, %r3, %r0, %r1;"), 0xff00);
        result(&format!("{operation} %r2, %r0, %r4, %r1;"), 0xff00_0000);
    }
    result("vadd4.u32.u32.u32.add %r2, %r3, %r0, %r0;", 0xffff_ffff);
    // How compilers add four bytes where there is no instruction for it.
    result(
        "and.b32 %r5, %r3, 0x7f7f7f7f; add.u32 %r5, %r5, 0x01010101; and.b32 %r6, %r3, 0x80808080; xor.b32 %r2, %r5, %r6;",
        0xff00,
    );
}

#[test]
fn comparisons_and_conversions_of_halves_keep_them_apart() {
    result("set.lt.f16x2.f16x2 %r2, %r3, %r0;", 0x3c00);
    result("set.lt.f16x2.f16x2 %r2, %r4, %r0;", 0x3c00_0000);
    result("set.lt.u32.f16x2 %r2, %r3, %r0;", LOW);
    result("set.lt.s32.bf16x2 %r2, %r4, %r0;", HIGH);
    result("setp.lt.f16x2 %p1|%p2, %r3, %r0; selp.u32 %r2, 1, 2, %p2;", 0);
    result("setp.lt.f16x2 %p1|%p2, %r3, %r0; selp.u32 %r2, 1, 2, %p1;", 3);
    result("setp.lt.bf16x2 %p1|%p2, %r4, %r0; selp.u32 %r2, 1, 2, %p1;", 0);
    result("cvt.rn.f16x2.f32 %r2, %r3, %r0;", HIGH);
    result("cvt.rn.bf16x2.f32 %r2, %r0, %r4;", LOW);
    result("cvt.pack.sat.s16.s32 %r2, %r3, %r0;", HIGH);
    result("cvt.pack.sat.u8.s32.b32 %r2, %r0, %r4, %r0;", 0xff);
    result("cvt.pack.sat.u8.s32.b32 %r2, %r0, %r0, %r3;", 0xff00_0000);
}

#[test]
fn a_zero_takes_an_undefined_byte_out_of_a_dot_product() {
    result("dp4a.u32.u32 %r2, %r3, 0x01010001, %r0;", 0);
    result("dp4a.s32.s32 %r2, %r3, 0x01010101, %r0;", 0xffff_ffff);
    result("dp2a.lo.u32.u32 %r2, %r4, 0x0001, %r0;", 0);
    result("dp2a.lo.u32.u32 %r2, %r4, 0x0100, %r0;", 0xffff_ff00);
}
