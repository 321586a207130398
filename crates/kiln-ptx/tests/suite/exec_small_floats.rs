//! Conversions from and to pairs of 4-bit and 6-bit floats and of scales, against tables of their values.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

const BLACKWELL: &str = ".version 8.7\n.target sm_100a";

/// A kernel in which each thread loads `%a` and `%b` (singles, as bits), runs `instruction` and stores `%d`.
fn kernel(header: &str, instruction: &str) -> String {
    format!(
        "{header}\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n.reg .b8 %small, %other;\n.reg .b16 %h;\n.reg .b32 %a, %b, %d, %t, %n;\n\
         .reg .b64 %in, %out, %at;\nld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ctaid.x;\nmad.lo.u32 %t, %n, 128, %t;\n\
         mul.wide.u32 %at, %t, 8;\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %out, %out, %at;\n\
         ld.global.u32 %a, [%in];\nld.global.u32 %b, [%in+4];\n{instruction}\nst.global.u32 [%out], %d;\nret;\n}}\n"
    )
}

/// What the instruction gives for each pair, or the first finding.
fn run(header: &str, instruction: &str, pairs: &[[u32; 2]]) -> Result<Vec<u32>, String> {
    let module = PtxModule::parse(&kernel(header, instruction)).map_err(|error| error.to_string())?;
    let mut bytes: Vec<u8> = pairs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let blocks = pairs.len().div_ceil(128);
    bytes.resize(blocks * 128 * 8, 0);
    let mut memory = SimpleMemory::new();
    let (from, to) = (memory.allocate_with(&bytes), memory.allocate(blocks as u64 * 512));
    let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(blocks as u32, 128);
    let program = ExecProgram::new(module);
    let entry = program.entry("k").unwrap();
    let outcome =
        entry.launch(&shape, &arguments, &[], &memory, &options).map_err(|error| error.to_string())?;
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => {
            let words = memory.read(to, 4 * pairs.len() as u64).unwrap();
            Ok(words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
        }
    }
}

/// A format without infinity and NaN, by the values of its codes without a sign.
struct Table {
    name: &'static str,
    /// Bits of a code, and of what it takes in a pair.
    bits: u32,
    room: u32,
    values: Vec<f64>,
}

