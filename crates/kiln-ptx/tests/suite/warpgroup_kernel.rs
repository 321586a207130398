//! Kernels with one product of a warpgroup, and what D should be: the layouts of the PTX ISA written out, and plain sums of whole numbers.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// One product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) a: &'static str,
    pub(crate) b: &'static str,
    pub(crate) sum: &'static str,
    pub(crate) columns: usize,
    /// Bytes of the swizzle of both matrices; 0 for none.
    pub(crate) swizzle: usize,
    pub(crate) a_in_registers: bool,
    /// Whether k is the slower dimension of A, and of B.
    pub(crate) transposed: [bool; 2],
    /// `imm-scale-a` and `imm-scale-b`.
    pub(crate) scales: [i64; 2],
    pub(crate) adds: bool,
    pub(crate) satfinite: bool,
}

pub(crate) fn bits(ty: &str) -> usize {
    match ty {
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "b1" => 1,
        _ => 8,
    }
}

/// A small whole number as an element.
fn encode(ty: &str, value: i64) -> u64 {
    let sign = |bits: u32| u64::from(value < 0) << bits;
    let magnitude = value.unsigned_abs();
    // Exponent and fraction of a float with so many bits of fraction.
    let float = |bias: u64, fraction: u32| match magnitude.checked_ilog2() {
        None => 0,
        Some(top) => {
            (u64::from(top) + bias) << fraction | (magnitude << fraction >> top & ((1 << fraction) - 1))
        }
    };
    match ty {
        "f32" | "tf32" => sign(31) | float(127, 23),
        "f16" => sign(15) | float(15, 10),
        "bf16" => sign(15) | float(127, 7),
        "e4m3" => sign(7) | float(7, 3),
        "e5m2" => sign(7) | float(15, 2),
        "s32" => u64::from(value as u32),
        _ => value as u64 & (u64::MAX >> (64 - bits(ty))),
    }
}

impl Product {
    pub(crate) fn depth(&self) -> usize {
        256 / bits(self.a)
    }

    fn value(&self, ty: &str, at: usize) -> i64 {
        let mixed = (at * 7919 + at / 7 * 13 + at / 64 * 5) % 1009;
        match ty {
            "b1" => (mixed % 2) as i64,
            "u8" if self.satfinite => 255 - (mixed % 2) as i64,
            "u8" => (mixed % 251) as i64,
            "s8" if self.satfinite => 127,
            "s8" => (mixed % 255) as i64 - 127,
            _ => (mixed % 7) as i64 - 3,
        }
    }

    fn a(&self, row: usize, at: usize) -> i64 {
        self.value(self.a, row * self.depth() + at)
    }

    fn b(&self, at: usize, column: usize) -> i64 {
        self.value(self.b, 50_000 + column * self.depth() + at)
    }

    fn c(&self, row: usize, column: usize) -> i64 {
        let small = ((row * 31 + column * 17) % 23) as i64 - 11;
        if self.satfinite { i64::from(i32::MAX) - 1000 + small } else { small }
    }

    /// D in row `row` and column `column`.
    fn d(&self, row: usize, column: usize) -> i64 {
        let products = (0..self.depth()).map(|at| self.a(row, at) * self.b(at, column));
        let sum = products.sum::<i64>() * self.scales[0] * self.scales[1];
        let sum = sum + if self.adds { self.c(row, column) } else { 0 };
        if self.satfinite { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum }
    }

    /// The leading and stride byte offsets of a matrix, neither as small as possible.
    fn offsets(&self, transposed: bool, lines: usize) -> [usize; 2] {
        let rows = self.swizzle * 8;
        match (self.swizzle, transposed) {
            (0, false) => [128 * lines.div_ceil(8) + 256, 128],
            (0, true) => [128, 256],
            (_, false) => [16, rows],
            // Eight places along k behind each other, then the next rows or columns.
            (_, true) => [2 * rows, rows],
        }
    }

    /// The place of an element in its matrix, in bits.
    fn place(&self, transposed: bool, lines: usize, line: usize, at: usize, ty: &str) -> usize {
        let [leading, stride] = self.offsets(transposed, lines);
        let size = bits(ty);
        let byte = match (self.swizzle, transposed) {
            (0, false) => {
                let along = at * size / 8;
                line / 8 * stride + along / 16 * leading + line % 8 * 16 + along % 16
            }
            (0, true) => line / 8 * stride + at / 8 * leading + at % 8 * 16 + line % 8 * 2,
            (wide, false) => line / 8 * stride + line % 8 * wide + at * size / 8,
            (wide, true) => {
                line / (wide / 2) * leading + at / 8 * stride + at % 8 * wide + line % (wide / 2) * 2
            }
        };
        byte * 8 + at * size % 8
    }

