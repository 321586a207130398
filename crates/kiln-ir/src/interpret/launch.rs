//! A launch of the interpreter.

use std::sync::Arc;

use super::block::{Block, Progress};
use super::bytecode::{Step, code};
use super::outcome::{InterpretError, InterpretOutcome, OutOfRange};
use crate::declaration::Extent;
use crate::evaluate::Mode;
use crate::literal::Literal;
use crate::program::{Draft, Program};
use crate::statement::BarrierScope;

/// In which order the threads of a block run, and the blocks of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ThreadOrder {
    /// The lowest number first.
    #[default]
    Ascending,
    /// The highest number first.
    Descending,
}

/// How a program is interpreted.
///
/// ```
/// use kiln_ir::{Interpreter, Program};
///
/// let twice = Program::build("twice", |k| {
///     let x = k.in_out::<u32>("x");
///     let i = k.global_x();
///     x.store(i, x.load(i) * 2u32);
/// })?;
/// let mut x = vec![vec![1, 0, 0, 0, 7, 0, 0, 0]];
/// let outcome = Interpreter::new([1, 1, 1]).run(&twice, &[], &mut x)?;
/// assert_eq!(x[0], [2, 0, 0, 0, 14, 0, 0, 0]);
/// assert_eq!(outcome.out_of_range.stores, 254);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// The order of threads and blocks.
    pub order: ThreadOrder,
    /// The most steps of all threads together.
    pub step_limit: u64,
}

impl Interpreter {
    /// A launch over a grid, in ascending order.
    pub fn new(grid: [u32; 3]) -> Self {
        Self { grid, dynamic_shared_bytes: 0, order: ThreadOrder::Ascending, step_limit: 1 << 30 }
    }

    /// Runs a program: `scalars` in the order of its declarations, `buffers` as little-endian bytes.
    ///
    /// # Errors
    /// If an argument does not fit, or something stopped the launch; then the buffers hold what was written so far.
    pub fn run(
        &self,
        program: &Program,
        scalars: &[Literal],
        buffers: &mut [Vec<u8>],
    ) -> Result<InterpretOutcome, InterpretError> {
        check(program, scalars, buffers)?;
        let expanded = program.expanded();
        let covered = expanded.over.map(|over| {
            let (bytes, element) = (buffers[over.index()].len(), expanded.buffers[over.index()].element);
            bytes as u64 / element.bytes()
        });
        let mut world = World {
            draft: &expanded,
            code: code(&expanded).into(),
            grid: self.grid,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            mode: Mode { flush: expanded.flush },
            order: self.order,
            scalars,
            buffers,
            covered,
            covered_out_of_range: OutOfRange::default(),
            surplus_out_of_range: OutOfRange::default(),
            steps: 0,
            tile_products: 0,
            step_limit: self.step_limit,
        };
        self.run_blocks(&mut world)?;
        let World { covered_out_of_range, surplus_out_of_range, steps, tile_products, .. } = world;
        let out_of_range = covered_out_of_range.plus(surplus_out_of_range);
        Ok(InterpretOutcome { out_of_range, covered_out_of_range, steps, tile_products })
    }

    fn run_blocks(&self, world: &mut World<'_>) -> Result<(), InterpretError> {
        let [width, height, depth] = self.grid;
        let places =
            (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])));
        let mut places: Box<dyn Iterator<Item = [u32; 3]>> = match self.order {
            ThreadOrder::Ascending => Box::new(places),
            ThreadOrder::Descending => Box::new(places.collect::<Vec<_>>().into_iter().rev()),
        };
        let meets = world.code.iter().any(|step| matches!(step, Step::Barrier(BarrierScope::Grid)));
        if !meets {
            return places.try_for_each(|at| Block::new(at, world).run(world).map(drop));
        }
        let mut blocks: Vec<Block> = places.map(|at| Block::new(at, world)).collect();
        while !blocks.is_empty() {
            let mut waiting = Vec::new();
            for mut block in blocks {
                if block.run(world)? == Progress::AtGridBarrier {
                    waiting.push(block);
                }
            }
            waiting.iter_mut().for_each(Block::release);
            blocks = waiting;
        }
        Ok(())
    }
}

/// What all threads of a launch see.
pub(super) struct World<'w> {
    pub(super) draft: &'w Draft,
    pub(super) code: Arc<[Step]>,
    pub(super) grid: [u32; 3],
    pub(super) dynamic_shared_bytes: u32,
    pub(super) mode: Mode,
    pub(super) order: ThreadOrder,
    pub(super) scalars: &'w [Literal],
    pub(super) buffers: &'w mut [Vec<u8>],
    /// The length of the buffer that the program runs over.
    pub(super) covered: Option<u64>,
    /// Of threads that have an element of that buffer, or of all threads if there is none.
    pub(super) covered_out_of_range: OutOfRange,
    /// Of the other threads.
    pub(super) surplus_out_of_range: OutOfRange,
    steps: u64,
    pub(super) tile_products: u64,
    step_limit: u64,
}

impl World<'_> {
    pub(super) fn count_step(&mut self) -> Result<(), InterpretError> {
        self.steps += 1;
        if self.steps > self.step_limit {
            return Err(InterpretError::StepLimit { limit: self.step_limit });
        }
        Ok(())
    }
}

fn check(program: &Program, scalars: &[Literal], buffers: &[Vec<u8>]) -> Result<(), InterpretError> {
    let fault = |what: String| Err(InterpretError::argument(program, what));
    if scalars.len() != program.scalars.len() || buffers.len() != program.buffers.len() {
        return fault(format!(
            "it takes {} scalars and {} buffers, but {} and {} were given",
            program.scalars.len(),
            program.buffers.len(),
            scalars.len(),
            buffers.len()
        ));
    }
    for (scalar, given) in program.scalars.iter().zip(scalars) {
        if scalar.ty != given.ty() {
            return fault(format!("scalar `{}` is a {}, not a {}", scalar.name, scalar.ty, given.ty()));
        }
    }
    for (buffer, given) in program.buffers.iter().zip(buffers) {
        let (bytes, size) = (given.len() as u64, buffer.element.bytes());
        if bytes % size != 0 {
            return fault(format!("{bytes} bytes for `{}` are no whole elements of {size}", buffer.name));
        }
        let expected = match buffer.extent {
            Extent::Dynamic => continue,
            Extent::Static(count) => count,
            Extent::Like(other) => {
                let (bytes, element) = (buffers[other.index()].len(), program.buffers[other.index()].element);
                bytes as u64 / element.bytes()
            }
        };
        if bytes / size != expected {
            return fault(format!(
                "`{}` has {} elements, but must have {expected}",
                buffer.name,
                bytes / size
            ));
        }
    }
    Ok(())
}
