//! Histograms: how many elements fall into each bin.

use std::ops::Range;

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::check::Check;
use super::element::{Comparable, NumberKind};
use super::plan::{Argument, Plan};
use super::primitive_call::Operation;
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Blocks at most; each goes over the input in steps.
const MAX_BLOCKS: u64 = 1056;
/// Elements of a thread for which another block is worth while.
const ELEMENTS: u64 = 16;
/// Bins that are counted in shared memory first: 32 KiB, which every device has.
const SHARED_BINS: usize = 8192;
/// Bins at most.
const MAX_BINS: u64 = (1 << 31) - 1;

const CHECK: Check = Check("prims.histogram");

/// A [`histogram`](super::Primitives::histogram).
#[derive(Clone, Debug)]
pub struct Histogram<T> {
    pub(super) input: GpuRef<T>,
    pub(super) values: Range<T>,
    pub(super) output: GpuRef<u64>,
}

impl<T: Comparable> Histogram<T> {
    /// Bins for each unit, for floats.
    fn scale(&self) -> f64 {
        self.output.len() as f64 / (self.values.end.to_f64() - self.values.start.to_f64())
    }

    /// The ends in words.
    fn range_text(&self) -> String {
        format!("{} to {}", self.values.start.to_text(), self.values.end.to_text())
    }

    /// How far the ends are apart, for integers.
    fn width(&self) -> u128 {
        (self.values.end.to_i128() - self.values.start.to_i128()).max(0) as u128
    }
}

impl<T: Comparable> Operation for Histogram<T> {
    fn check(&self) -> Result<()> {
        let check = CHECK;
        check.apart(("input", &self.input), ("output", &self.output))?;
        if self.output.is_empty() {
            return check.refuse("there are no bins".into(), "use an output of one element for each bin");
        }
        if self.output.len() as u64 > MAX_BINS {
            let what = format!("`output` has {} bins, more than {MAX_BINS}", self.output.len());
            return check.refuse(what, "use fewer bins, or count parts of the range one after the other");
        }
        let (low, high) = (self.values.start, self.values.end);
        if !(low < high && low.to_f64().is_finite() && high.to_f64().is_finite()) {
            let what = format!("bins from {}", self.range_text());
            return check.refuse(what, "give finite bounds, the lower one first");
        }
        if !(high.to_f64() - low.to_f64()).is_finite() {
            let what = format!("bins from {}, whose distance is no finite number", self.range_text());
            return check.refuse(what, "bring the bounds closer together");
        }
        if T::KIND == NumberKind::Float && !self.scale().is_finite() {
            let what = format!("{} bins from {}", self.output.len(), self.range_text());
            return check.refuse(what, "use fewer bins or a wider range: one bin is too narrow for a number");
        }
        if T::KIND != NumberKind::Float && self.width() * self.output.len() as u128 > u128::from(u64::MAX) {
            let what = format!("{} bins over {} values", self.output.len(), self.width());
            return check.refuse(what, "use fewer bins or a smaller range");
        }
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (len, bins) = (self.input.len() as u64, self.output.len());
        plan.zero(&self.output)?;
        if len == 0 {
            return Ok(());
        }
        let mut arguments = vec![
            Argument::read(&self.input)?,
            Argument::value(len),
            Argument::value(bins as u32),
            Argument::read_write(&self.output)?,
            Argument::value(self.values.start),
        ];
        if T::KIND == NumberKind::Float {
            arguments.extend([Argument::value(self.values.end), Argument::value(self.scale())]);
        } else {
            arguments.push(Argument::value(self.width() as u64));
        }
        let blocks = len.div_ceil(u64::from(THREADS) * ELEMENTS).min(MAX_BLOCKS);
        let (entry, shared_bytes) =
            if bins <= SHARED_BINS { ("histogram_shared", bins as u32 * 4) } else { ("histogram_global", 0) };
        plan.launch_shared(("histogram", T::NAME, entry), blocks, THREADS, shared_bytes, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0).with("input", &self.input).with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}
