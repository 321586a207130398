//! Tests of one instruction on many operands, compared with recorded results of a GPU.
//!
//! A kernel tests what a compiler emits; a probe tests one instruction in every form, with zeros, infinities, NaN,
//! subnormal numbers and the limits of integers among its operands. The results of an H200 are kept beside the table,
//! so that a machine without a GPU can be held against it.

use std::fmt::Write;

use crate::seeded_inputs::Random;

/// The registers of an operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
    /// A truth value; only as a result.
    Truth,
}

impl Class {
    /// Bytes of a recorded result.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Truth => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// What the bits of operands mean, which decides what odd values are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Integers.
    Integer,
    /// `f16`, one or two.
    Half,
    /// `bf16`, one or two.
    Brain,
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

/// One instruction in one form.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The instruction, or a few, with `$d` for its result and `$a`, `$b`, `$c` for its operands. `%out` is the address of
    /// eight bytes of global memory that belong to the thread, `%cell` of eight bytes of shared memory. `%t0` to `%t3` are
    /// spare registers of 16 bits.
    pub text: String,
    /// Its result.
    pub result: Class,
    /// Its operands.
    pub operands: Vec<Class>,
    /// What the operands are.
    pub meaning: Meaning,
    /// How far a result may be from the recorded one, as a part of its magnitude; `None` for not at all.
    pub close: Option<f64>,
    /// The magnitude below which the distance counts as if it were this.
    pub floor: f64,
}

impl Probe {
    /// Threads, and sets of operands, of every probe.
    pub const COUNT: usize = 96;

    /// The operands of all threads: three times 64 bits each.
    pub fn inputs(&self) -> Vec<[u64; 3]> {
        let seed =
            self.text.bytes().fold(0u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mut random = Random::new(seed);
        (0..Self::COUNT)
            .map(|at| {
                let (odd, nans) = (odd_values(self.meaning), nans(self.meaning));
                std::array::from_fn(|operand| match (at, random.within(0, 3)) {
                    // The first threads try every odd value against others, the next ones NaN in every combination.
                    (0..32, _) => odd[(at + operand * (at / 8 + 5)) % odd.len()],
                    (32..46, _) if !nans.is_empty() && (at - 31) >> operand & 1 != 0 => {
                        nans[(at / 7 + operand) % nans.len()]
                    }
                    (_, 0) => odd[random.within(0, odd.len() as i64 - 1) as usize],
                    _ => random_value(self.meaning, &mut random),
                })
            })
            .collect()
    }

    /// A kernel that runs the instruction: `(operands, results)`, 24 bytes in and 8 bytes out per thread.
    pub fn entry(&self, name: &str) -> String {
        let mut text = format!(".visible .entry {name}(.param .u64 from, .param .u64 to)\n{{\n");
        text.push_str(".reg .b16 %h<4>;\n.reg .b32 %w<4>;\n.reg .b64 %l<4>;\n.reg .pred %p;\n");
        text.push_str(".reg .b32 %i;\n.reg .b16 %t<4>;\n.reg .b64 %in, %out, %cell, %at;\n.shared .align 8 .b8 cells[768];\n");
        text.push_str("ld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %i, %tid.x;\n");
        text.push_str("mul.wide.u32 %at, %i, 24;\nadd.s64 %in, %in, %at;\nmul.wide.u32 %at, %i, 8;\nadd.s64 %out, %out, %at;\n");
        text.push_str("mov.u64 %cell, cells;\nadd.s64 %cell, %cell, %at;\n");
        let mut line = self.text.clone();
        for (at, (class, name)) in self.operands.iter().zip(["$a", "$b", "$c"]).enumerate() {
            let (register, bits) = register(*class, at);
            let _ = writeln!(text, "ld.global.b{bits} {register}, [%in+{}];", at * 8);
            line = line.replace(name, &register);
        }
        let result = match self.result {
            Class::Truth => "%p".to_owned(),
            class => register(class, 3).0,
        };
        let _ = writeln!(text, "{};", line.replace("$d", &result));
        let widen = match self.result {
            Class::Half => "cvt.u64.u16 %at, %h3;",
            Class::Word => "cvt.u64.u32 %at, %w3;",
            Class::Double => "mov.b64 %at, %l3;",
            Class::Truth => "selp.b64 %at, 1, 0, %p;",
        };
        let _ = writeln!(text, "{widen}\nst.global.u64 [%out], %at;\nret;\n}}\n");
        text
    }

    /// Whether a result may stand for the recorded one.
    pub fn accepts(&self, recorded: u64, result: u64) -> bool {
        let Some(part) = self.close else { return recorded == result };
        let value = |bits: u64| match (self.meaning, self.result) {
            (Meaning::Double, Class::Double) => f64::from_bits(bits),
            (_, Class::Word) => f64::from(f32::from_bits(bits as u32)),
            _ => bits as f64,
        };
        let (want, have) = (value(recorded), value(result));
        want == have
            || (want.is_nan() && have.is_nan())
            || (want - have).abs() <= part * want.abs().max(self.floor)
    }
}

/// All probes as one module; the kernel of probe `n` is `probe_n`.
pub fn probe_module(probes: &[Probe]) -> String {
    let entries = probes.iter().enumerate().map(|(at, probe)| probe.entry(&format!("probe_{at}")));
    format!(".version 8.1\n.target sm_90\n.address_size 64\n\n{}", entries.collect::<String>())
}

fn register(class: Class, at: usize) -> (String, u32) {
    match class {
        Class::Half => (format!("%h{at}"), 16),
        Class::Word | Class::Truth => (format!("%w{at}"), 32),
        Class::Double => (format!("%l{at}"), 64),
    }
}

fn odd_values(meaning: Meaning) -> Vec<u64> {
    match meaning {
        Meaning::Integer => odd_integers(),
        Meaning::Half => pairs(&[
            0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7d01, 0xfe12, 1, 0x83ff, 0x400, 0x7bff,
            0xfbff, 0x3800, 0x4100, 0xc100, 0x6800,
        ]),
        Meaning::Brain => pairs(&[
            0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffd2, 1, 0x807f, 0x80, 0x7f7f,
            0xff7f, 0x3f00, 0x4020, 0xc020, 0x4b00,
        ]),
        Meaning::Single => odd_singles(),
        Meaning::Double => odd_doubles(),
    }
}

fn odd_integers() -> Vec<u64> {
    vec![
        0,
        1,
        2,
        5,
        31,
        32,
        33,
        63,
        64,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        u64::MAX,
        0xffff_ffff_ffff_fffe,
        0x1_0000_0000,
    ]
}

fn odd_singles() -> Vec<u64> {
    vec![
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0xffc1_2345,
        1,
        0x807f_ffff,
        0x80_0000,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x3f00_0000,
        0x4020_0000,
        0xc020_0000,
        0x4f00_0000,
        0xcf00_0000,
        0x5f00_0000,
        0x3fc0_0000,
        0x3f7f_ffff,
        0x4b80_0001,
    ]
}

fn odd_doubles() -> Vec<u64> {
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        0.5,
        2.5,
        -2.5,
        2147483647.5,
        -2147483648.5,
        9.3e18,
        1.5,
    ]
    .map(f64::to_bits)
    .into_iter()
    .chain([0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0xfff8_dead_0000_beef, 1, 0x800f_ffff_ffff_ffff])
    .collect()
}

