//! Results of packed arithmetic in plain integer code, whose operands come from one value.

use crate::exec_undefined::{carries, uses};

/// What is undefined of `%r2` after `code`, where all bits of `%r3` but the highest eight are undefined, and all of `%r1` but the lowest eight.
fn result(code: &str, bits: u64) {
    let load = "ld.data.b32 %r1, [%data]; prmt.b32 %r3, %r1, 0, 0x0123;";
    carries(&format!("{load} {code} cvt.u64.u32 %rd3, %r2; st.global.b64 [%out], %rd3;"), bits);
}

#[test]
fn no_borrow_leaves_a_part_of_an_average() {
    // `__vavgu4(x, 0x10101010)` and `__vavgu2`.
    let average = |mask: &str| {
        format!(
            "or.b32 %r4, %r3, 269488144; and.b32 %r5, %r3, {mask}; xor.b32 %r6, %r5, 269488144; shr.u32 %r7, %r6, 1; sub.s32 %r2, %r4, %r7;"
        )
    };
    result(&average("0xfefefefe"), 0x00ff_ffff);
    result(&(average("0xfffefffe") + "and.b32 %r2, %r2, 0xff;"), 0xff);
    result(&(average("0xfefefefe") + "shr.u32 %r2, %r2, 24;"), 0);
    // `__vavgs4`
    result(
        "and.b32 %r4, %r3, 0xfefefefe; mov.b32 %r5, 0x10101010; xor.b32 %r6, %r3, %r5; and.b32 %r7, %r3, %r5; shr.u32 %r4, %r4, 1; shr.u32 %r8, %r5, 1;
         and.b32 %r9, %r6, 0x01010101; and.b32 %r6, %r6, 0x80808080; and.b32 %r7, %r7, 0x01010101; add.u32 %r2, %r4, %r8; add.u32 %r2, %r2, %r7;
         xor.b32 %r2, %r2, %r6; shr.u32 %r7, %r2, 7; not.b32 %r7, %r7; and.b32 %r7, %r7, %r9; add.u32 %r2, %r2, %r7; shr.u32 %r2, %r2, 24;",
        0,
    );
}

#[test]
fn no_borrow_leaves_a_half_of_a_difference_or_a_negation() {
    // `__vnegss2(x) >> 16`, where the lower half is undefined.
    result(
        "shl.b32 %r3, %r1, 24; and.b32 %r10, %r1, 0xff00; or.b32 %r3, %r3, %r10; neg.s32 %r4, %r3; xor.b32 %r5, %r3, %r4; and.b32 %r6, %r5, 65536;
         sub.s32 %r7, %r6, %r3; and.b32 %r8, %r3, %r7; and.b32 %r9, %r8, -2147450880; shr.u32 %r10, %r9, 15; sub.s32 %r11, %r7, %r10; shr.u32 %r2, %r11, 16;",
        0,
    );
    // `__vabsdiffs2(x, 0x01010101) >> 16`, where the lower half is undefined.
    result(
        "shl.b32 %r3, %r1, 24; and.b32 %r10, %r1, 0xff00; or.b32 %r3, %r3, %r10; add.s32 %r6, %r3, -16843009; xor.b32 %r7, %r3, %r6; not.b32 %r8, %r7;
         and.b32 %r9, %r8, 65536; add.s32 %r10, %r9, %r6; xor.b32 %r11, %r3, 16843009; xor.b32 %r12, %r10, %r3; and.b32 %r13, %r12, %r11; xor.b32 %r4, %r13, %r10;
         prmt.b32 %r4, %r4, 0, 0xbb99; xor.b32 %r14, %r10, %r4; and.b32 %r15, %r4, 65537; add.s32 %r16, %r14, %r15; shr.u32 %r2, %r16, 16;",
        0,
    );
}

#[test]
fn a_value_less_itself_is_defined_and_two_values_are_not_taken_for_one() {
    result("sub.u32 %r2, %r1, %r1;", 0);
    result("mov.b32 %r4, %r1; xor.b32 %r2, %r4, %r1;", 0);
    result("add.u32 %r4, %r1, 3; sub.u32 %r2, %r4, %r1;", 0);
    // Two halves of one read, and two reads, are different values.
    for other in [
        "ld.data.b64 %rd1, [%data]; mov.b64 {%r4, %r5}, %rd1;",
        "ld.data.v2.b32 {%r4, %r5}, [%data];",
        "ld.data.b32 %r4, [%data]; ld.data.b32 %r5, [%data+4];",
        "ld.data.b64 %rd1, [%data]; cvt.u32.u64 %r4, %rd1; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r5, %rd2;",
    ] {
        for same in ["xor.b32 %r6, %r4, %r5;", "sub.u32 %r6, %r4, %r5;"] {
            uses(
                &format!(
                    "{other} {same} setp.eq.u32 %p1, %r6, 5; @%p1 bra L; L: st.global.b64 [%out], %rd0;"
                ),
                "bra",
            );
        }
    }
}

#[test]
fn the_highest_bit_that_is_set_may_be_defined() {
    // Above the undefined bits of `%r3` there is the defined byte 5.
    result("clz.b32 %r2, %r3;", 0);
    result("bfind.u32 %r2, %r3;", 0);
    result("bfind.s32 %r2, %r3;", 0);
    result("brev.b32 %r4, %r1; bfind.shiftamt.u32 %r2, %r4;", 0);
    result("clz.b32 %r2, %r1;", 0xffff_ffff);
    result("brev.b32 %r4, %r3; bfind.shiftamt.u32 %r2, %r4;", 0xffff_ffff);
}
