//! Products of tiles: on tensor cores where the target has them, otherwise as a loop of fused products.

use super::memory::loaded_class;
use super::register::{Class, Register};
use super::target::Feature;
use super::tile::MatrixPlace;
use super::writer::{Writer, ins};
use crate::declaration::TileId;
use crate::operation::{FRAGMENT_COLUMNS, FRAGMENT_ROWS};
use crate::scalar_type::Type;

impl Writer<'_> {
    pub(super) fn tile_product(&mut self, tile: TileId, factors: [MatrixPlace; 2], depth: u32) {
        if self.uses(Feature::TensorCores) {
            self.tensor_product(tile, factors, depth);
        } else {
            self.fused_product(tile, factors, depth);
        }
    }

    /// Every lane adds the products of the elements that it holds, one for each element in a round.
    fn fused_product(&mut self, tile: TileId, [a, b]: [MatrixPlace; 2], depth: u32) {
        let registers = self.tile(tile);
        let Some(declared) = self.draft.tiles.get(tile.index()) else { return };
        let (rows, columns) = (declared.rows, declared.columns);
        let place = self.tile_place();
        let zero = self.compute(Class::B32, "mov.u32", &["0"]);
        let (index_a, index_b) =
            (self.index_at(&a, place.group, zero), self.index_at(&b, zero, place.column));
        let round = self.compute(Class::B32, "mov.u32", &["0"]);
        let first = self.label();
        self.place(first);
        let row_offsets: Vec<u32> = (0..rows).step_by(8).collect();
        let left: Vec<Register> =
            row_offsets.iter().map(|row| self.factor_at(&a, index_a, *row, 0)).collect();
        let across = columns / FRAGMENT_COLUMNS;
        let column_offsets = (0..across).flat_map(|piece| [0, 1].map(|at| piece * FRAGMENT_COLUMNS + at));
        let right: Vec<Register> =
            column_offsets.map(|column| self.factor_at(&b, index_b, 0, column)).collect();
        let name = match a.ty {
            Type::I8 => "mad.lo.s32",
            Type::F64 => "fma.rn.f64",
            _ => "fma.rn.f32",
        };
        for (at, sum) in (0..).zip(registers) {
            let (piece, element): (u32, u32) = (at / 4, at % 4);
            let row = piece / across * (FRAGMENT_ROWS / 8) + element / 2;
            let column = piece % across * 2 + element % 2;
            let (left, right) = (left[row as usize], right[column as usize]);
            ins!(self, "{name} {sum}, {left}, {right}, {sum}");
        }
        for (matrix, index, [row, column]) in [(a, index_a, [0, 1]), (b, index_b, [1, 0])] {
            match matrix.along(row, column) {
                [0, _] => ins!(self, "add.u64 {index}, {index}, 1"),
                _ => ins!(self, "add.u64 {index}, {index}, {}", matrix.stride),
            }
        }
        ins!(self, "add.u32 {round}, {round}, 1");
        let more = self.compute(Class::Pred, "setp.lt.u32", &[&round.to_string(), &depth.to_string()]);
        ins!(self, "@{more} bra {first}");
    }

    /// An element some rows and columns behind an index.
    pub(super) fn element_at(
        &mut self,
        matrix: &MatrixPlace,
        index: Register,
        row: u32,
        column: u32,
    ) -> Register {
        let spot = self.spot_behind(matrix, index, row, column);
        let to = self.fresh(loaded_class(matrix.ty));
        self.load_to(to, matrix.operand.memory, &spot);
        to
    }

    /// The same as it is multiplied.
    fn factor_at(&mut self, matrix: &MatrixPlace, index: Register, row: u32, column: u32) -> Register {
        let element = self.element_at(matrix, index, row, column);
        match matrix.ty {
            Type::F16 | Type::Bf16 => self.widen(matrix.ty, &element.to_string()),
            Type::F32 => self.rounded_to_tf32(element),
            _ => element,
        }
    }

    /// To 10 bits of fraction, to nearest, ties away from zero. Infinities and NaN stay.
    fn rounded_to_tf32(&mut self, single: Register) -> Register {
        let bits = self.compute(Class::B32, "mov.b32", &[&single.to_string()]).to_string();
        let magnitude = self.compute(Class::B32, "and.b32", &[&bits, "2147483647"]).to_string();
        let sum = self.compute(Class::B32, "add.u32", &[&bits, "4096"]).to_string();
        let rounded = self.compute(Class::B32, "and.b32", &[&sum, "-8192"]).to_string();
        let is_finite = self.compute(Class::Pred, "setp.lt.u32", &[&magnitude, "2139095040"]).to_string();
        let bits = self.compute(Class::B32, "selp.b32", &[&rounded, &bits, &is_finite]).to_string();
        self.compute(Class::F32, "mov.b32", &[&bits])
    }
}
