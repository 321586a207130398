//! Random kernels for comparisons of ways to execute them.
//!
//! They compute, branch, and reach memory in the patterns that have a fast way and in others, with and without the barriers they need, also
//! outside of their buffers, misaligned, and where nothing was written.

use std::fmt::Write;

use kiln_ptx::exec::LaunchShape;

use crate::both_ways::{Inputs, compare};

/// Words of a buffer, and of the shared array.
pub(crate) const BUFFER_WORDS: u64 = 1024;
const SHARED_WORDS: u64 = 192;

/// Floats at the borders: zeros, subnormals, infinities, NaN with and without payload, the largest and the smallest.
const SPECIAL: [u32; 12] = [
    0,
    0x8000_0000,
    1,
    0x807f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0x7f7f_ffff,
    0x0080_0000,
    0x3f80_0001,
];

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Mostly small: half of the time below a third of the bound.
    pub(crate) fn small(&mut self, bound: u64) -> u64 {
        self.below(bound).min(self.below(bound))
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// A random kernel with what it is launched with.
pub(crate) struct RandomLaunch {
    pub(crate) ptx: String,
    pub(crate) shape: LaunchShape,
    /// Two buffers with content; a third one is behind them.
    pub(crate) contents: Vec<Vec<u8>>,
    /// Whether the third buffer and shared memory were never written. What is undefined is not executed in the fast ways, so most kernels have content there.
    pub(crate) is_bare: bool,
    /// The last argument.
    pub(crate) count: u32,
}

impl RandomLaunch {
    /// The launch of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let kernel = Kernel::new(&mut random);
        let words = |random: &mut Random| -> Vec<u8> {
            let word = |random: &mut Random| match random.below(4) {
                0 => random.next() as u32,
                1 => SPECIAL[random.below(SPECIAL.len() as u64) as usize],
                _ => (random.below(2000) as f32 / 64.0 - 16.0).to_bits(),
            };
            (0..BUFFER_WORDS).flat_map(|_| word(random).to_le_bytes()).collect()
        };
        let contents = vec![words(&mut random), words(&mut random)];
        let count = random.below(200) as u32;
        let blocks = [[32, 1, 1], [64, 1, 1], [16, 4, 1], [8, 8, 1], [50, 1, 1], [16, 3, 2], [96, 1, 1]];
        let block = *random.pick(&blocks);
        // Up to three blocks, or up to two in each dimension.
        let rows = 1 + random.small(2) as u32;
        let grid = [(1 + random.small(3) as u32).min(4 - rows), rows, 1];
        let is_bare = random.below(3) == 0;
        Self { ptx: kernel.ptx(is_bare), shape: LaunchShape::new(grid, block), contents, is_bare, count }
    }

    /// Launches it both ways; what differs.
    pub(crate) fn compare(&self, seed: u64) -> Result<(), String> {
        let mut contents = self.contents.clone();
        if !self.is_bare {
            contents.push(self.contents[0].iter().rev().copied().collect());
        }
        let inputs = Inputs {
            contents,
            bare_bytes: if self.is_bare { 4 * BUFFER_WORDS } else { 0 },
            pack: &|addresses| {
                let mut bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
                bytes.extend(self.count.to_le_bytes());
                bytes
            },
        };
        compare(&self.ptx, "random", &self.shape, &inputs, seed)
    }
}

/// A kernel as text. Registers `%r0` to `%r7`, `%f0` to `%f5` and `%rd0` to `%rd3` hold values; those from 20 on are addresses and indices.
struct Kernel {
    body: String,
    labels: u32,
}

impl Kernel {
    fn new(random: &mut Random) -> Self {
        let mut kernel = Self { body: String::new(), labels: 0 };
        let length = 6 + random.small(30);
        kernel.block(random, length, 0);
        kernel
    }

