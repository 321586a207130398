//! Kernels with one product of a warpgroup: where elements lie in registers and shared memory is written out as in the PTX ISA.

use std::fmt::Write;

use kiln_kernels::{MatrixSpread, Random, matrix_number};

use super::element::bits;

/// Rows of A and D.
pub(crate) const ROWS: usize = 64;
/// Threads of a warpgroup.
pub(crate) const THREADS: usize = 128;
/// Registers of A in a thread.
const A_REGISTERS: usize = 4;

/// One form of the product.
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
    pub(crate) scales: [i32; 2],
    pub(crate) adds: bool,
    pub(crate) satfinite: bool,
    /// Bytes of the rows of the pattern in front of the matrices.
    pub(crate) inside: usize,
    /// Lines of 128 bytes in front of the matrices.
    pub(crate) shift: usize,
    /// Whether the pattern of the swizzle starts behind those lines, as the base offset tells; otherwise where it always does.
    pub(crate) based: bool,
    /// How often the product is added up.
    pub(crate) repeats: usize,
}

/// The operands of a block: A by rows, B by columns, C by rows.
pub(crate) struct Operands {
    pub(crate) spread: MatrixSpread,
    pub(crate) a: Vec<u64>,
    pub(crate) b: Vec<u64>,
    pub(crate) c: Vec<u64>,
}

impl Product {
    pub(crate) fn depth(&self) -> usize {
        256 / bits(self.a)
    }

