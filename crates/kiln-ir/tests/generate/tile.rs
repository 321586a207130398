//! Tiles: products of whole numbers, whose sums are exact in whatever order a device adds them.
//!
//! Every block has its place in a buffer of sums, to which its warp stores the tile and from which it loads it. A lane always
//! accesses the same elements there, so nothing has to be ordered.

use kiln_ir::{
    Axis, BinaryOp, Block, BufferId, Builtin, Literal, MatrixLayout, MatrixOperand, MemoryOperand, Op,
    Operand, Role, StatementKind, Tile, TileId, TileOp, Type,
};

use super::Generator;
use super::expression::statement;

/// Types that tiles multiply, with the type of the sum and the depth of one step.
pub(super) const FACTORS: [(Type, Type, u32); 5] = [
    (Type::F16, Type::F32, 16),
    (Type::Bf16, Type::F32, 16),
    (Type::F32, Type::F32, 8),
    (Type::I8, Type::I32, 32),
    (Type::F64, Type::F64, 4),
];

/// The tile of a program, and the buffers it uses.
#[derive(Clone, Copy)]
pub(super) struct Tiled {
    factors: BufferId,
    sums: BufferId,
    sum: Type,
    step: u32,
    rows: u32,
    columns: u32,
}

impl Generator {
    /// Declares a tile in some of the programs whose blocks are whole warps; what its buffers hold.
    pub(super) fn declare_tile(&mut self, blocks: u32) -> Vec<Vec<u8>> {
        if self.draft.block.iter().product::<u32>() % 32 != 0 || self.random.below(2) == 0 {
            return Vec::new();
        }
        let (ty, sum, step) = FACTORS[self.random.below(FACTORS.len())];
        let (rows, columns) = (16 * (1 + self.random.below(2) as u32), 8 * (1 + self.random.below(3) as u32));
        self.draft.tiles.push(Tile { name: "sum".to_owned(), element: sum, rows, columns });
        let factors = self.add_buffer("factors", ty, Role::Input);
        let sums = self.add_buffer("sums", sum, Role::InOut);
        self.tiled = Some(Tiled { factors, sums, sum, step, rows, columns });
        let count = self.random.below(700);
        let size = ty.bytes() as usize;
        let number = |_| self.small_number(ty).bits().to_le_bytes()[..size].to_vec();
        let factors: Vec<u8> = (0..count).flat_map(number).collect();
        // Sometimes shorter than what the blocks store.
        let elements = (blocks * rows * columns).saturating_sub(self.random.below(3) as u32 * 50);
        vec![factors, vec![0; elements as usize * sum.bytes() as usize]]
    }

    fn small_number(&mut self, ty: Type) -> Literal {
        let number = self.random.below(9) as i32 - 4;
        match ty.is_float() {
            true => Literal::float(ty, f64::from(number)),
            false => Literal::new(ty, number as u64),
        }
    }

    /// An operation on the tile, where all threads come.
    pub(super) fn tile(&mut self, block: &mut Block) {
        let Some(tiled) = self.tiled.filter(|_| self.uniform) else { return self.operation(block) };
        let tile = TileId(0);
        let op = match self.random.below(6) {
            0 => TileOp::Fill { tile, value: self.small_number(tiled.sum).into() },
            1 => TileOp::Load { tile, from: self.own_sums(block, tiled) },
            2 => TileOp::Store { tile, to: self.own_sums(block, tiled) },
            _ => {
                let depth = tiled.step * (1 + self.random.below(2) as u32);
                TileOp::MultiplyAdd {
                    tile,
                    a: self.factor(block, tiled),
                    b: self.factor(block, tiled),
                    depth,
                }
            }
        };
        block.push(statement(StatementKind::Tile(op)));
    }

    /// Stores the tile, if all threads come here.
    pub(super) fn store_tile(&mut self, block: &mut Block) {
        let Some(tiled) = self.tiled.filter(|_| self.uniform) else { return };
        let op = TileOp::Store { tile: TileId(0), to: self.own_sums(block, tiled) };
        block.push(statement(StatementKind::Tile(op)));
    }

    /// The number of the block, which is the same for its threads.
    fn block_number(&mut self, block: &mut Block, times: u32) -> Operand {
        let scope = self.scope.len();
        let (ty, b) = (Type::U32, Literal::from(times).into());
        let a = self.add(block, Op::Builtin(Builtin::Block(Axis::X)), ty);
        let number = self.add(block, Op::Binary { op: BinaryOp::Mul, ty, a, b }, ty);
        self.scope.truncate(scope);
        number
    }

    fn own_sums(&mut self, block: &mut Block, tiled: Tiled) -> MatrixOperand {
        MatrixOperand {
            memory: MemoryOperand::Buffer(tiled.sums),
            start: self.block_number(block, tiled.rows * tiled.columns),
            stride: Literal::from(tiled.columns).into(),
            layout: MatrixLayout::RowMajor,
        }
    }

    /// A matrix somewhere in the factors, partly out of range.
    fn factor(&mut self, block: &mut Block, tiled: Tiled) -> MatrixOperand {
        let start = match self.random.below(4) {
            0 => self.block_number(block, 17),
            1 => Literal::from(-(self.random.below(40) as i32)).into(),
            _ => Literal::from(self.random.below(60) as u64).into(),
        };
        let stride = Literal::from(self.random.below(40) as u32).into();
        let layout = MatrixLayout::ALL[self.random.below(2)];
        MatrixOperand { memory: MemoryOperand::Buffer(tiled.factors), start, stride, layout }
    }
}
