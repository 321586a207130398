//! Segmented reductions.

use kiln_mem::StreamKey;
use kiln_runtime::{Element, GpuRef};

use super::check::Check;
use super::element::Numeric;
use super::plan::{Argument, Plan};
use super::primitive_call::Operation;
use super::reduce::ReduceOperator;
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Segments of a block that gives each a warp.
const WARPS: u64 = THREADS as u64 / 32;
/// Elements of a segment, on average, from which on it gets a block.
const BLOCK_FROM: u64 = 512;
/// Blocks that work on segments at most; each takes several if there are more.
const MAX_BLOCKS: u64 = 1 << 16;

/// Integers that say where segments begin: `u32` and `u64`.
pub trait Offset: Element + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Offset for u32 {}
impl Offset for u64 {}

const CHECK: Check = Check("prims.reduce_segments");

/// A [`reduce_segments`](super::Primitives::reduce_segments).
#[derive(Clone, Debug)]
pub struct SegmentedReduce<T, O> {
    pub(super) input: GpuRef<T>,
    pub(super) offsets: GpuRef<O>,
    pub(super) operator: ReduceOperator,
    pub(super) output: GpuRef<T>,
}

impl ReduceOperator {
    const fn warp_entry(self) -> &'static str {
        match self {
            Self::Sum => "warp_sum",
            Self::Product => "warp_product",
            Self::Min => "warp_min",
            Self::Max => "warp_max",
        }
    }

    const fn block_entry(self) -> &'static str {
        match self {
            Self::Sum => "block_sum",
            Self::Product => "block_product",
            Self::Min => "block_min",
            Self::Max => "block_max",
        }
    }
}

impl<T: Numeric, O: Offset> Operation for SegmentedReduce<T, O> {
    fn check(&self) -> Result<()> {
        let check = CHECK;
        check.length("offsets", &self.offsets, self.output.len() + 1)?;
        check.apart(("input", &self.input), ("output", &self.output))?;
        check.apart(("offsets", &self.offsets), ("output", &self.output))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (len, segments) = (self.input.len() as u64, self.output.len() as u64);
        if segments == 0 {
            return Ok(());
        }
        let arguments = vec![
            Argument::read(&self.input)?,
            Argument::value(len),
            Argument::read(&self.offsets)?,
            Argument::value(u32::from(size_of::<O>() == 8)),
            Argument::value(segments),
            Argument::write(&self.output)?,
        ];
        let (entry, blocks) = if len / segments >= BLOCK_FROM {
            (self.operator.block_entry(), segments.min(MAX_BLOCKS))
        } else {
            (self.operator.warp_entry(), segments.div_ceil(WARPS))
        };
        plan.launch(("segments", T::NAME, entry), blocks, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0)
            .with("input", &self.input)
            .with("offsets", &self.offsets)
            .with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}