    /// Random operands.
    pub(crate) fn operands(&self, spread: MatrixSpread, random: &mut Random) -> Operands {
        let list = |random: &mut Random, ty: &str, count: usize| -> Vec<u64> {
            (0..count).map(|_| matrix_number(ty, spread, random)).collect()
        };
        let depth = self.depth();
        let (a, b) = (list(random, self.a, ROWS * depth), list(random, self.b, self.columns * depth));
        let mut c = list(random, self.sum, ROWS * self.columns);
        // Some of C cancels nearly all of a product, so that the bits below count.
        if spread == MatrixSpread::Near(1) && self.sum == "f32" {
            c.iter_mut().step_by(3).for_each(|bits| *bits = *bits & 0x8000_00ff | 0x4080_0000);
        }
        Operands { spread, a, b, c }
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

    /// Bytes of a matrix, in whole patterns of the largest swizzle.
    fn matrix_bytes(&self, matrix: usize) -> usize {
        let lines = if matrix == 0 { ROWS } else { self.columns };
        let last = |at: usize| {
            self.place(self.transposed[matrix], lines, lines - 1, at, [self.a, self.b][matrix]) / 8
        };
        let end = (0..self.depth()).map(last).max().unwrap_or(0) + 16 + self.inside + 128 * self.shift;
        end.next_multiple_of(1024)
    }

    /// Where a matrix starts: behind the first part of its rows, if they are longer than needed, and behind some lines.
    fn start(&self, matrix: usize) -> usize {
        let first = if matrix == 0 { 0 } else { self.matrix_bytes(0) };
        first + 128 * self.shift + if self.transposed[matrix] { 0 } else { self.inside }
    }

    pub(crate) fn image_bytes(&self) -> usize {
        self.matrix_bytes(0) + self.matrix_bytes(1)
    }

    /// Shared memory: both matrices, and bytes between that must not matter.
    fn image(&self, operands: &Operands, random: &mut Random) -> Vec<u8> {
        let mut image: Vec<u8> = (0..self.image_bytes()).map(|_| random.next() as u8).collect();
        let depth = self.depth();
        for (matrix, elements) in [&operands.a, &operands.b].into_iter().enumerate() {
            let (ty, lines) = ([self.a, self.b][matrix], elements.len() / depth);
            for (number, element) in elements.iter().enumerate() {
                let (line, at) = (number / depth, number % depth);
                let place = self.place(self.transposed[matrix], lines, line, at, ty);
                let place = self.start(matrix) * 8 + place;
                // The unit of 16 bytes in a row of 128 is exchanged with another one, by the number of the row.
                let (mut unit, inside) = (place / 128, place % 128);
                let row = unit / 8 - if self.based { self.shift } else { 0 };
                unit ^= row % (self.swizzle / 16).max(1);
                let (byte, bit) = (unit * 16 + inside / 8, inside % 8);
                if bits(ty) == 1 {
                    image[byte] = image[byte] & !(1 << bit) | (*element as u8) << bit;
                } else {
                    let bytes = bits(ty) / 8;
                    image[byte..byte + bytes].copy_from_slice(&element.to_le_bytes()[..bytes]);
                }
            }
        }
        image
    }

    fn descriptor(&self, matrix: usize) -> u64 {
        let lines = if matrix == 0 { ROWS } else { self.columns };
        let [leading, stride] = self.offsets(self.transposed[matrix], lines);
        let mode = match self.swizzle {
            0 => 0,
            32 => 3,
            64 => 2,
            _ => 1,
        };
        let base = if self.based { self.shift as u64 } else { 0 };
        mode << 62 | base << 49 | (stride as u64 >> 4) << 32 | (leading as u64 >> 4) << 16
    }

    pub(crate) fn instruction(&self) -> String {
        let Self { a, b, sum, columns, .. } = self;
        let depth = self.depth();
        let satfinite = if self.satfinite { ".satfinite" } else { "" };
        let popc = if *a == "b1" { ".and.popc" } else { "" };
        format!("wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{satfinite}.{sum}.{a}.{b}{popc}")
    }

    /// All that tells it from others.
    pub(crate) fn name(&self) -> String {
        let major = |matrix: usize| if self.transposed[matrix] { "mn" } else { "k" };
        let a = if self.a_in_registers { "registers" } else { major(0) };
        format!(
            "{} A {a} B {} swizzle {} scales {:?} adds {} from {} shift {} based {} repeats {}",
            self.instruction(),
            major(1),
            self.swizzle,
            self.scales,
            self.adds,
            self.inside,
            self.shift,
            self.based,
            self.repeats
        )
    }

    /// Registers of D in a thread.
    pub(crate) fn results(&self) -> usize {
        self.columns / 2 / self.per_register()
    }

    /// Elements of D in a register.
    pub(crate) fn per_register(&self) -> usize {
        32 / bits(self.sum)
    }

    /// Row and column of an element of D, by its thread and number there.
    pub(crate) fn cell(thread: usize, at: usize) -> (usize, usize) {
        let (warp, lane) = (thread / 32, thread % 32);
        (16 * warp + lane / 4 + 8 * (at / 2 % 2), lane % 4 * 2 + at % 2 + 8 * (at / 4))
    }

    fn d_registers(&self, thread: usize, d: &[u64]) -> Vec<u32> {
        let per = self.per_register();
        let element = |at: usize| {
            let (row, column) = Self::cell(thread, at);
            d[row * self.columns + column] as u32
        };
        let register =
            |first: usize| (0..per).fold(0, |word, at| word | element(first * per + at) << (at * 16));
        (0..self.results()).map(register).collect()
    }

    fn a_registers(&self, thread: usize, a: &[u64]) -> [u32; A_REGISTERS] {
        let (warp, lane) = (thread / 32, thread % 32);
        let per = 32 / bits(self.a);
        std::array::from_fn(|register| {
            let row = 16 * warp + lane / 4 + 8 * (register % 2);
            let first = lane % 4 * per + register / 2 * 4 * per;
            let element =
                |part: usize| (a[row * self.depth() + first + part] as u32) << (part * bits(self.a));
            (0..per).fold(0, |word, part| word | element(part))
        })
    }

    /// The input of a block: shared memory, then the registers of D and A of each thread.
    pub(crate) fn input(&self, operands: &Operands, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.image(operands, random);
        for thread in 0..THREADS {
            let words = self.d_registers(thread, &operands.c).into_iter();
            let words = words.chain(self.a_registers(thread, &operands.a));
            words.for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        bytes
    }

    pub(crate) fn text(&self) -> String {
        let (image, results) = (self.image_bytes(), self.results());
        let ty = if self.sum == "f32" { "f32" } else { "b32" };
        let stride = 4 * (results + A_REGISTERS);
        let mut text = format!(
            ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
             .reg .b64 %in, %out, %o, %x0, %x1;\n.reg .b32 %t, %i, %block, %y, %z;\n.reg .b32 %v<4>;\n.reg .b32 %a<4>;\n.reg .{ty} %d<{results}>;\n.reg .pred %q, %adds;\n\
             .shared .align 1024 .b8 s[{image}];\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %block, %ctaid.x;\n\
             mul.wide.u32 %o, %block, {};\nadd.u64 %in, %in, %o;\nmov.u32 %z, s;\nmov.u32 %i, %t;\nagain:\nmul.wide.u32 %o, %i, 16;\nadd.u64 %o, %in, %o;\n\
             ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%o];\nshl.b32 %y, %i, 4;\nadd.u32 %y, %y, %z;\nst.shared.v4.b32 [%y], {{%v0, %v1, %v2, %v3}};\n\
             add.u32 %i, %i, {THREADS};\nsetp.lt.u32 %q, %i, {};\n@%q bra again;\nfence.proxy.async;\nbar.sync 0;\nmul.wide.u32 %o, %t, {stride};\n\
             add.u64 %in, %in, %o;\nadd.u64 %in, %in, {image};\nmad.lo.u32 %i, %block, {THREADS}, %t;\nmul.wide.u32 %o, %i, {};\nadd.u64 %out, %out, %o;\n",
            image + THREADS * stride,
            image / 16,
            4 * results
        );
        let _ = (0..results).try_for_each(|at| writeln!(text, "ld.global.{ty} %d{at}, [%in+{}];", 4 * at));
        let _ = (0..A_REGISTERS)
            .try_for_each(|at| writeln!(text, "ld.global.b32 %a{at}, [%in+{}];", 4 * (results + at)));
        for matrix in 0..2 {
            let _ = writeln!(
                text,
                "add.u32 %y, %z, {};\nand.b32 %y, %y, 0x3ffff;\nshr.u32 %y, %y, 4;\ncvt.u64.u32 %x{matrix}, %y;\nor.b64 %x{matrix}, %x{matrix}, {:#x};",
                self.start(matrix),
                self.descriptor(matrix)
            );
        }
        self.product(&mut text);
        let _ = (0..results).try_for_each(|at| writeln!(text, "st.global.{ty} [%out+{}], %d{at};", 4 * at));
        text + "ret;\n}\n"
    }

    fn product(&self, text: &mut String) {
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let a = if self.a_in_registers { list("a", A_REGISTERS) } else { "%x0".to_owned() };
        let mut numbers = String::new();
        if self.sum != "s32" {
            let _ = write!(numbers, ", {}, {}", self.scales[0], self.scales[1]);
        }
        if bits(self.a) == 16 {
            let [first, second] = self.transposed.map(usize::from);
            let first = if self.a_in_registers { String::new() } else { format!(", {first}") };
            let _ = write!(numbers, "{first}, {second}");
        }
        let product =
            format!("{} {}, {a}, %x1, %adds{numbers};\n", self.instruction(), list("d", self.results()));
        let _ = writeln!(
            text,
            "mov.u32 %y, {};\nsetp.ne.u32 %adds, %y, 0;\nwgmma.fence.sync.aligned;\n{}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
            u32::from(self.adds),
            product.repeat(self.repeats)
        );
    }
}
