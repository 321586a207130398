//! What the documentation of the operations says, sentence by sentence, on interpreter, folded, and as PTX.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use kiln_ir::{Literal, Program, Target, ThreadOrder, Type};
use rig::{Launch, Left, interpret, simulate};

/// A program of one thread with an output of one element of a type.
fn program(ty: Type, statements: &str) -> Program {
    let text = format!("kernel one(inout y: {ty}[1]) block(1) {{ {statements} }}");
    Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What an expression of a type is, wherever it is computed.
fn value(ty: Type, statements: &str) -> Literal {
    let program = program(ty, statements);
    let size = ty.bytes() as usize;
    let launch = Launch {
        grid: [1, 1, 1],
        dynamic_shared_bytes: 0,
        scalars: Vec::new(),
        buffers: vec![vec![0; size]],
    };
    let read = |left: Left| match left {
        Left::Buffers(buffers) => {
            let mut word = [0; 8];
            word[..size].copy_from_slice(&buffers[0]);
            Literal::new(ty, u64::from_le_bytes(word))
        }
        Left::Trap { .. } => panic!("{program} trapped"),
    };
    let meaning = read(interpret(&program, &launch, ThreadOrder::Ascending).0);
    let nan = |a: Literal, b: Literal| a.ty().is_float() && a.as_float().is_nan() && b.as_float().is_nan();
    let folded = read(interpret(&program.simplified(), &launch, ThreadOrder::Ascending).0);
    assert!(folded == meaning || nan(folded, meaning), "folded {folded}, not {meaning}\n{program}");
    let left =
        simulate(&program, &launch, Target::new(75).unwrap(), 0).unwrap_or_else(|what| panic!("{what}"));
    let emitted = read(left);
    assert!(emitted == meaning || nan(emitted, meaning), "as PTX {emitted}, not {meaning}\n{program}");
    meaning
}

/// Checks lines of `expression => value`, whose types are those of the values.
fn check(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (expression, expected) = line.split_once("=>").unwrap();
        let expected = expected.trim();
        // The value itself says its type; it is read as the text form reads it.
        let word =
            ["bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64"];
        let ty = match expected {
            "true" | "false" => Type::Bool,
            _ => {
                let found =
                    word.iter().filter(|word| expected.ends_with(*word) || expected.starts_with(*word));
                let longest = found.max_by_key(|word| word.len());
                Type::from_word(longest.unwrap_or_else(|| panic!("{line}"))).unwrap()
            }
        };
        let found = value(ty, &format!("y[0] = {expression};"));
        let wanted = value(ty, &format!("y[0] = {expected};"));
        let nan = wanted.ty().is_float() && wanted.as_float().is_nan() && found.as_float().is_nan();
        assert!(found == wanted || nan, "{expression} is {found}, not {wanted}");
    }
}

#[test]
fn negation_and_magnitude_wrap() {
    check(
        "neg(-128i8) => -128i8
         neg(1u8) => 255u8
         neg(0.0f32) => -0.0f32
         abs(-128i8) => -128i8
         abs(-9223372036854775808i64) => -9223372036854775808i64
         abs(-0.0f64) => 0.0f64
         !true => false
         !5u8 => 250u8",
    );
}

#[test]
fn counts_of_bits_know_the_width() {
    check(
        "leading_zeros(0u8) => 8u32
         leading_zeros(0i64) => 64u32
         trailing_zeros(0u16) => 16u32
         trailing_zeros(0u32) => 32u32
         count_ones(-1i8) => 8u32
         reverse_bits(1i8) => -128i8
         reverse_bits(2u64) => 0x4000000000000000u64",
    );
}

#[test]
fn sums_and_products_wrap() {
    check(
        "255u8 + 1u8 => 0u8
         127i8 + 1i8 => -128i8
         0u64 - 1u64 => 18446744073709551615u64
         65535u16 * 65535u16 => 1u16
         mul_hi(255u8, 255u8) => 254u8
         mul_hi(-128i8, -128i8) => 64i8
         mul_hi(18446744073709551615u64, 18446744073709551615u64) => 18446744073709551614u64
         mul_hi(-1i64, 1i64) => -1i64",
    );
}

