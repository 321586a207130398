//! Reductions of a buffer to one value.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::check::Check;
use super::element::Numeric;
use super::plan::{Argument, Plan};
use super::primitive_call::Operation;
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Bytes that a block combines at once: four accesses of 16 bytes for each thread.
const TILE_BYTES: u64 = THREADS as u64 * 16 * 4;
/// Values that the first launch leaves to the second at most. Fixed, so that sums of floats are the same on every device.
const MAX_PARTS: u64 = 4096;

const REDUCE: Check = Check("prims.reduce");

/// How elements are combined into one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOperator {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl ReduceOperator {
    const fn entry(self) -> &'static str {
        match self {
            Self::Sum => "reduce_sum",
            Self::Product => "reduce_product",
            Self::Min => "reduce_min",
            Self::Max => "reduce_max",
        }
    }
}

/// Which element is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Extreme {
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// A [`reduce`](super::Primitives::reduce).
#[derive(Clone, Debug)]
pub struct Reduce<T> {
    pub(super) input: GpuRef<T>,
    pub(super) operator: ReduceOperator,
    pub(super) output: GpuRef<T>,
}

impl<T: Numeric> Operation for Reduce<T> {
    fn check(&self) -> Result<()> {
        let check = REDUCE;
        check.length("output", &self.output, 1)?;
        check.apart(("input", &self.input), ("output", &self.output))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (name, len) = (("reduce", T::NAME, self.operator.entry()), self.input.len() as u64);
        let step = |plan: &mut Plan<'_>, from: &GpuRef<T>, parts: u64, to: &GpuRef<T>| {
            let len = Argument::value(from.len() as u64);
            plan.launch(name, parts, THREADS, vec![Argument::read(from)?, len, Argument::write(to)?])
        };
        let parts = (len * size_of::<T>() as u64).div_ceil(TILE_BYTES).clamp(1, MAX_PARTS);
        if parts == 1 {
            return step(plan, &self.input, 1, &self.output);
        }
        let sums = plan.scratch::<T>(parts)?;
        step(plan, &self.input, parts, &sums)?;
        step(plan, &sums, 1, &self.output)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(REDUCE.0).with("input", &self.input).with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}

/// An [`arg_min`](super::Primitives::arg_min) or [`arg_max`](super::Primitives::arg_max).
#[derive(Clone, Debug)]
pub struct ArgReduce<T> {
    pub(super) input: GpuRef<T>,
    pub(super) extreme: Extreme,
    pub(super) output: GpuRef<u64>,
}

impl<T: Numeric> ArgReduce<T> {
    fn name(&self) -> Check {
        match self.extreme {
            Extreme::Min => Check("prims.arg_min"),
            Extreme::Max => Check("prims.arg_max"),
        }
    }
}

impl<T: Numeric> Operation for ArgReduce<T> {
    fn check(&self) -> Result<()> {
        let check = self.name();
        if self.input.is_empty() {
            return check.refuse("the input has no elements".into(), "give at least one");
        }
        check.length("output", &self.output, 1)?;
        check.apart(("input", &self.input), ("output", &self.output))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let len = self.input.len() as u64;
        let parts = len.div_ceil(u64::from(THREADS) * 8).clamp(1, MAX_PARTS);
        let (orders, indices) = (plan.scratch::<u64>(parts)?, plan.scratch::<u64>(parts)?);
        let flip = match self.extreme {
            Extreme::Min => 0,
            Extreme::Max => u64::MAX,
        };
        let arguments = vec![
            Argument::read(&self.input)?,
            Argument::value(len),
            Argument::value(flip),
            Argument::write(&orders)?,
            Argument::write(&indices)?,
        ];
        plan.launch(("reduce", T::NAME, "arg_blocks"), parts, THREADS, arguments)?;
        let arguments = vec![
            Argument::read(&orders)?,
            Argument::read(&indices)?,
            Argument::value(parts),
            Argument::write(&self.output)?,
        ];
        plan.launch(("reduce", T::NAME, "arg_final"), 1, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(self.name().0).with("input", &self.input).with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}
