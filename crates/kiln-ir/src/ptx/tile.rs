//! Tiles in registers.
//!
//! A tile is made of pieces of 16 rows and 8 columns. A lane holds four elements of each piece, as `mma.sync` wants it for
//! every type: those of rows `lane / 4` and `lane / 4 + 8`, columns `2 * (lane % 4)` and the next one.

use super::memory::Spot;
use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::declaration::{BufferId, SharedId, TileId};
use crate::operation::{
    FRAGMENT_COLUMNS, FRAGMENT_ROWS, MatrixLayout, MatrixOperand, MemoryOperand, Operand, TileOp,
};
use crate::scalar_type::Type;

/// Where the elements of a lane are in a piece of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct TilePlace {
    /// `lane / 4`: its first row.
    pub(super) group: Register,
    /// `lane % 4`.
    pub(super) member: Register,
    /// Twice that: its first column.
    pub(super) column: Register,
}

/// A matrix in memory, with its start and stride in registers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixPlace {
    pub(super) operand: MatrixOperand,
    pub(super) ty: Type,
    pub(super) start: Register,
    pub(super) stride: Register,
    /// How many lines of adjacent elements there are, and their length.
    pub(super) lines: [u32; 2],
    /// Whether all elements are in range.
    pub(super) is_proven: bool,
}

impl MatrixPlace {
    /// Lines and elements in the line for rows and columns.
    pub(super) fn along(&self, row: u32, column: u32) -> [u32; 2] {
        self.operand.lines(row, column)
    }
}

