//! Single instructions at the edges of what they take, against the formulas of the PTX ISA written out here.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Runs `body` in 32 threads. `%a`, `%b` and `%c` hold three words of each, `%x` the 64 bits of the first two; `%d` and `%y` are the result, of which
/// one is stored. Gives 64 bits of each thread, as they are if nothing is found.
fn run(body: &str, inputs: &[[u32; 3]]) -> Vec<u64> {
    let stored = if body.contains("%y") { "st.global.b64 [%out], %y;" } else { "st.global.b32 [%out], %d;" };
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n.reg .b32 %a, %b, %c, %d, %r<4>, %t;\n\
         .reg .f32 %f<2>;\n.reg .b64 %x, %y, %in, %out, %o;\n.reg .pred %p<4>;\nld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, 16;\nadd.u64 %in, %in, %o;\nmul.wide.u32 %o, %t, 8;\nadd.u64 %out, %out, %o;\nld.global.b32 %a, [%in];\nld.global.b32 %b, [%in+4];\n\
         ld.global.b32 %c, [%in+8];\nmov.b64 %x, {{%a, %b}};\n{body}\n{stored}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let entry = program.entry("k").unwrap();
    let mut results = Vec::new();
    for some in inputs.chunks(32) {
        let words = some.iter().flat_map(|[a, b, c]| [*a, *b, *c, 0]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let mut memory = SimpleMemory::new();
        let (from, to) = (memory.allocate_with(&bytes), memory.allocate(8 * some.len() as u64));
        let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
        let options = Options { checks: Checks::ALL, ..Options::default() };
        let shape = LaunchShape::linear(1, some.len() as u32);
        let outcome = entry.launch(&shape, &arguments, &[], &memory, &options).unwrap();
        assert!(outcome.is_clean(), "{body}: {:#?}", outcome.findings);
        let bytes = memory.read(to, 8 * some.len() as u64).unwrap();
        results.extend(bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
    }
    results
}

/// The results of one instruction whose operands are the first words alone.
fn of_words(body: &str, words: &[u32]) -> Vec<u64> {
    run(body, &words.iter().map(|word| [*word, 0, 0]).collect::<Vec<_>>())
}

#[test]
fn a_subnormal_number_is_flushed_before_it_becomes_an_integer() {
    // Upward, the smallest number above zero is one, and zero stays zero.
    let words = [1, 0x007f_ffff, 0x8000_0001, 0x0080_0000, 0x3f80_0001];
    assert_eq!(of_words("cvt.rpi.s32.f32 %d, %a;", &words), [1, 1, 0, 1, 2]);
    assert_eq!(of_words("cvt.rpi.ftz.s32.f32 %d, %a;", &words), [0, 0, 0, 1, 2]);
    let down = of_words("cvt.rmi.s32.f32 %d, %a;", &words);
    assert_eq!(down, [0, 0, 0xffff_ffff, 0, 1]);
    assert_eq!(of_words("cvt.rmi.ftz.s32.f32 %d, %a;", &words), [0, 0, 0, 0, 1]);
}

#[test]
fn tf32_is_rounded_to_the_nearest_and_away_from_zero_in_the_middle() {
    let words = [0x3f80_0fff, 0x3f80_1000, 0x3f80_1001, 0x3f80_3000, 0xbf80_1000, 0x3fff_f000, 0x0000_1000];
    let expected =
        [0x3f80_0000, 0x3f80_2000, 0x3f80_2000, 0x3f80_4000, 0xbf80_2000, 0x4000_0000, 0x0000_2000];
    assert_eq!(of_words("cvt.rna.tf32.f32 %d, %a;", &words), expected);
}

#[test]
fn a_root_just_above_a_double_is_rounded_up_to_the_next() {
    // k * k + 7 is a multiple of 2^52, so that (2^52 + k)^2 + 7 is one as well: its root lies above 2^52 + k by less than 2^-50.
    let k = 0x4_bb63_9c98_c0b5_u64;
    let whole = u128::from((1u64 << 52) + k);
    let square = whole * whole + 7;
    assert_eq!(square & ((1 << 52) - 1), 0);
    // Both as doubles from 1 to 4: the root has 52 bits of fraction, its square 104.
    let root = 1.0f64.to_bits() + k;
    let above = square >> 52;
    assert!(above < 1 << 53, "the square is below two");
    let of = 1.0f64.to_bits() + (above as u64 - (1 << 52));
    let input = [[of as u32, (of >> 32) as u32, 0]];
    for (round, expected) in [("rp", root + 1), ("rm", root), ("rz", root), ("rn", root)] {
        assert_eq!(run(&format!("sqrt.{round}.f64 %y, %x;"), &input), [expected], "{round}");
    }
    // A square itself has an exact root.
    let four = 2.25f64.to_bits();
    let input = [[four as u32, (four >> 32) as u32, 0]];
    assert_eq!(run("sqrt.rp.f64 %y, %x;", &input), [1.5f64.to_bits()]);
}

#[test]
fn the_upper_half_of_a_product_and_a_summand_stop_at_the_limits() {
    let (most, least) = (i32::MAX as u32, i32::MIN as u32);
    let inputs = [
        [most, most, most],
        [least, most, least],
        [1 << 20, 1 << 20, most],
        [1 << 20, 1 << 20, 5],
        [least, least, most - 0x4000_0000],
    ];
    let expected: Vec<u64> = inputs
        .iter()
        .map(|[a, b, c]| {
            let high = (i64::from(*a as i32) * i64::from(*b as i32)) >> 32;
            (high + i64::from(*c as i32)).clamp(i32::MIN.into(), i32::MAX.into()) as u64 & 0xffff_ffff
        })
        .collect();
    assert_eq!(expected[..3], [u64::from(most), u64::from(least), u64::from(most)]);
    assert_eq!(run("mad.hi.sat.s32 %d, %a, %b, %c;", &inputs), expected);
}

#[test]
fn widths_of_an_extension_wrap_or_stop() {
    let widths = [0, 1, 7, 8, 31, 32, 33, 40, 64];
    let inputs: Vec<[u32; 3]> =
        [0x0000_0081, 0xffff_ff7f, 0x8000_0001].iter().flat_map(|a| widths.map(|b| [*a, b, 0])).collect();
    let extended = |a: u32, width: u32, signed: bool| {
        let mut out = 0;
        for bit in 0..32 {
            let from = if bit < width { bit } else { width.saturating_sub(1) };
            let is_set = width > 0 && (bit < width || signed) && a >> from & 1 != 0;
            out |= u64::from(is_set) << bit;
        }
        out
    };
    for (ty, signed) in [("s32", true), ("u32", false)] {
        let wrapped: Vec<u64> = inputs.iter().map(|[a, b, _]| extended(*a, b % 32, signed)).collect();
        assert_eq!(run(&format!("szext.wrap.{ty} %d, %a, %b;"), &inputs), wrapped, "{ty}");
        let clamped: Vec<u64> = inputs.iter().map(|[a, b, _]| extended(*a, (*b).min(32), signed)).collect();
        assert_eq!(run(&format!("szext.clamp.{ty} %d, %a, %b;"), &inputs), clamped, "{ty}");
    }
}

#[test]
fn shuffles_take_the_lane_that_the_formula_names() {
    // The third operand holds a bound in its lowest bits, and a mask of segments above.
    let all: Vec<[u32; 3]> = (0..32).map(|lane| [lane * 3 + 1, 0, 0]).collect();
    for (mode, by, packed) in ["up", "down", "bfly", "idx"].into_iter().flat_map(|mode| {
        let packed = [0x1f, 0, 4, 0x1018, 0x1807, 0x1c04, 0x1e1f, 0x1f00];
        let by = [0, 1, 3, 5, 16, 31, 33];
        by.into_iter().flat_map(move |by| packed.map(|packed| (mode, by, packed)))
    }) {
        let expected: Vec<u64> = (0..32i32)
            .map(|lane| {
                let (by, bound, segment) = (by & 31, packed & 31, packed >> 8 & 31);
                let most = (lane & segment) | (bound & !segment);
                let least = lane & segment;
                let (from, inside) = match mode {
                    "up" => (lane - by, lane - by >= most),
                    "down" => (lane + by, lane + by <= most),
                    "bfly" => (lane ^ by, (lane ^ by) <= most),
                    _ => (least | (by & !segment), (least | (by & !segment)) <= most),
                };
                let from = if inside { from } else { lane };
                (from * 3 + 1) as u64 * 2 + u64::from(inside)
            })
            .collect();
        let body = format!(
            "shfl.sync.{mode}.b32 %d|%p0, %a, {by}, {packed}, 0xffffffff;\nselp.u32 %r0, 1, 0, %p0;\nmad.lo.u32 %d, %d, 2, %r0;"
        );
        // A width that CUDA C does not have is a note, no finding.
        assert_eq!(run(&body, &all), expected, "{mode} {by} {packed:#x}");
    }
}

#[test]
fn a_vote_is_uniform_if_all_say_the_same() {
    let votes = |of: &dyn Fn(u32) -> u32| -> Vec<[u32; 3]> { (0..32).map(|lane| [of(lane), 0, 0]).collect() };
    let ask = |mode: &str, votes: &[[u32; 3]]| {
        let body = format!(
            "setp.ne.u32 %p0, %a, 0;\nvote.sync.{mode}.pred %p1, %p0, 0xffffffff;\nselp.u32 %d, 1, 0, %p1;"
        );
        let found = run(&body, votes);
        assert!(found.iter().all(|vote| *vote == found[0]), "{mode}: {found:?}");
        found[0]
    };
    let (none, all, one) = (votes(&|_| 0), votes(&|_| 1), votes(&|lane| u32::from(lane == 9)));
    let answers = |votes: &[[u32; 3]]| ["all", "any", "uni"].map(|mode| ask(mode, votes));
    assert_eq!(answers(&none), [0, 0, 1]);
    assert_eq!(answers(&all), [1, 1, 1]);
    assert_eq!(answers(&one), [0, 1, 0]);
}

#[test]
fn a_match_of_64_bits_looks_at_all_of_them() {
    let inputs: Vec<[u32; 3]> = (0..32).map(|lane| [lane % 2, lane / 16, 0]).collect();
    let any = |same: &dyn Fn(usize, usize) -> bool| -> Vec<u64> {
        (0..32).map(|lane| (0..32).filter(|other| same(lane, *other)).map(|other| 1 << other).sum()).collect()
    };
    assert_eq!(
        run("match.any.sync.b64 %d, %x, 0xffffffff;", &inputs),
        any(&|lane, other| inputs[lane] == inputs[other])
    );
    assert_eq!(
        run("match.any.sync.b32 %d, %a, 0xffffffff;", &inputs),
        any(&|lane, other| inputs[lane][0] == inputs[other][0])
    );
    // The lower halves of all are alike, the upper ones are not.
    let upper: Vec<[u32; 3]> = (0..32).map(|lane| [7, u32::from(lane == 31), 0]).collect();
    let all = "match.all.sync.TY %d|%p0, FROM, 0xffffffff;\nselp.u32 %r0, 1, 0, %p0;\nadd.u32 %d, %d, %r0;";
    assert_eq!(run(&all.replace("TY", "b64").replace("FROM", "%x"), &upper), [0; 32]);
    // The mask of all lanes, and one for the predicate, in 32 bits.
    let and = all.replace("TY", "b32").replace("FROM", "%a").replace("add.u32", "and.b32");
    assert_eq!(run(&and, &upper), [1; 32]);
}

#[test]
fn threads_of_a_block_are_counted_along_x_then_y_then_z() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 to) { .reg .b32 %r<8>; .reg .b64 %o, %i; ld.param.u64 %o, [to];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mad.lo.u32 %r0, %r1, 1000, %r0; mad.lo.u32 %r0, %r2, 1000000, %r0;
        mov.u32 %r3, %warpid; mov.u32 %r4, %laneid; mad.lo.u32 %r4, %r3, 32, %r4; mul.wide.u32 %i, %r4, 4; add.u64 %o, %o, %i; st.global.u32 [%o], %r0; ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    for block in
        [[2, 3, 7], [1, 1, 40], [5, 2, 8], [16, 2, 3], [33, 2, 2], [3, 1, 11], [32, 1, 2], [64, 1, 3]]
    {
        let [x, y, z] = block;
        let count = x * y * z;
        let mut memory = SimpleMemory::new();
        let out = memory.allocate(4 * u64::from(count));
        for portable in [false, true] {
            let options = Options { checks: Checks::ALL, portable, ..Options::default() };
            let shape = LaunchShape::new([1; 3], block);
            let outcome = program
                .entry("k")
                .unwrap()
                .launch(&shape, &out.to_le_bytes(), &[], &memory, &options)
                .unwrap();
            assert!(outcome.is_clean(), "{block:?}: {:#?}", outcome.findings);
            let bytes = memory.read(out, 4 * u64::from(count)).unwrap();
            let found: Vec<u32> =
                bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            let wanted = |at: u32| at % x + at / x % y * 1000 + at / x / y * 1_000_000;
            assert_eq!(found, (0..count).map(wanted).collect::<Vec<u32>>(), "{block:?}");
        }
    }
}

#[test]
fn comparisons_of_halves_flush_and_those_of_shorts_know_no_sign_where_they_say_so() {
    let inputs = [[0x0001, 0x0000, 0], [0x8001, 0x0001, 0], [0x03ff, 0x0400, 0], [0x3c00, 0x0001, 0]];
    let compare = |form: &str| {
        let body = format!(
            ".reg .b16 %h<2>;\ncvt.u16.u32 %h0, %a;\ncvt.u16.u32 %h1, %b;\nsetp.{form} %p0, %h0, %h1;\nselp.u32 %d, 1, 0, %p0;"
        );
        run(&body, &inputs)
    };
    // The smallest numbers are zero of either sign where they are flushed.
    assert_eq!(compare("gt.f16"), [1, 0, 0, 1]);
    assert_eq!(compare("gt.ftz.f16"), [0, 0, 0, 1]);
    assert_eq!(compare("eq.ftz.f16"), [1, 1, 0, 0]);
    // The second pair is -32767 and 1 with a sign, and 32769 and 1 without.
    assert_eq!(compare("gt.s16"), [1, 0, 0, 1]);
    assert_eq!(compare("hi.u16"), [1, 1, 0, 1]);
    assert_eq!(compare("gt.u16"), [1, 1, 0, 1]);
}