    fn ptx(&self, is_bare: bool) -> String {
        let head = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry random(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{{\n\
             .reg .pred %p<8>;\n.reg .f32 %f<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n.reg .b16 %h<4>;\n\
             .shared .align 16 .b8 tile[{}];\n.local .align 16 .b8 stack[64];\n",
            4 * SHARED_WORDS
        );
        let start = "ld.param.u64 %rd20, [a];\nld.param.u64 %rd21, [b];\nld.param.u64 %rd22, [c];\nld.param.u32 %r20, [n];\n\
             mov.u32 %r21, %tid.x;\nmov.u32 %r22, %tid.y;\nmov.u32 %r23, %ntid.x;\nmov.u32 %r24, %ctaid.x;\nmov.u32 %r25, %laneid;\n\
             mad.lo.u32 %r26, %r22, %r23, %r21;\nmov.u32 %r27, %tid.z;\n\
             mov.u32 %r0, %r26;\nmov.u32 %r1, %r24;\nadd.u32 %r2, %r26, 77;\nxor.b32 %r3, %r26, %r20;\nmov.u32 %r4, 5;\nmov.u32 %r5, %r21;\n\
             mov.u32 %r6, %r22;\nmov.u32 %r7, -3;\n\
             cvt.rn.f32.u32 %f0, %r26;\ncvt.rn.f32.s32 %f1, %r3;\nmov.f32 %f2, 0f3f9e0652;\nmov.f32 %f3, 0f00000001;\nmov.f32 %f4, 0fff800000;\n\
             mul.f32 %f5, %f0, %f2;\nmul.wide.u32 %rd0, %r0, 3;\nmul.wide.s32 %rd1, %r7, %r2;\nmov.u64 %rd2, 81985529216486895;\nmov.u64 %rd3, %rd0;\n\
             setp.lt.u32 %p0, %r21, 9;\nsetp.ne.u32 %p1, %r22, 0;\nsetp.gt.s32 %p2, %r3, 11;\nsetp.eq.u32 %p3, %r24, 0;\n";
        // Each thread writes some words of shared memory.
        let fill = format!(
            "mov.u32 %r12, %ntid.z;\nmov.u32 %r13, %ntid.y;\nmul.lo.u32 %r12, %r12, %r13;\nmul.lo.u32 %r12, %r12, %r23;\n\
             mov.u32 %r10, %ntid.y;\nmad.lo.u32 %r10, %r27, %r10, %r22;\nmad.lo.u32 %r10, %r10, %r23, %r21;\n\
             fill:\nsetp.ge.u32 %p4, %r10, {SHARED_WORDS};\n@%p4 bra filled;\nmov.u32 %r13, tile;\nmad.lo.u32 %r13, %r10, 4, %r13;\n\
             st.shared.u32 [%r13], %r10;\nadd.u32 %r10, %r10, %r12;\nbra.uni fill;\nfilled:\nbar.sync 0;\n"
        );
        let fill = if is_bare { "" } else { &fill };
        let end = "xor.b32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\nxor.b32 %r0, %r0, %r3;\nmov.b32 %r1, %f0;\nmov.b32 %r2, %f1;\nxor.b32 %r0, %r0, %r1;\n\
             add.u32 %r0, %r0, %r2;\ncvt.u32.u64 %r3, %rd0;\nxor.b32 %r0, %r0, %r3;\nmov.u32 %r8, %ctaid.y;\nmov.u32 %r9, %nctaid.x;\n\
             mad.lo.u32 %r8, %r8, %r9, %r24;\nmov.u32 %r9, %ntid.y;\nmad.lo.u32 %r10, %r27, %r9, %r22;\nmad.lo.u32 %r10, %r10, %r23, %r21;\n\
             mad.lo.u32 %r8, %r8, 96, %r10;\nmul.wide.u32 %rd23, %r8, 4;\nadd.u64 %rd23, %rd23, %rd20;\nst.global.u32 [%rd23], %r0;\nret;\n}\n";
        format!("{head}{start}{fill}{}{end}", self.body)
    }

    fn line(&mut self, text: &str) {
        writeln!(self.body, "{text};").unwrap();
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn block(&mut self, random: &mut Random, length: u64, depth: u32) {
        for _ in 0..length {
            match random.below(20) {
                0..=5 => self.integer(random),
                6..=9 => self.float(random),
                10 => self.predicate(random),
                11 if depth < 2 => self.branch(random, depth),
                12 if depth < 2 => self.repeat(random, depth),
                13..=14 => self.global(random),
                15 => self.walk(random),
                16..=17 => self.shared(random),
                18 if random.below(3) == 0 => self.local(random),
                18 => self.shared(random),
                _ if depth == 0 => self.line("bar.sync 0"),
                _ => self.line("bar.warp.sync -1"),
            }
        }
    }

    fn guard(random: &mut Random) -> String {
        match random.below(6) {
            0 => format!("@%p{} ", random.below(4)),
            1 => format!("@!%p{} ", random.below(4)),
            _ => String::new(),
        }
    }

    /// A register of 32 bits: mostly a value, now and then an index that follows a pattern or is the same in all lanes.
    fn operand(random: &mut Random) -> u64 {
        if random.below(3) == 0 { 20 + random.below(8) } else { random.below(8) }
    }

    fn integer(&mut self, random: &mut Random) {
        let guard = Self::guard(random);
        let to = random.below(8);
        let (a, b, c) = (Self::operand(random), Self::operand(random), Self::operand(random));
        let text = match random.below(9) {
            0 => format!("mad.lo.s32 %r{to}, %r{a}, %r{b}, %r{c}"),
            1 if random.below(3) == 0 => {
                let number = random.pick(&["7", "4607182418800017408", "-1", "4294967296"]);
                format!("selp.b64 %rd{}, %rd{}, {number}, %p{}", to % 4, a % 4, random.below(4))
            }
            1 => format!("selp.b32 %r{to}, %r{a}, %r{b}, %p{}", random.below(4)),
            2 => {
                let op = random.pick(&["add.s64", "sub.s64", "mul.lo.s64", "xor.b64", "min.s64", "max.u64"]);
                format!("{op} %rd{}, %rd{}, %rd{}", to % 4, a % 4, b % 4)
            }
            3 => format!("mul.wide.{} %rd{}, %r{a}, %r{b}", random.pick(&["u32", "s32"]), to % 4),
            4 => format!(
                "{} %r{to}, %r{a}, {}",
                random.pick(&["shl.b32", "shr.u32", "shr.s32"]),
                random.below(40)
            ),
            5 => format!("lop3.b32 %r{to}, %r{a}, %r{b}, %r{c}, {}", random.below(256)),
            6 => format!(
                "{} %r{to}, %r{a}, {}",
                random.pick(&["add.u32", "and.b32", "mul.lo.u32", "div.u32"]),
                random.below(4000)
            ),
            7 => format!("cvt.{} %rd{}, %r{a}", random.pick(&["u64.u32", "s64.s32"]), to % 4),
            _ => {
                let op = random.pick(&[
                    "add.u32",
                    "sub.u32",
                    "mul.lo.u32",
                    "mul.hi.s32",
                    "xor.b32",
                    "or.b32",
                    "and.b32",
                    "min.s32",
                    "max.u32",
                    "rem.s32",
                ]);
                format!("{op} %r{to}, %r{a}, %r{b}")
            }
        };
        self.line(&format!("{guard}{text}"));
    }

    fn float(&mut self, random: &mut Random) {
        let guard = Self::guard(random);
        let (to, a, b, c) = (random.below(6), random.below(6), random.below(6), random.below(6));
        let text = match random.below(9) {
            0..=2 => {
                let form = random.pick(&["rn", "rn", "rn", "rz", "rp", "rn.ftz", "rn.sat", "rm.ftz.sat"]);
                format!("fma.{form}.f32 %f{to}, %f{a}, %f{b}, %f{c}")
            }
            3 => format!("div.rn.f32 %f{to}, %f{a}, %f{b}"),
            4 => format!("sqrt.rn.f32 %f{to}, %f{a}"),
            5 => format!("cvt.rn.f32.{} %f{to}, %r{a}", random.pick(&["s32", "u32"])),
            6 => format!("{} %f{to}, %f{a}, %f{b}", random.pick(&["min.f32", "max.f32", "max.NaN.f32"])),
            7 => format!("cvt.rzi.{}.f32 %r{to}, %f{a}", random.pick(&["s32", "u32"])),
            _ => {
                let op = random.pick(&["add", "sub", "mul"]);
                let form = random.pick(&["rn", "rn", "rn", "rz", "rn.ftz", "rn.sat"]);
                format!("{op}.{form}.f32 %f{to}, %f{a}, %f{b}")
            }
        };
        self.line(&format!("{guard}{text}"));
    }

    fn predicate(&mut self, random: &mut Random) {
        let (to, a, b) = (random.below(4), Self::operand(random), Self::operand(random));
        let text = match random.below(5) {
            4 => format!(
                "setp.{}.u32 %p{to}, %r{a}, %r{b}",
                random.pick(&["lo", "ls", "hi", "hs", "eq", "ne"])
            ),
            0 => format!(
                "setp.{}.f32 %p{to}, %f{}, %f{}",
                random.pick(&[
                    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
                    "nan",
                ]),
                a % 6,
                b % 6
            ),
            1 => format!("setp.{}.s32 %p{to}, %r{a}, {}", random.pick(&["lt", "ge", "eq"]), random.below(64)),
            2 => format!("setp.lt.and.u32 %p{to}, %r{a}, %r{b}, %p{}", random.below(4)),
            _ => format!("setp.{}.s64 %p{to}, %rd{}, %rd{}", random.pick(&["lt", "gt"]), a % 4, b % 4),
        };
        self.line(&text);
    }

    fn branch(&mut self, random: &mut Random, depth: u32) {
        let (label, on) = (self.label(), random.below(4));
        self.line(&format!("@%p{on} bra else_{label}"));
        let length = 1 + random.below(4);
        self.block(random, length, depth + 1);
        self.line(&format!("bra.uni end_{label}"));
        writeln!(self.body, "else_{label}:").unwrap();
        let length = random.below(3);
        self.block(random, length, depth + 1);
        writeln!(self.body, "end_{label}:").unwrap();
    }

    fn repeat(&mut self, random: &mut Random, depth: u32) {
        let (label, counter) = (self.label(), 28 + depth);
        // Fewer in a loop within another one: what they do is the same every time.
        let rounds = 1 + random.small(6) / u64::from(1 + depth);
        // Some loops run as often as the thread says.
        match random.below(2) {
            0 => self.line(&format!("mov.u32 %r{counter}, {rounds}")),
            _ => self.line(&format!("and.b32 %r{counter}, %r26, {rounds}")),
        }
        writeln!(self.body, "loop_{label}:").unwrap();
        let length = 1 + random.below(4);
        self.block(random, length, depth + 1);
        self.line(&format!("setp.gt.s32 %p{}, %r{counter}, 0", 4 + depth));
        self.line(&format!("sub.s32 %r{counter}, %r{counter}, 1"));
        self.line(&format!("@%p{} bra loop_{label}", 4 + depth));
    }

    /// The word that a thread reaches, in `%r11`: neighbours, tiles, one place, rows from an odd start, strides, scattered.
    fn index(&mut self, random: &mut Random, words: u64) {
        let from = random.below(words / 2);
        match random.below(8) {
            0 | 1 => self.line(&format!("add.u32 %r11, %r26, {}", from / 32 * 32)),
            2 => self.line(&format!("add.u32 %r11, %r21, {}", from / 16 * 16)),
            3 => self.line(&format!("add.u32 %r11, %r22, {from}")),
            4 => self.line(&format!("add.u32 %r11, %r26, {from}")),
            5 => self.line(&format!("mad.lo.u32 %r11, %r26, {}, {}", random.below(4), from / 4)),
            6 => self.line(&format!("mov.u32 %r11, {from}")),
            _ => {
                self.line(&format!("mul.lo.u32 %r11, %r{}, 2654435", random.below(8)));
                self.line("shr.u32 %r11, %r11, 7");
            }
        }
        // Mostly inside; now and then past the end.
        if random.below(60) != 0 {
            self.line(&format!("rem.u32 %r11, %r11, {words}"));
        }
    }

    fn global(&mut self, random: &mut Random) {
        self.index(random, BUFFER_WORDS);
        let (to, base) = (random.below(8), 20 + random.below(3));
        let guard = Self::guard(random);
        if random.below(2) == 0 {
            // Blocks apart, so that not every store races.
            self.line("mad.lo.u32 %r11, %r24, 320, %r11");
            self.line(&format!("rem.u32 %r11, %r11, {BUFFER_WORDS}"));
        }
        let wide = random.below(6) == 0;
        self.line(if wide { "shr.u32 %r11, %r11, 1" } else { "add.u32 %r11, %r11, 0" });
        self.line(&format!("mul.wide.u32 %rd24, %r11, {}", if wide { 8 } else { 4 }));
        self.line(&format!("add.u64 %rd24, %rd24, %rd{base}"));
        if random.below(16) == 0 {
            return self.vector(random, "global.", "%rd24");
        }
        if random.below(120) == 0 {
            self.line("add.u64 %rd24, %rd24, 2");
        }
        let space = random.pick(&["global.", "global.", ""]);
        let text = match (wide, random.below(9)) {
            (true, 0..=4) => format!("ld.{space}u64 %rd{}, [%rd24]", to % 4),
            (true, _) => format!("st.{space}u64 [%rd24], %rd{}", to % 4),
            (_, 0..=2) => format!("ld.{space}u32 %r{to}, [%rd24]"),
            (_, 3) => format!("ld.{space}f32 %f{}, [%rd24]", to % 6),
            (_, 4) => format!("ld.{space}s8 %r{to}, [%rd24+1]"),
            (_, 5) => format!("st.{space}u8 [%rd24+2], %r{to}"),
            (_, 6) => format!("atom.{space}add.u32 %r{to}, [%rd24], %r{}", random.below(8)),
            (_, 7) => format!("st.{space}f32 [%rd24], %f{}", to % 6),
            _ => format!("st.{space}u32 [%rd24], %r{to}"),
        };
        self.line(&format!("{guard}{text}"));
    }

    fn shared(&mut self, random: &mut Random) {
        self.index(random, SHARED_WORDS);
        let to = random.below(8);
        let guard = Self::guard(random);
        let wide = random.below(6) == 0;
        self.line(if wide { "shr.u32 %r11, %r11, 1" } else { "add.u32 %r11, %r11, 0" });
        self.line(&format!("shl.b32 %r12, %r11, {}", if wide { 3 } else { 2 }));
        self.line("mov.u32 %r13, tile");
        self.line("add.u32 %r12, %r12, %r13");
        if random.below(16) == 0 {
            return self.vector(random, "shared.", "%r12");
        }
        if random.below(120) == 0 {
            self.line("add.u32 %r12, %r12, 1");
        }
        let text = match (wide, random.below(8)) {
            (true, 0..=3) => format!("ld.shared.u64 %rd{}, [%r12]", to % 4),
            (true, _) => format!("st.shared.u64 [%r12], %rd{}", to % 4),
            (_, 0..=2) => format!("ld.shared.u32 %r{to}, [%r12]"),
            (_, 3) => format!("ld.shared.f32 %f{}, [%r12]", to % 6),
            (_, 4) => format!("ld.shared.u16 %r{to}, [%r12+2]"),
            (_, 5) => format!("atom.shared.max.u32 %r{to}, [%r12], %r{}", random.below(8)),
            _ => format!("st.shared.u32 [%r12], %r{to}"),
        };
        self.line(&format!("{guard}{text}"));
        if random.below(3) == 0 && guard.is_empty() {
            self.line("bar.warp.sync -1");
        }
    }

    /// Vectors, mostly at addresses that are aligned to them.
    fn vector(&mut self, random: &mut Random, space: &str, at: &str) {
        let wide = random.below(2) == 0;
        let bits = if at.starts_with("%rd") { "and.b64" } else { "and.b32" };
        if random.below(40) != 0 {
            self.line(&format!("{bits} {at}, {at}, {}", if wide { -16 } else { -8 }));
        }
        let (v, registers) = if wide { ("v4", "{%r0, %r1, %r2, %r3}") } else { ("v2", "{%r4, %r5}") };
        self.line(&match random.below(2) {
            0 => format!("ld.{space}{v}.u32 {registers}, [{at}]"),
            _ => format!("st.{space}{v}.u32 [{at}], {registers}"),
        });
    }

    /// A loop of which the addresses move by a stride, as those of matrices and rows do.
    fn walk(&mut self, random: &mut Random) {
        let (label, rounds) = (self.label(), 1 + random.below(5));
        let start = *random.pick(&["%r26", "%r21", "%r22", "%r25", "%r24"]);
        let scale = *random.pick(&[0, 1, 1, 1, 2, 16]);
        self.line(&format!("mad.lo.s32 %r14, {start}, {scale}, {}", random.below(300)));
        self.line(&format!("mov.u32 %r15, {rounds}"));
        let stride = *random.pick(&[0, 1, 4, 16, 32, 33, 64, -1, -16]);
        let base = 20 + random.below(3);
        let signed = random.below(2) == 0;
        writeln!(self.body, "walk_{label}:").unwrap();
        let wide = if signed { "mul.wide.s32" } else { "mul.wide.u32" };
        self.line(&format!("{wide} %rd25, %r14, 4"));
        self.line(&format!("add.s64 %rd26, %rd{base}, %rd25"));
        self.line(&match random.below(5) {
            0 => "st.global.f32 [%rd26], %f1".to_owned(),
            1 => "ld.global.nc.f32 %f1, [%rd26]".to_owned(),
            2 => "ld.global.f32 %f1, [%rd26+64]".to_owned(),
            _ => "ld.global.f32 %f1, [%rd26]".to_owned(),
        });
        self.line("fma.rn.f32 %f0, %f1, %f2, %f0");
        self.line(&format!("add.s32 %r14, %r14, {stride}"));
        self.line("add.s32 %r15, %r15, -1");
        self.line("setp.ne.s32 %p6, %r15, 0");
        self.line(&format!("@%p6 bra walk_{label}"));
    }

    /// Local memory: what each thread stored, and bytes that were never written.
    fn local(&mut self, random: &mut Random) {
        let (at, value) = (4 * random.below(16), random.below(8));
        self.line("mov.u64 %rd27, stack");
        self.line(&match random.below(3) {
            0 => format!("ld.local.u32 %r{value}, [%rd27+{at}]"),
            1 => format!("st.local.u32 [%rd27+{at}], %r{value}"),
            _ => format!("st.local.u16 [%rd27+{at}], %r{value}"),
        });
    }
}
