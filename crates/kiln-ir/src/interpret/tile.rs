//! Operations on tiles in the interpreter.

use super::launch::{ThreadOrder, World};
use super::memory::Access;
use super::outcome::InterpretError;
use super::thread::{Surroundings, Thread, elements};
use crate::evaluate::{self, integer};
use crate::operation::{MatrixLayout, MatrixOperand, TileOp};
use crate::scalar_type::Type;

/// Executes an operation of a warp on one of its tiles. The operands are those of any lane.
pub(super) fn execute(
    op: &TileOp,
    lane: &Thread,
    tiles: &mut [Vec<u64>],
    world: &mut World<'_>,
    around: &mut Surroundings,
) -> Result<(), InterpretError> {
    let declared = &world.draft.tiles[op.tile().index()];
    let shape = [declared.rows, declared.columns];
    let tile = &mut tiles[op.tile().index()];
    match op {
        TileOp::Fill { value, .. } => tile.fill(lane.operand(*value)),
        TileOp::Load { from, .. } => *tile = load(from, shape, lane, world, around)?,
        TileOp::Store { to, .. } => store(to, shape, tile, lane, world, around)?,
        TileOp::MultiplyAdd { a, b, depth, .. } => {
            let ty = world.draft.element(a.memory).unwrap_or(Type::F32);
            let mut factors = |matrix: &MatrixOperand, shape: [u32; 2]| {
                let bits = load(matrix, shape, lane, world, around)?;
                Ok(bits.into_iter().map(|bits| evaluate::tile::factor(ty, bits)).collect::<Vec<u64>>())
            };
            let (left, right) = (factors(a, [shape[0], *depth])?, factors(b, [*depth, shape[1]])?);
            let (columns, depth) = (shape[1] as usize, *depth as usize);
            for (at, sum) in tile.iter_mut().enumerate() {
                let (row, column) = (at / columns, at % columns);
                for k in 0..depth {
                    let product = [left[row * depth + k], right[k * columns + column]];
                    *sum = evaluate::tile::add_product(ty, product, *sum);
                }
            }
            world.tile_products += (tile.len() * depth) as u64;
        }
    }
    Ok(())
}

/// The index of an element.
fn index(matrix: &MatrixOperand, [row, column]: [u64; 2], lane: &Thread, world: &World<'_>) -> i128 {
    let number = |operand| {
        let ty = world.draft.type_of(operand).unwrap_or(Type::U64);
        integer::value(ty, lane.operand(operand)) as u64
    };
    let (line, within) = match matrix.layout {
        MatrixLayout::RowMajor => (row, column),
        MatrixLayout::ColumnMajor => (column, row),
    };
    let start_of_line = number(matrix.start).wrapping_add(number(matrix.stride).wrapping_mul(line));
    i128::from(start_of_line.wrapping_add(within))
}

/// The elements of a matrix, row by row.
fn load(
    matrix: &MatrixOperand,
    [rows, columns]: [u32; 2],
    lane: &Thread,
    world: &mut World<'_>,
    around: &mut Surroundings,
) -> Result<Vec<u64>, InterpretError> {
    let mut loaded = Vec::with_capacity(rows as usize * columns as usize);
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let index = index(matrix, [row.into(), column.into()], lane, world);
        let mut memory = elements(matrix.memory, world.draft, world.buffers, around);
        loaded.push(memory.access(index, Access::Load, &mut world.covered_out_of_range)?);
    }
    Ok(loaded)
}

/// Stores a tile, in the order of the launch: which of two elements of one place remains depends on it.
fn store(
    matrix: &MatrixOperand,
    [_, columns]: [u32; 2],
    tile: &[u64],
    lane: &Thread,
    world: &mut World<'_>,
    around: &mut Surroundings,
) -> Result<(), InterpretError> {
    for at in 0..tile.len() {
        let at = match world.order {
            ThreadOrder::Ascending => at,
            ThreadOrder::Descending => tile.len() - 1 - at,
        };
        let place = [at as u64 / u64::from(columns), at as u64 % u64::from(columns)];
        let index = index(matrix, place, lane, world);
        let mut memory = elements(matrix.memory, world.draft, world.buffers, around);
        memory.access(index, Access::Store(tile[at]), &mut world.covered_out_of_range)?;
    }
    Ok(())
}