    /// Where a matrix starts: behind the first part of its rows, if they are longer than needed.
    fn start(&self, matrix: usize) -> usize {
        let inside = if self.swizzle > 32 && !self.transposed[matrix] { 32 } else { 0 };
        matrix * 32 * 1024 + inside
    }

    /// Shared memory: both matrices.
    fn image(&self) -> Vec<u8> {
        let mut image = vec![0; 32 * 1024 + 80 * 1024];
        let mut put = |matrix: usize, lines: usize, line: usize, at: usize, value: i64| {
            let ty = [self.a, self.b][matrix];
            let place = self.start(matrix) * 8 + self.place(self.transposed[matrix], lines, line, at, ty);
            // The unit of 16 bytes in a row of 128 is exchanged with another one, by the number of the row.
            let (mut unit, inside) = (place / 128, place % 128);
            unit ^= unit / 8 % (self.swizzle / 16).max(1);
            let (byte, bit) = (unit * 16 + inside / 8, inside % 8);
            let encoded = encode(ty, value);
            if bits(ty) == 1 {
                image[byte] |= (encoded as u8) << bit;
            } else {
                image[byte..byte + bits(ty) / 8].copy_from_slice(&encoded.to_le_bytes()[..bits(ty) / 8]);
            }
        };
        for at in 0..self.depth() {
            (0..64).for_each(|row| put(0, 64, row, at, self.a(row, at)));
            (0..self.columns).for_each(|column| put(1, self.columns, column, at, self.b(at, column)));
        }
        image
    }

    fn descriptor(&self, matrix: usize) -> u64 {
        let lines = if matrix == 0 { 64 } else { self.columns };
        let [leading, stride] = self.offsets(self.transposed[matrix], lines);
        let mode =
            [(0, 0), (32, 3), (64, 2), (128, 1)].iter().find(|(bytes, _)| *bytes == self.swizzle).unwrap().1;
        (mode as u64) << 62 | (stride as u64 >> 4) << 32 | (leading as u64 >> 4) << 16
    }

    pub(crate) fn instruction(&self) -> String {
        let Self { a, b, sum, columns, .. } = self;
        let depth = self.depth();
        let satfinite = if self.satfinite { ".satfinite" } else { "" };
        let popc = if *a == "b1" { ".and.popc" } else { "" };
        format!("wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{satfinite}.{sum}.{a}.{b}{popc}")
    }

    /// The registers of D of a thread, elements in order.
    fn results(&self, thread: usize, of: &dyn Fn(usize, usize) -> i64) -> Vec<u32> {
        let (warp, lane) = (thread / 32, thread % 32);
        let place =
            |at: usize| (16 * warp + lane / 4 + 8 * (at / 2 % 2), lane % 4 * 2 + at % 2 + 8 * (at / 4));
        let values: Vec<u32> = (0..self.columns / 2)
            .map(place)
            .map(|(row, column)| encode(self.sum, of(row, column)) as u32)
            .collect();
        match self.sum {
            "f16" => values.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect(),
            _ => values,
        }
    }

    /// The registers of A of a thread.
    fn a_registers(&self, thread: usize) -> Vec<u32> {
        let (warp, lane) = (thread / 32, thread % 32);
        let per = 32 / bits(self.a);
        let register = |register: usize| {
            let row = 16 * warp + lane / 4 + 8 * (register % 2);
            let first = lane % 4 * per + register / 2 * 4 * per;
            (0..per).fold(0, |word, part| {
                word | (encode(self.a, self.a(row, first + part)) as u32) << (part * bits(self.a))
            })
        };
        (0..4).map(register).collect()
    }

