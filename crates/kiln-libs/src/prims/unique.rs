//! Removes repeated elements, and counts the lengths of runs.

use kiln_mem::StreamKey;
use kiln_runtime::{Element, GpuRef};

use super::check::Check;
use super::plan::{Argument, Plan};
use super::primitive_call::{Operation, PrimitiveCall};
use super::select::{Kept, bits_of};
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Blocks that compute lengths at most.
const MAX_BLOCKS: u64 = 4096;

const CHECK: Check = Check("prims.unique");

/// A [`unique`](super::Primitives::unique).
#[derive(Clone, Debug)]
pub struct Unique<T> {
    pub(super) input: GpuRef<T>,
    pub(super) output: GpuRef<T>,
    pub(super) count: GpuRef<u64>,
    pub(super) lengths: Option<GpuRef<u64>>,
}

impl<T: Element> PrimitiveCall<'_, Unique<T>> {
    /// Writes the length of each run, too. There must be room for as many as the input has elements.
    pub fn lengths(mut self, lengths: &GpuRef<u64>) -> Self {
        self.operation.lengths = Some(lengths.clone());
        self
    }
}

impl<T: Element> Unique<T> {
    pub(crate) fn new(input: GpuRef<T>, output: GpuRef<T>, count: GpuRef<u64>) -> Self {
        Self { input, output, count, lengths: None }
    }

    fn kept(&self, indices: Option<GpuRef<u64>>) -> Kept<T> {
        Kept { elements: Some(self.output.clone()), indices, count: Some(self.count.clone()) }
    }
}

impl<T: Element> Operation for Unique<T> {
    fn check(&self) -> Result<()> {
        let check = CHECK;
        bits_of::<T>(check)?;
        if let Some(lengths) = &self.lengths {
            check.room("lengths", lengths, self.input.len())?;
        }
        self.kept(self.lengths.clone()).check(check, &self.input, "lengths")
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (of, len) = (bits_of::<T>(CHECK)?, self.input.len() as u64);
        let starts = match &self.lengths {
            Some(_) => Some(plan.scratch::<u64>(len)?),
            None => None,
        };
        self.kept(starts.clone()).plan(plan, ("select_changes", of), &self.input, [])?;
        let Some((lengths, starts)) = self.lengths.as_ref().zip(starts).filter(|_| len != 0) else {
            return Ok(());
        };
        let arguments = vec![
            Argument::read(&starts)?,
            Argument::read(&self.count)?,
            Argument::value(len),
            Argument::write(lengths)?,
        ];
        let blocks = len.div_ceil(u64::from(THREADS)).min(MAX_BLOCKS);
        plan.launch(("select_changes", of, "run_lengths"), blocks, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0)
            .with("input", &self.input)
            .with("output", &self.output)
            .with("count", &self.count)
            .with_some("lengths", self.lengths.as_ref())
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}
