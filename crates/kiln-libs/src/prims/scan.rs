//! Inclusive and exclusive scans (prefix sums, minima, maxima).

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::check::Check;
use super::element::Numeric;
use super::plan::{Argument, Plan};
use super::primitive_call::Operation;
use super::tile_state::Tiles;
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Bytes of a tile: twelve accesses of 16 bytes for each thread.
const TILE_BYTES: u64 = THREADS as u64 * 16 * 12;

/// How elements are combined with those before them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanOperator {
    /// Sums. Integers wrap.
    Sum,
    /// Minima so far. NaN are left out; a minimum of NaN alone is NaN.
    Min,
    /// Maxima so far. NaN are left out; a maximum of NaN alone is NaN.
    Max,
}

impl ScanOperator {
    const fn family(self) -> &'static str {
        match self {
            Self::Sum => "scan_sum",
            Self::Min => "scan_min",
            Self::Max => "scan_max",
        }
    }

    fn identity<T: Numeric>(self) -> T {
        match self {
            Self::Sum => T::ZERO,
            Self::Min => T::NO_MIN,
            Self::Max => T::NO_MAX,
        }
    }
}

/// A [`scan_inclusive`](super::Primitives::scan_inclusive) or [`scan_exclusive`](super::Primitives::scan_exclusive).
#[derive(Clone, Debug)]
pub struct Scan<T> {
    pub(super) input: GpuRef<T>,
    pub(super) operator: ScanOperator,
    pub(super) output: GpuRef<T>,
    /// What an exclusive scan begins with.
    pub(super) first: Option<T>,
}

impl<T: Numeric> Scan<T> {
    /// An inclusive scan.
    pub(crate) fn new(input: GpuRef<T>, operator: ScanOperator, output: GpuRef<T>) -> Self {
        Self { input, operator, output, first: None }
    }

    /// The same, exclusive.
    pub(crate) fn exclusive(self, first: T) -> Self {
        Self { first: Some(first), ..self }
    }
}

impl<T: Numeric> Scan<T> {
    fn name(&self) -> Check {
        Check(if self.first.is_some() { "prims.scan_exclusive" } else { "prims.scan_inclusive" })
    }
}

impl<T: Numeric> Operation for Scan<T> {
    fn check(&self) -> Result<()> {
        let check = self.name();
        check.length_of(("output", &self.output), ("input", &self.input))?;
        check.same_or_apart(("input", &self.input), ("output", &self.output))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let len = self.input.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let tiles = Tiles::new((len * size_of::<T>() as u64).div_ceil(TILE_BYTES), size_of::<T>() as u64);
        let state = tiles.state(plan)?;
        let arguments = vec![
            Argument::read(&self.input)?,
            Argument::write(&self.output)?,
            Argument::value(len),
            Argument::value(self.first.unwrap_or_else(|| self.operator.identity())),
            Argument::value(u32::from(self.first.is_some())),
            Argument::read_write(&state)?,
            Argument::value(tiles.count as u32),
        ];
        plan.launch((self.operator.family(), T::NAME, "scan"), tiles.count, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(self.name().0).with("input", &self.input).with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}