    fn text(&self, image: usize, results: usize) -> String {
        let ty = if self.sum == "f32" { "f32" } else { "b32" };
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let stride = 4 * (2 * results + 4);
        let mut text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n\
             .visible .entry k(.param .u64 p)\n{{\n.reg .b64 %p, %o, %x0, %x1;\n.reg .b32 %t, %i, %v, %y, %z, %a<4>;\n.reg .{ty} %d<{results}>;\n\
             .reg .pred %q, %adds;\nld.param.u64 %p, [p];\nmov.u32 %t, %tid.x;\nmov.u32 %i, %t;\nmov.u32 %z, s;\n\
             again:\nsetp.ge.u32 %q, %i, {};\n@%q bra copied;\nmul.wide.u32 %o, %i, 4;\nadd.u64 %o, %p, %o;\nld.global.b32 %v, [%o];\n\
             shl.b32 %y, %i, 2;\nadd.u32 %y, %y, %z;\nst.shared.b32 [%y], %v;\nadd.u32 %i, %i, 128;\nbra again;\ncopied:\n\
             fence.proxy.async;\nbar.sync 0;\nmul.wide.u32 %o, %t, {stride};\nadd.u64 %p, %p, %o;\nadd.u64 %p, %p, {image};\n",
            image / 4
        );
        for at in 0..results {
            text += &format!("ld.global.{ty} %d{at}, [%p+{}];\n", 4 * at);
        }
        for at in 0..4 {
            text += &format!("ld.global.b32 %a{at}, [%p+{}];\n", 4 * (results + at));
        }
        for matrix in 0..2 {
            text += &format!(
                "add.u32 %y, %z, {};\nand.b32 %y, %y, 0x3ffff;\nshr.u32 %y, %y, 4;\ncvt.u64.u32 %x{matrix}, %y;\nor.b64 %x{matrix}, %x{matrix}, {};\n",
                self.start(matrix),
                self.descriptor(matrix) as i64
            );
        }
        let a = if self.a_in_registers { list("a", 4) } else { "%x0".to_owned() };
        let mut numbers = String::new();
        if self.sum != "s32" {
            numbers += &format!(", {}, {}", self.scales[0], self.scales[1]);
        }
        if bits(self.a) == 16 {
            let transposed = self.transposed.map(usize::from);
            let first = if self.a_in_registers { String::new() } else { format!(", {}", transposed[0]) };
            numbers += &format!("{first}, {}", transposed[1]);
        }
        text += &format!(
            "setp.ne.u32 %adds, {}, 0;\nwgmma.fence.sync.aligned;\n{} {}, {a}, %x1, %adds{numbers};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
            u32::from(self.adds),
            self.instruction(),
            list("d", results)
        );
        for at in 0..results {
            text += &format!("st.global.{ty} [%p+{}], %d{at};\n", 4 * (results + 4 + at));
        }
        text + "ret;\n}\n"
    }

    /// Runs it: what is wrong, if anything is.
    pub(crate) fn run(&self) -> Option<String> {
        self.run_text(|text| text)
    }

    /// The same with another text of the kernel.
    pub(crate) fn run_text(&self, change: impl Fn(String) -> String) -> Option<String> {
        let mut bytes = self.image();
        let image = bytes.len();
        let wanted: Vec<Vec<u32>> =
            (0..128).map(|thread| self.results(thread, &|row, column| self.d(row, column))).collect();
        let results = wanted[0].len();
        for thread in 0..128 {
            let before = self.results(thread, &|row, column| self.c(row, column));
            let words = before.into_iter().chain(self.a_registers(thread));
            words.chain(std::iter::repeat_n(0, results)).for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        let text = change(self.text(image, results));
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
        let mut memory = SimpleMemory::new();
        let at = memory.allocate_with(&bytes);
        let shape = LaunchShape { dynamic_shared_bytes: image as u32, ..LaunchShape::linear(1, 128) };
        let options = Options { checks: Checks::ALL, ..Options::default() };
        let outcome =
            program.entry("k").unwrap().launch(&shape, &at.to_le_bytes(), &[], &memory, &options).unwrap();
        if let Some(finding) = outcome.findings.first() {
            return Some(finding.to_string());
        }
        let after = memory.read(at + image as u64, (bytes.len() - image) as u64).unwrap();
        let stride = 4 * (2 * results + 4);
        for (thread, (found, wanted)) in after.chunks(stride).zip(&wanted).enumerate() {
            let words = found.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            let found: Vec<u32> = words.skip(results + 4).collect();
            if let Some(at) = (0..results).find(|at| found[*at] != wanted[*at]) {
                return Some(format!(
                    "register {at} of thread {thread}: {:#x}, not {:#x}",
                    found[at], wanted[at]
                ));
            }
        }
        None
    }
}