impl Writer<'_> {
    /// An operation on a tile, ordered with what the lanes of the warp do to the same memory before and behind it.
    pub(super) fn tile_operation(&mut self, op: &TileOp) {
        let may_change = |matrix: &MatrixOperand| match matrix.memory {
            MemoryOperand::Buffer(id) => self.draft.buffers[id.index()].role.is_writable(),
            MemoryOperand::Shared(_) => true,
        };
        let is_ordered = op.matrices().iter().any(may_change);
        if is_ordered {
            self.line("bar.warp.sync -1");
        }
        self.tile_accesses(op);
        if is_ordered {
            self.line("bar.warp.sync -1");
        }
    }

    fn tile_accesses(&mut self, op: &TileOp) {
        let tile = op.tile();
        let Some(declared) = self.draft.tiles.get(tile.index()) else { return };
        let (rows, columns) = (declared.rows, declared.columns);
        match op {
            TileOp::Fill { value, .. } => {
                let value = self.operand(*value);
                for register in self.tile(tile) {
                    ins!(self, "mov.{} {register}, {value}", register.class.name());
                }
            }
            TileOp::Load { from, .. } => {
                let matrix = self.matrix(from, rows, columns);
                for (register, spot) in self.tile_spots(tile, &matrix) {
                    self.load_to(register, from.memory, &spot);
                }
            }
            TileOp::Store { to, .. } => {
                let matrix = self.matrix(to, rows, columns);
                let name = super::parameter_layout::memory_type(matrix.ty);
                for (register, spot) in self.tile_spots(tile, &matrix) {
                    ins!(self, "{}st.{}.{name} {}, {register}", spot.guard, spot.space, spot.address);
                }
            }
            TileOp::MultiplyAdd { a, b, depth, .. } => {
                let a = self.matrix(a, rows, *depth);
                let b = self.matrix(b, *depth, columns);
                self.tile_product(tile, [a, b], *depth);
            }
        }
    }

    /// The registers of a tile, four for each piece, row by row of pieces. They are zero before the first statement.
    pub(super) fn tile(&mut self, id: TileId) -> Vec<Register> {
        if let Some(Some(registers)) = self.once.tiles.get(id.index()) {
            return registers.clone();
        }
        let Some(tile) = self.draft.tiles.get(id.index()) else { return Vec::new() };
        let (class, count) = (Class::of(tile.element), tile.rows * tile.columns / 32);
        let zero = super::writer::immediate(crate::Literal::zero(tile.element));
        let registers: Vec<Register> = (0..count).map(|_| self.fresh(class)).collect();
        for register in &registers {
            self.early(&format!("mov.{} {register}, {zero}", class.name()));
        }
        self.once.tiles[id.index()] = Some(registers.clone());
        registers
    }

    /// Where the lane is in every piece.
    pub(super) fn tile_place(&mut self) -> TilePlace {
        if let Some(place) = self.once.tile_place {
            return place;
        }
        let lane = self.lane();
        let place = TilePlace {
            group: self.fresh(Class::B32),
            member: self.fresh(Class::B32),
            column: self.fresh(Class::B32),
        };
        self.early(&format!("shr.u32 {}, {lane}, 2", place.group));
        self.early(&format!("and.b32 {}, {lane}, 3", place.member));
        self.early(&format!("shl.b32 {}, {}, 1", place.column, place.member));
        self.once.tile_place = Some(place);
        place
    }

    pub(super) fn matrix(&mut self, operand: &MatrixOperand, rows: u32, columns: u32) -> MatrixPlace {
        let lines = operand.lines(rows, columns);
        MatrixPlace {
            operand: *operand,
            ty: self.draft.element(operand.memory).unwrap_or(Type::F32),
            start: self.widened_index(operand.start),
            stride: self.widened_index(operand.stride),
            lines,
            is_proven: self.is_matrix_inside(operand, lines),
        }
    }

    /// An integer in 64 bits.
    fn widened_index(&mut self, operand: Operand) -> Register {
        let ty = self.ty(operand);
        if let Operand::Literal(literal) = operand {
            let number = (literal.as_integer() as i64).to_string();
            return self.compute(Class::B64, "mov.b64", &[&number]);
        }
        let register = self.register(operand);
        match (ty.bits() == 64, ty.is_signed()) {
            (true, _) => register,
            (false, true) => self.compute(Class::B64, "cvt.s64.s32", &[&register.to_string()]),
            (false, false) => self.compute(Class::B64, "cvt.u64.u32", &[&register.to_string()]),
        }
    }

    /// Whether the ranges of start and stride leave no element out of range.
    fn is_matrix_inside(&self, matrix: &MatrixOperand, [lines, length]: [u32; 2]) -> bool {
        let count = match matrix.memory {
            MemoryOperand::Shared(SharedId(id)) => {
                self.draft.shared.get(id as usize).and_then(|shared| shared.count)
            }
            MemoryOperand::Buffer(BufferId(id)) => self.draft.known_count(BufferId(id)),
        };
        let [start, stride] =
            [matrix.start, matrix.stride].map(|operand| self.ranges.operand(self.draft, operand));
        let last = stride
            .most
            .saturating_mul(i128::from(lines) - 1)
            .saturating_add(start.most)
            .saturating_add(i128::from(length) - 1);
        start.least >= 0 && stride.least >= 0 && count.is_some_and(|count| last < i128::from(count))
    }

    /// The index of the element at a row and column that are in registers of 32 bits.
    pub(super) fn index_at(&mut self, matrix: &MatrixPlace, row: Register, column: Register) -> Register {
        let [line, within] = match matrix.operand.layout {
            MatrixLayout::RowMajor => [row, column],
            MatrixLayout::ColumnMajor => [column, row],
        };
        let [line, within] = [line, within]
            .map(|place| self.compute(Class::B64, "cvt.u64.u32", &[&place.to_string()]).to_string());
        let start = self.compute(Class::B64, "add.u64", &[&matrix.start.to_string(), &within]).to_string();
        self.compute(Class::B64, "mad.lo.u64", &[&line, &matrix.stride.to_string(), &start])
    }

    /// Where the element is that lies some rows and columns behind an index.
    pub(super) fn spot_behind(
        &mut self,
        matrix: &MatrixPlace,
        index: Register,
        row: u32,
        column: u32,
    ) -> Spot {
        let [line, within] = matrix.along(row, column);
        let mut index = index;
        if line > 0 {
            let (stride, base) = (matrix.stride.to_string(), index.to_string());
            index = self.compute(Class::B64, "mad.lo.u64", &[&stride, &line.to_string(), &base]);
        }
        if within > 0 {
            index = self.compute(Class::B64, "add.u64", &[&index.to_string(), &within.to_string()]);
        }
        self.spot_of(matrix.operand.memory, index, matrix.is_proven)
    }

    /// The registers of a tile, each with its place in a matrix of the same shape.
    fn tile_spots(&mut self, tile: TileId, matrix: &MatrixPlace) -> Vec<(Register, Spot)> {
        let registers = self.tile(tile);
        let Some(declared) = self.draft.tiles.get(tile.index()) else { return Vec::new() };
        let across = declared.columns / FRAGMENT_COLUMNS;
        let place = self.tile_place();
        let index = self.index_at(matrix, place.group, place.column);
        let mut spots = Vec::new();
        for (at, register) in (0..).zip(registers) {
            let (piece, element) = (at / 4, at % 4);
            let row = piece / across * FRAGMENT_ROWS + element / 2 * 8;
            let column = piece % across * FRAGMENT_COLUMNS + element % 2;
            spots.push((register, self.spot_behind(matrix, index, row, column)));
        }
        spots
    }
}