/// Different values that are no number.
fn nans(meaning: Meaning) -> &'static [u64] {
    match meaning {
        Meaning::Integer => &[],
        Meaning::Half => &[0x7e01_7d01, 0xfe12_7e00, 0x7f55_fe34],
        Meaning::Brain => &[0x7fc1_7f81, 0xffd2_7fc0, 0x7fe5_ffd4],
        Meaning::Single => &[0x7fc0_0001, 0xffc1_2345, 0x7f80_00ff],
        Meaning::Double => &[0x7ff8_0000_0000_1111, 0xfff8_dead_0000_beef, 0x7ff0_0000_0000_2222],
    }
}

/// Two halves side by side, so that packed instructions get two odd values.
fn pairs(odd: &[u64]) -> Vec<u64> {
    odd.iter().enumerate().map(|(at, low)| low | odd[(at * 7 + 3) % odd.len()] << 16).collect()
}

fn random_value(meaning: Meaning, random: &mut Random) -> u64 {
    let bits = random.next();
    match (meaning, bits >> 62) {
        (Meaning::Integer, 0) => bits & 0xff,
        (Meaning::Integer, _) => bits,
        // Numbers of moderate size, so that sums and products are not all infinite or zero.
        (Meaning::Single, 0..=2) => u64::from((random.float(-100.0, 100.0) as f32).to_bits()),
        (Meaning::Double, 0..=2) => random.float(-1e5, 1e5).to_bits(),
        (Meaning::Half, 0..=2) => bits & 0xbfff_bfff,
        (Meaning::Brain, 0..=2) => (bits & 0x81ff_81ff) | 0x3e00_3e00,
        _ => bits,
    }
}