fn tables() -> [Table; 3] {
    let e2m1 = vec![0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    // Subnormal numbers count eighths; then 1 to 1.875, 2 to 3.75 and 4 to 7.5.
    let e2m3 = (0..32).map(|code: i32| match code / 8 {
        0 => f64::from(code) / 8.0,
        power => f64::from(8 + code % 8) / 8.0 * f64::from(1 << (power - 1)),
    });
    // Subnormal numbers count sixteenths; then from 0.25 on to 28.
    let e3m2 = (0..32).map(|code: i32| match code / 4 {
        0 => f64::from(code) / 16.0,
        power => f64::from(4 + code % 4) / 4.0 * f64::from(1 << power) / 8.0,
    });
    [
        Table { name: "e2m1", bits: 4, room: 4, values: e2m1 },
        Table { name: "e2m3", bits: 6, room: 8, values: e2m3.collect() },
        Table { name: "e3m2", bits: 6, room: 8, values: e3m2.collect() },
    ]
}

impl Table {
    /// The code nearest to a number, even among equals; what is too large becomes the largest, and NaN the largest without a sign.
    fn code(&self, x: f64, relu: bool) -> u32 {
        let largest = self.values.len() as u32 - 1;
        if x.is_nan() {
            return largest;
        }
        if relu && x.is_sign_negative() {
            return 0;
        }
        let magnitude = x.abs().min(self.values[largest as usize]);
        let distance = |code: u32| (self.values[code as usize] - magnitude).abs();
        let nearest = (0..=largest)
            .min_by(|one, two| distance(*one).total_cmp(&distance(*two)).then((one % 2).cmp(&(two % 2))));
        nearest.unwrap() | u32::from(x.is_sign_negative()) << (self.bits - 1)
    }

    fn value(&self, code: u32) -> f64 {
        let sign = 1 << (self.bits - 1);
        let magnitude = self.values[(code & (sign - 1)) as usize];
        if code & sign != 0 { -magnitude } else { magnitude }
    }
}

/// Singles at, between and beside all values of a table, and odd ones.
fn singles(table: &Table) -> Vec<f32> {
    let mut all =
        vec![0.0, f32::MIN_POSITIVE, 1e-45, 1e30, f32::MAX, f32::INFINITY, f32::NAN, 0.1, 5.5, 29.0];
    let values: Vec<f32> = table.values.iter().map(|value| *value as f32).collect();
    all.extend(&values);
    for pair in values.windows(2) {
        let between = f32::midpoint(pair[0], pair[1]);
        all.extend([between, between.next_up(), between.next_down()]);
    }
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

/// The bits of a half that is zero or a normal number.
fn half(x: f64) -> u32 {
    let sign = u32::from(x.is_sign_negative()) << 15;
    if x == 0.0 {
        return sign;
    }
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32 - 1023 + 15;
    assert!((1..31).contains(&exponent) && bits & ((1 << 42) - 1) == 0, "{x} is no normal half");
    sign | (exponent as u32) << 10 | (bits >> 42 & 0x3ff) as u32
}

#[test]
fn pairs_of_small_floats_are_the_nearest_values() {
    for table in tables() {
        let numbers = singles(&table);
        let pairs: Vec<[u32; 2]> =
            numbers.iter().zip(numbers.iter().rev()).map(|(a, b)| [a.to_bits(), b.to_bits()]).collect();
        for relu in [false, true] {
            let (word, name) = (if relu { ".relu" } else { "" }, table.name);
            let stored = match table.room {
                4 => ("%small", "cvt.u32.u8 %d, %small;"),
                _ => ("%h", "cvt.u32.u16 %d, %h;"),
            };
            let instruction =
                format!("cvt.rn.satfinite{word}.{name}x2.f32 {}, %a, %b;\n{}", stored.0, stored.1);
            let results = run(BLACKWELL, &instruction, &pairs).unwrap();
            for ([a, b], result) in pairs.iter().zip(results) {
                let [high, low] = [a, b].map(|bits| table.code(f32::from_bits(*bits).into(), relu));
                let (a, b) = (f32::from_bits(*a), f32::from_bits(*b));
                assert_eq!(result, high << table.room | low, "{instruction} of {a} and {b}");
            }
        }
    }
}

#[test]
fn small_floats_become_halves_as_they_are() {
    for table in tables() {
        let codes = 1 << table.bits;
        let pairs: Vec<[u32; 2]> =
            (0..codes * codes).map(|at| [((at / codes) << table.room) | (at % codes), 0]).collect();
        let load = match table.room {
            4 => "cvt.u8.u32 %small, %a;",
            _ => "cvt.u16.u32 %h, %a;",
        };
        let from = if table.room == 4 { "%small" } else { "%h" };
        for relu in [false, true] {
            let word = if relu { ".relu" } else { "" };
            let instruction = format!("{load}\ncvt.rn{word}.f16x2.{}x2 %d, {from};", table.name);
            let results = run(BLACKWELL, &instruction, &pairs).unwrap();
            let value = |code: u32| {
                let value = table.value(code);
                half(if relu && value.is_sign_negative() { 0.0 } else { value })
            };
            for (at, result) in (0..codes * codes).zip(results) {
                assert_eq!(result, value(at / codes) << 16 | value(at % codes), "{instruction} of {at:#x}");
            }
        }
    }
}

#[test]
fn halves_become_pairs_of_4_bits() {
    let [table, ..] = tables();
    let values = [0.0, 0.25, 0.75, -0.75, 1.25, 1.75, 2.5, -3.5, 5.0, 5.5, 6.0, -7.0, 1024.0];
    let mut halves: Vec<(u32, f64)> = values.iter().map(|x| (half(*x), *x)).collect();
    halves.extend([(0x7c00, f64::INFINITY), (0xfc00, f64::NEG_INFINITY), (0x7e00, f64::NAN)]);
    let pairs: Vec<[u32; 2]> =
        halves.iter().flat_map(|a| halves.iter().map(|b| [a.0 << 16 | b.0, 0])).collect();
    let instruction = "cvt.rn.satfinite.e2m1x2.f16x2 %small, %a;\ncvt.u32.u8 %d, %small;";
    let results = run(BLACKWELL, instruction, &pairs).unwrap();
    let expected = halves.iter().flat_map(|a| {
        let table = &table;
        halves.iter().map(move |b| table.code(a.1, false) << 4 | table.code(b.1, false))
    });
    assert_eq!(results, expected.collect::<Vec<u32>>());
}

/// The scale of a single: the power of two below its magnitude or, rounded up, above it.
fn scale(x: f32, up: bool, satfinite: bool) -> u32 {
    let beyond = if satfinite { 254 } else { 255 };
    let x = f64::from(x).abs();
    if x.is_nan() {
        return 255;
    }
    let power = |code: u32| 2f64.powi(code as i32 - 127);
    match (x.is_infinite(), up) {
        (true, _) => beyond,
        (_, true) => (0..=254).find(|code| power(*code) >= x).unwrap_or(beyond),
        (_, false) => (0..=254).rev().find(|code| power(*code) <= x).unwrap_or(0),
    }
}

#[test]
fn scales_are_the_power_of_two_below_or_above() {
    let mut numbers: Vec<f32> = (-149..128).map(|power| 2f64.powi(power) as f32).collect();
    numbers = numbers.iter().flat_map(|x| [*x, x.next_up(), x.next_down(), -x, x * 1.5]).collect();
    numbers.extend([0.0, -0.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    let pairs: Vec<[u32; 2]> =
        numbers.iter().zip(numbers.iter().rev()).map(|(a, b)| [a.to_bits(), b.to_bits()]).collect();
    for (rounding, up) in [("rz", false), ("rp", true)] {
        for satfinite in [false, true] {
            let word = if satfinite { ".satfinite" } else { "" };
            let instruction = format!("cvt.{rounding}{word}.ue8m0x2.f32 %h, %a, %b;\ncvt.u32.u16 %d, %h;");
            let results = run(BLACKWELL, &instruction, &pairs).unwrap();
            let both = |[a, b]: &[u32; 2]| {
                let [a, b] = [*a, *b].map(|bits| scale(f32::from_bits(bits), up, satfinite));
                a << 8 | b
            };
            for (pair, result) in pairs.iter().zip(results) {
                assert_eq!(result, both(pair), "{instruction} of {:?}", pair.map(f32::from_bits));
            }
            // The upper halves alone, as `bf16`.
            let packed: Vec<[u32; 2]> = pairs.iter().map(|[a, b]| [(a & 0xffff_0000) | b >> 16, 0]).collect();
            let instruction = format!("cvt.{rounding}{word}.ue8m0x2.bf16x2 %h, %a;\ncvt.u32.u16 %d, %h;");
            let results = run(BLACKWELL, &instruction, &packed).unwrap();
            for ([pair, _], result) in packed.iter().zip(results) {
                let expected = both(&[pair & 0xffff_0000, pair << 16]);
                assert_eq!(result, expected, "{instruction} of {pair:#x}");
            }
        }
    }
}

#[test]
fn scales_become_powers_of_two() {
    let pairs: Vec<[u32; 2]> = (0..256).map(|code| [code << 8 | (255 - code), 0]).collect();
    let instruction = "cvt.u16.u32 %h, %a;\ncvt.rn.bf16x2.ue8m0x2 %d, %h;";
    let results = run(BLACKWELL, instruction, &pairs).unwrap();
    let brain = |code: u32| match code {
        255 => 0x7fff,
        _ => (2f64.powi(code as i32 - 127) as f32).to_bits() >> 16,
    };
    for (code, result) in (0..256).zip(results) {
        assert_eq!(result, brain(code) << 16 | brain(255 - code), "{code}");
    }
}

const SMALL: &str = "cvt.rn.satfinite.e2m1x2.f32 %small, %a, %b;\ncvt.u32.u8 %d, %small;";

#[test]
fn architectures_without_small_floats_are_told_which_have_them() {
    let told = |header: &str, instruction: &str| run(header, instruction, &[[0, 0]]).unwrap_err();
    for (header, instruction, said) in [
        (".version 8.6\n.target sm_90", SMALL, "requires PTX 8.6 and sm_100a to sm_121a"),
        (".version 8.7\n.target sm_120", SMALL, "requires PTX 8.6 and sm_100a to sm_121a"),
        (
            ".version 8.7\n.target sm_100",
            "cvt.rz.ue8m0x2.f32 %h, %a, %b;\nmov.u32 %d, 0;",
            "requires PTX 8.6 and sm_100a to sm_121a",
        ),
        (
            ".version 8.8\n.target sm_120a",
            "cvt.rs.f16x2.f32 %d, %a, %b, %t;",
            "requires PTX 8.7 and sm_100a or sm_103a",
        ),
        (
            ".version 8.6\n.target sm_100a",
            "cvt.rs.satfinite.bf16x2.f32 %d, %a, %b, %t;",
            "requires PTX 8.7 and sm_100a or sm_103a",
        ),
    ] {
        let text = told(header, instruction);
        assert!(text.contains(said), "{text}");
    }
    for target in ["sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "sm_120f"] {
        assert_eq!(
            run(&format!(".version 9.0\n.target {target}"), SMALL, &[[0, 0]]),
            Ok(vec![0]),
            "{target}"
        );
    }
}

#[test]
fn random_rounding_is_not_executed_and_says_so() {
    for instruction in [
        "cvt.rs.f16x2.f32 %d, %a, %b, %t;",
        "cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %b, %a, %b}, %t;",
        "cvt.rs.satfinite.e2m3x4.f32 %d, {%a, %b, %a, %b}, %t;",
    ] {
        let text = run(BLACKWELL, instruction, &[[0, 0]]).unwrap_err();
        let name = instruction.split_once(' ').unwrap().0;
        assert!(text.contains("not") && text.contains(name), "{text}");
    }
}

#[test]
fn words_that_small_floats_do_not_take_are_told() {
    for (instruction, said) in [
        ("cvt.rn.e2m1x2.f32 %small, %a, %b;", "needs `.satfinite`"),
        ("cvt.rz.satfinite.e2m3x2.f32 %h, %a, %b;", "needs `.rn`"),
        ("cvt.rn.satfinite.e3m2x2.f16x2 %h, %a;", "which PTX does not have"),
        ("cvt.rn.bf16x2.e2m1x2 %d, %small;", "which PTX does not have"),
        ("cvt.rn.ue8m0x2.f32 %h, %a, %b;", "needs `.rz` or `.rp`"),
        ("cvt.rz.relu.ue8m0x2.f32 %h, %a, %b;", "a scale has no sign"),
        ("cvt.rn.satfinite.bf16x2.ue8m0x2 %d, %h;", "every value fits"),
        ("cvt.rz.ue8m0x2.f16x2 %h, %a;", "which PTX does not have"),
    ] {
        let text = run(BLACKWELL, instruction, &[[0, 0]]).unwrap_err();
        assert!(text.contains(said), "{instruction}: {text}");
    }
}

/// Every bf16 to a byte and back: the judge is the rounding of f64, with values past the range clamped and zero for what is no number.
#[test]
fn bytes_are_made_of_bf16_and_bf16_of_bytes() {
    let header = ".version 8.0\n.target sm_90";
    let pairs: Vec<[u32; 2]> = (0..=0xffff).map(|bits| [bits, 0]).collect();
    let rounds = ["rni", "rzi", "rmi", "rpi"];
    let round = |value: f64, rounding: &str| match rounding {
        "rni" => value.round_ties_even(),
        "rzi" => value.trunc(),
        "rmi" => value.floor(),
        _ => value.ceil(),
    };
    for rounding in rounds {
        for (kind, low, high) in [("s8", -128.0, 127.0), ("u8", 0.0, 255.0)] {
            let widened = kind.replace('8', "32");
            let instruction = format!(
                "cvt.u16.u32 %h, %a;\ncvt.{rounding}.{kind}.bf16 %small, %h;\ncvt.{widened}.{kind} %d, %small;"
            );
            let answers = run(header, &instruction, &pairs).unwrap();
            for (bits, answer) in (0_u32..).zip(answers) {
                let value = f64::from(f32::from_bits(bits << 16));
                let wanted = if value.is_nan() { 0.0 } else { round(value, rounding).clamp(low, high) };
                assert_eq!(f64::from(answer as i32), wanted, "{rounding} {kind} of {value} ({bits:#x})");
            }
        }
    }
    let bytes: Vec<[u32; 2]> = (0..=0xff).map(|bits| [bits, 0]).collect();
    for kind in ["s8", "u8"] {
        let instruction =
            format!("cvt.u8.u32 %small, %a;\ncvt.rn.bf16.{kind} %h, %small;\ncvt.u32.u16 %d, %h;");
        for (bits, answer) in (0_u8..=255).zip(run(header, &instruction, &bytes).unwrap()) {
            let value = if kind == "s8" { f32::from(bits.cast_signed()) } else { f32::from(bits) };
            assert_eq!(f32::from_bits(answer << 16), value, "{kind} {bits}");
        }
    }
}
