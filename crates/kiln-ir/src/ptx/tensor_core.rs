//! Products on tensor cores: fragments of the two matrices, and `mma.sync`.
//!
//! A register of a fragment holds 32 bits of adjacent elements along the depth: two halves, one TF32, four bytes. Lane
//! `4 * g + t` holds those of row or column `g`, the `t`-th register along the depth; the second register of the same row is
//! four registers further. `ldmatrix` loads exactly this from lines along the depth in shared memory, for every type of up to
//! 32 bits, and of halves also from lines across it. All other elements are loaded one by one.

use super::register::{Class, Register};
use super::tile::MatrixPlace;
use super::writer::{Writer, ins};
use crate::declaration::TileId;
use crate::operation::{FRAGMENT_COLUMNS, FRAGMENT_ROWS, Factor, MatrixLayout, MemoryOperand, Operand};
use crate::scalar_type::Type;

/// Bytes of a line that `ldmatrix` loads.
const LINE_BYTES: u32 = 16;

/// Which factor of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// How the fragments of a factor are loaded.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By `ldmatrix` from this address; transposed if the lines lie across the depth.
    Lines { address: Register, transposed: bool },
    /// Element by element, from this index.
    Elements { index: Register },
}

impl Writer<'_> {
    pub(super) fn tensor_product(&mut self, tile: TileId, factors: [MatrixPlace; 2], depth: u32) {
        let sides = [Side::Left, Side::Right];
        let transposed = [0, 1].map(|at| lines_of(&factors[at], sides[at]));
        let mut inside = None;
        for (factor, transposed) in factors.iter().zip(transposed) {
            if transposed.is_some() && !factor.is_proven {
                inside = Some(self.is_inside(factor, inside));
            }
        }
        let [slow, end] = [self.label(), self.label()];
        if let Some(inside) = inside {
            ins!(self, "@!{inside} bra {slow}");
        }
        let ways = [0, 1].map(|at| match transposed[at] {
            Some(transposed) => self.by_lines(&factors[at], sides[at], transposed),
            None => self.by_elements(&factors[at], sides[at]),
        });
        self.steps(tile, &factors, ways, depth);
        if inside.is_some() {
            ins!(self, "bra {end}");
            self.place(slow);
            let ways = [0, 1].map(|at| self.by_elements(&factors[at], sides[at]));
            self.steps(tile, &factors, ways, depth);
            self.place(end);
        }
    }

    /// Whether all elements of a matrix in shared memory are in range, and another condition holds too.
    fn is_inside(&mut self, matrix: &MatrixPlace, also: Option<Register>) -> Register {
        let count = self.length_of(matrix.operand.memory).to_string();
        let (start, stride) = (matrix.start.to_string(), matrix.stride.to_string());
        let [lines, length] = matrix.lines.map(|count| (count - 1).to_string());
        // Neither start nor stride is beyond the count, so the last index does not wrap.
        let last = self.compute(Class::B64, "mad.lo.u64", &[&stride, &lines, &start]).to_string();
        let last = self.compute(Class::B64, "add.u64", &[&last, &length]).to_string();
        let mut inside = self.compute(Class::Pred, "setp.lt.u64", &[&last, &count]);
        for operand in [&start, &stride] {
            let both = [operand, &*count, &inside.to_string()];
            inside = self.compute(Class::Pred, "setp.le.and.u64", &both);
        }
        match also {
            Some(also) => self.compute(Class::Pred, "and.pred", &[&inside.to_string(), &also.to_string()]),
            None => inside,
        }
    }

    /// The address of the line that the lane names for the first fragment.
    fn by_lines(&mut self, matrix: &MatrixPlace, side: Side, transposed: bool) -> Way {
        let size = matrix.ty.bytes();
        let chunk = (u64::from(LINE_BYTES) / size).to_string();
        let lane = self.lane().to_string();
        let upper = self.compute(Class::B32, "shr.u32", &[&lane, "4"]).to_string();
        // The four matrices of 8 lines: two below each other and then beside them, or the other way round.
        let (line, beside) = if (side == Side::Left) != transposed {
            (self.compute(Class::B32, "and.b32", &[&lane, "15"]).to_string(), upper)
        } else {
            let low = self.compute(Class::B32, "and.b32", &[&lane, "7"]).to_string();
            let line = self.compute(Class::B32, "mad.lo.u32", &[&upper, "8", &low]).to_string();
            let eighth = self.compute(Class::B32, "shr.u32", &[&lane, "3"]).to_string();
            (line, self.compute(Class::B32, "and.b32", &[&eighth, "1"]).to_string())
        };
        let [start, stride] = [matrix.start, matrix.stride]
            .map(|wide| self.compute(Class::B32, "cvt.u32.u64", &[&wide.to_string()]).to_string());
        let index = self.compute(Class::B32, "mad.lo.u32", &[&line, &stride, &start]).to_string();
        let index = self.compute(Class::B32, "mad.lo.u32", &[&beside, &chunk, &index]).to_string();
        let name = format!("shared_{}", self.draft.memory_name(matrix.operand.memory));
        let base = self.compute(Class::B32, "mov.u32", &[&name]).to_string();
        let address = self.compute(Class::B32, "mad.lo.u32", &[&index, &size.to_string(), &base]);
        Way::Lines { address, transposed }
    }

    /// The index of the first element of the lane.
    fn by_elements(&mut self, matrix: &MatrixPlace, side: Side) -> Way {
        let place = self.tile_place();
        let packed = packed(matrix.ty).to_string();
        let along = self.compute(Class::B32, "mul.lo.u32", &[&place.member.to_string(), &packed]);
        let index = match side {
            Side::Left => self.index_at(matrix, place.group, along),
            Side::Right => self.index_at(matrix, along, place.group),
        };
        Way::Elements { index }
    }

    /// All steps along the depth.
    fn steps(&mut self, tile: TileId, [a, b]: &[MatrixPlace; 2], ways: [Way; 2], depth: u32) {
        let registers = self.tile(tile);
        let Some(declared) = self.draft.tiles.get(tile.index()) else { return };
        let (down, across) = (declared.rows / FRAGMENT_ROWS, declared.columns / FRAGMENT_COLUMNS);
        let step = Factor::of(a.ty).map_or(16, |factor| factor.step);
        for k in (0..depth).step_by(step as usize) {
            let left: Vec<Vec<Register>> =
                (0..down).map(|piece| self.left_fragment(a, ways[0], piece * FRAGMENT_ROWS, k)).collect();
            let right = self.right_fragments(b, ways[1], across, k);
            for (at, sums) in registers.chunks(4).enumerate() {
                let (left, right) = (&left[at / across as usize], &right[at % across as usize]);
                self.multiply(a.ty, sums, left, right);
            }
        }
    }

    /// The fragment of 16 rows of the left factor: rows `g` and `g + 8`, then further along the depth.
    fn left_fragment(&mut self, matrix: &MatrixPlace, way: Way, row: u32, k: u32) -> Vec<Register> {
        match way {
            Way::Lines { address, transposed } => {
                let registers = self.lines(matrix, address, [row, k], transposed, 4);
                self.as_factors(matrix.ty, registers)
            }
            Way::Elements { index } => {
                let halves: &[u32] = if matrix.ty == Type::F64 { &[0] } else { &[0, 4] };
                let places = halves.iter().flat_map(|half| [0, 8].map(|below| (below, *half)));
                let packed = packed(matrix.ty);
                places
                    .map(|(below, half)| {
                        let at = |e: u32| [row + below, k + half * packed + e];
                        self.packed_elements(matrix, index, (0..packed).map(at).collect())
                    })
                    .collect()
            }
        }
    }

    /// The fragments of 8 columns each of the right factor, two of them by one `ldmatrix`.
    fn right_fragments(&mut self, matrix: &MatrixPlace, way: Way, across: u32, k: u32) -> Vec<Vec<Register>> {
        let mut fragments = Vec::new();
        match way {
            Way::Lines { address, transposed } => {
                for piece in (0..across).step_by(2) {
                    let count = if piece + 1 < across { 4 } else { 2 };
                    let place = [k, piece * FRAGMENT_COLUMNS];
                    let registers = self.lines(matrix, address, place, transposed, count);
                    let registers = self.as_factors(matrix.ty, registers);
                    fragments.extend(registers.chunks(2).map(<[Register]>::to_vec));
                }
            }
            Way::Elements { index } => {
                let halves: &[u32] = if matrix.ty == Type::F64 { &[0] } else { &[0, 4] };
                let packed = packed(matrix.ty);
                for column in (0..across).map(|piece| piece * FRAGMENT_COLUMNS) {
                    let fragment = halves.iter().map(|half| {
                        let at = |e: u32| [k + half * packed + e, column];
                        self.packed_elements(matrix, index, (0..packed).map(at).collect())
                    });
                    fragments.push(fragment.collect());
                }
            }
        }
        fragments
    }

    /// Two or four matrices of 8 lines, the first of them at a row and column.
    fn lines(
        &mut self,
        matrix: &MatrixPlace,
        address: Register,
        [row, column]: [u32; 2],
        transposed: bool,
        count: usize,
    ) -> Vec<Register> {
        let size = matrix.ty.bytes();
        let [line, within] = matrix.along(row, column);
        // An offset that does not fit is one of a matrix that is out of range, for which this is not executed.
        let (address, offset) = match matrix.operand.stride {
            Operand::Literal(stride) => {
                let elements = stride.as_integer() * i128::from(line) + i128::from(within);
                (address, (elements * i128::from(size)) as i32)
            }
            Operand::Value(_) if line == 0 => (address, (u64::from(within) * size) as i32),
            Operand::Value(_) => {
                let stride = self.compute(Class::B32, "cvt.u32.u64", &[&matrix.stride.to_string()]);
                let bytes = (u64::from(line) * size).to_string();
                let moved = [&*stride.to_string(), &bytes, &address.to_string()];
                let address = self.compute(Class::B32, "mad.lo.u32", &moved);
                (address, (u64::from(within) * size) as i32)
            }
        };
        let registers: Vec<Register> = (0..count).map(|_| self.fresh(Class::B32)).collect();
        let trans = if transposed { ".trans" } else { "" };
        ins!(
            self,
            "ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {}, [{address}+{offset}]",
            list(&registers)
        );
        registers
    }

    /// Registers that `ldmatrix` loaded as they are multiplied.
    fn as_factors(&mut self, ty: Type, registers: Vec<Register>) -> Vec<Register> {
        match ty {
            Type::F32 => registers
                .into_iter()
                .map(|bits| {
                    let single = self.compute(Class::F32, "mov.b32", &[&bits.to_string()]);
                    self.compute(Class::B32, "cvt.rna.tf32.f32", &[&single.to_string()])
                })
                .collect(),
            _ => registers,
        }
    }

    /// Elements at these rows and columns behind an index, in one register.
    fn packed_elements(&mut self, matrix: &MatrixPlace, index: Register, places: Vec<[u32; 2]>) -> Register {
        let elements: Vec<Register> =
            places.into_iter().map(|[row, column]| self.element_at(matrix, index, row, column)).collect();
        match (matrix.ty, &elements[..]) {
            (Type::F16 | Type::Bf16, _) => self.compute(Class::B32, "mov.b32", &[&list(&elements)]),
            (Type::F32, [single, ..]) => self.compute(Class::B32, "cvt.rna.tf32.f32", &[&single.to_string()]),
            (Type::I8, [first, others @ ..]) => {
                let mut word = self.compute(Class::B32, "and.b32", &[&first.to_string(), "255"]);
                for (at, byte) in (1..).zip(others) {
                    let (byte, before) = (byte.to_string(), word.to_string());
                    let from = (8 * at).to_string();
                    word = self.compute(Class::B32, "bfi.b32", &[&byte, &before, &from, "8"]);
                }
                word
            }
            (_, [element, ..]) => *element,
            (_, []) => self.fresh(Class::B32),
        }
    }

    /// One piece of the tile and one step along the depth.
    fn multiply(&mut self, ty: Type, sums: &[Register], left: &[Register], right: &[Register]) {
        let name = match ty {
            Type::F16 => "m16n8k16.row.col.f32.f16.f16.f32",
            Type::Bf16 => "m16n8k16.row.col.f32.bf16.bf16.f32",
            Type::I8 => "m16n8k32.row.col.s32.s8.s8.s32",
            Type::F64 => {
                // Of 8 rows: one after the other.
                for (sums, left) in sums.chunks(2).zip(left) {
                    let (sums, left, right) = (list(sums), list(&[*left]), list(right));
                    let name = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
                    ins!(self, "{name} {sums}, {left}, {right}, {sums}");
                }
                return;
            }
            _ => "m16n8k8.row.col.f32.tf32.tf32.f32",
        };
        let (sums, left, right) = (list(sums), list(left), list(right));
        ins!(self, "mma.sync.aligned.{name} {sums}, {left}, {right}, {sums}");
    }
}

/// Whether `ldmatrix` can load the fragments of a factor, and if so whether transposed.
fn lines_of(matrix: &MatrixPlace, side: Side) -> Option<bool> {
    let MemoryOperand::Shared(_) = matrix.operand.memory else { return None };
    let is_along = (matrix.operand.layout == MatrixLayout::RowMajor) == (side == Side::Left);
    match matrix.ty.bytes() {
        8 => None,
        2 => Some(!is_along),
        _ => is_along.then_some(false),
    }
}

/// Elements in one register of a fragment.
fn packed(ty: Type) -> u32 {
    match ty {
        Type::F16 | Type::Bf16 => 2,
        Type::I8 => 4,
        _ => 1,
    }
}

/// Registers in braces.
fn list(registers: &[Register]) -> String {
    let names: Vec<String> = registers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", names.join(", "))
}