#[test]
fn division_is_defined_for_every_divisor() {
    check(
        "7u32 / 0u32 => 0u32
         7u32 % 0u32 => 7u32
         -7i64 / 0i64 => 0i64
         -7i64 % 0i64 => -7i64
         -128i8 / -1i8 => -128i8
         -128i8 % -1i8 => 0i8
         -9223372036854775808i64 / -1i64 => -9223372036854775808i64
         -7i32 / 2i32 => -3i32
         -7i32 % 2i32 => -1i32
         1.0f32 / 0.0f32 => f32#7f800000
         1.0f64 / -0.0f64 => f64#fff0000000000000
         0.0f32 / 0.0f32 => f32#7fc00000",
    );
}

#[test]
fn extremes_prefer_numbers_and_know_the_sign_of_zero() {
    check(
        "min(f32#7fc00000, 1.0f32) => 1.0f32
         max(1.0f16, f16#7e00) => 1.0f16
         min(0.0f64, -0.0f64) => -0.0f64
         max(-0.0f32, 0.0f32) => 0.0f32
         min(f32#7fc00000, f32#7fc00001) => f32#7fc00000
         min(-1i8, 1i8) => -1i8
         max(255u8, 1u8) => 255u8",
    );
}

#[test]
fn shifts_by_the_width_or_more_leave_the_fill() {
    check(
        "1u32 << 32u32 => 0u32
         1u8 << 8u32 => 0u8
         1u64 << 4294967295u32 => 0u64
         -8i8 >> 1u32 => -4i8
         -8i8 >> 8u32 => -1i8
         -8i64 >> 64u32 => -1i64
         8u16 >> 16u32 => 0u16
         rotate_left(0x81u8, 9u32) => 3u8
         rotate_right(1u64, 65u32) => 0x8000000000000000u64
         rotate_left(-128i8, 0u32) => -128i8",
    );
}

#[test]
fn comparisons_with_nan_hold_only_for_different() {
    check(
        "f32#7fc00000 == f32#7fc00000 => false
         f32#7fc00000 != f32#7fc00000 => true
         f64#7ff8000000000000 < 1.0f64 => false
         1.0f16 >= f16#7e00 => false
         -0.0f32 == 0.0f32 => true
         -1i8 < 1i8 => true
         255u8 < 1u8 => false
         true != false => true",
    );
}

#[test]
fn roots_and_roundings_are_exact() {
    check(
        "sqrt(-1.0f32) => f32#7fc00000
         sqrt(-0.0f64) => -0.0f64
         sqrt(2.0f32) => 1.4142135f32
         floor(-0.5f32) => -1.0f32
         ceil(-0.5f64) => -0.0f64
         trunc(-1.9f16) => -1.0f16
         round(2.5bf16) => 2.0bf16
         round(3.5f32) => 4.0f32
         fma(16777217.0f64, 16777217.0f64, -281474943156224.0f64) => 67108865.0f64",
    );
}

#[test]
fn conversions_cut_saturate_and_round_once() {
    check(
        "u8(-1i32) => 255u8
         i8(200u8) => -56i8
         i64(-1i8) => -1i64
         u64(-1i8) => 18446744073709551615u64
         i64(4294967295u32) => 4294967295i64
         i32(3.99f32) => 3i32
         i32(-3.99f32) => -3i32
         u8(300.0f32) => 255u8
         u8(-5.0f64) => 0u8
         i16(-1e9f32) => -32768i16
         i64(1e30f32) => 9223372036854775807i64
         u64(f64#7ff8000000000000) => 0u64
         i32(f16#7e00) => 0i32
         f32(16777217i32) => 16777216.0f32
         f16(100000.0f32) => f16#7c00
         bf16(16842753u32) => 16908288.0bf16
         bf16(16842752u32) => 16777216.0bf16
         f64(f32#7f800000) => f64#7ff0000000000000
         bool(f32#7fc00000) => true
         bool(-0.0f64) => false
         bool(256u16) => true
         f16(true) => 1.0f16
         u64(false) => 0u64",
    );
}

#[test]
fn bits_are_kept_by_a_bitcast() {
    check(
        "u32.from_bits(1.0f32) => 0x3f800000u32
         i8.from_bits(200u8) => -56i8
         f16.from_bits(0x3c00u16) => 1.0f16
         i64.from_bits(-0.0f64) => -9223372036854775808i64",
    );
}

#[test]
fn a_choice_and_a_builtin_are_what_they_say() {
    check(
        "select(true, 1u8, 2u8) => 1u8
         select(false, 1u8, 2u8) => 2u8
         global.x => 0u64
         block_dim.x => 1u32
         grid_dim.y => 1u32
         lane + warp + thread.z + block.y => 0u32
         len(y) => 1u64",
    );
}

#[test]
fn out_of_range_is_absorbed_whatever_the_type_of_the_index() {
    for index in ["1u8", "-1i8", "-1i16", "-1i32", "-1i64", "1u64", "18446744073709551615u64", "255u8"] {
        assert_eq!(
            value(Type::U32, &format!("y[{index}] = 5; y[0] = y[{index}] + 7u32;")),
            Literal::from(7u32)
        );
        let atomic = format!("y[0] = 3u32 + atomic_add(y[{index}], 5);");
        assert_eq!(value(Type::U32, &atomic), Literal::from(3u32));
    }
    let shared = |index: &str| {
        let text = format!(
            "kernel s(inout y: u32[1]) block(1) {{ shared t: u32[2]; t[{index}] = 9; y[0] = t[{index}] + t[0] + t[1] + 1u32; }}"
        );
        let program = Program::parse(&text).unwrap();
        let launch = Launch {
            grid: [1, 1, 1],
            dynamic_shared_bytes: 0,
            scalars: Vec::new(),
            buffers: vec![vec![0; 4]],
        };
        let (left, absorbed) = interpret(&program, &launch, ThreadOrder::Ascending);
        assert_eq!(left, Left::Buffers(vec![vec![1, 0, 0, 0]]));
        assert_eq!(simulate(&program, &launch, Target::new(90).unwrap(), 0).unwrap(), left);
        assert_eq!(absorbed, 2);
    };
    for index in ["2u8", "-1i8", "2i64", "-1i64", "4294967296u64", "18446744073709551614u64"] {
        shared(index);
    }
}

#[test]
fn a_count_ends_instead_of_wrapping_around() {
    let rounds = |head: &str| {
        value(Type::U32, &format!("var n: u32 = 0; for i in {head} {{ n = n + 1u32; }} y[0] = n;")).bits()
    };
    assert_eq!(rounds("250u8..255u8 step 2"), 3);
    assert_eq!(rounds("250u8..255u8 step 200"), 1);
    assert_eq!(rounds("126i8..127i8"), 1);
    assert_eq!(rounds("-128i8..127i8 step 100"), 3);
    assert_eq!(rounds("5u32..5u32"), 0);
    assert_eq!(rounds("6u32..5u32"), 0);
    assert_eq!(rounds("18446744073709551610u64..18446744073709551615u64 step 3"), 2);
    assert_eq!(rounds("9223372036854775800i64..9223372036854775807i64 step 5"), 2);
    // The end is taken once, before the first round.
    let text = "var end: u32 = 3; var n: u32 = 0; for i in 0..end { end = 10; n = n + 1u32; } y[0] = n;";
    assert_eq!(value(Type::U32, text), Literal::from(3u32));
}

#[test]
fn a_value_is_what_it_was_when_it_was_computed() {
    let text = "var a: u32 = 1; let before = a; a = 2; y[0] = before * 10 + a;";
    assert_eq!(value(Type::U32, text), Literal::from(12u32));
    let text = "y[0] = 5; let before = y[0]; y[0] = 7; y[0] = before + y[0];";
    assert_eq!(value(Type::U32, text), Literal::from(12u32));
}
