//! Top-k: the k largest or smallest elements, sorted.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::check::Check;
use super::element::{Numeric, bits_name};
use super::plan::{Argument, Plan};
use super::primitive_call::{Operation, PrimitiveCall};
use super::select::Kept;
use super::sort::{KeyOrder, MAX_LEN, Sort, SortByKey};
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Blocks that count digits at most.
const MAX_BLOCKS: u64 = 1056;
/// Elements of a thread for which another block is worth while.
const ELEMENTS: u64 = 16;
/// Values of a digit.
const DIGITS: u64 = 256;

const CHECK: Check = Check("prims.top");

/// A [`top`](super::Primitives::top).
#[derive(Clone, Debug)]
pub struct Top<T> {
    pub(super) input: GpuRef<T>,
    pub(super) output: GpuRef<T>,
    pub(super) indices: Option<GpuRef<u64>>,
    pub(super) is_smallest: bool,
}

impl<T: Numeric> PrimitiveCall<'_, Top<T>> {
    /// The smallest elements, in ascending order, instead of the largest ones.
    pub fn smallest(mut self) -> Self {
        self.operation.is_smallest = true;
        self
    }

    /// Writes the indices of the elements, too: one for each element of the output.
    pub fn indices(mut self, indices: &GpuRef<u64>) -> Self {
        self.operation.indices = Some(indices.clone());
        self
    }
}

impl<T: Numeric> Operation for Top<T> {
    fn check(&self) -> Result<()> {
        let check = CHECK;
        if self.output.len() > self.input.len() {
            let what = format!("the first {} of {} elements", self.output.len(), self.input.len());
            return check.refuse(what, "use an output that is not longer than the input");
        }
        check.at_most("output", self.output.len(), MAX_LEN)?;
        check.apart(("input", &self.input), ("output", &self.output))?;
        if let Some(indices) = &self.indices {
            check.length_of(("indices", indices), ("output", &self.output))?;
            check.apart(("input", &self.input), ("indices", indices))?;
            check.apart(("output", &self.output), ("indices", indices))?;
        }
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let wanted = self.output.len() as u64;
        if wanted == 0 {
            return Ok(());
        }
        let of = bits_name(size_of::<T>()).unwrap_or_default();
        let order = KeyOrder::new::<T>(!self.is_smallest);
        let chosen = self.choose(plan, of, order)?;
        let (elements, indices) = (plan.scratch::<T>(wanted)?, self.indices.as_ref());
        let found = indices.map(|_| plan.scratch::<u64>(wanted)).transpose()?;
        let kept = Kept { elements: Some(elements.clone()), indices: found.clone(), count: None };
        // Those below the bound, and behind them the first of those equal to it.
        for is_equal in [0_u32, 1] {
            let mut rule: Vec<Argument> = order.arguments::<T>().into();
            rule.extend([Argument::read(&chosen)?, Argument::value(is_equal), Argument::value(wanted)]);
            kept.plan(plan, ("select_order", of), &self.input, rule)?;
        }
        let mut keys = Sort::new(elements, self.output.clone());
        keys.is_descending = !self.is_smallest;
        match found.zip(indices) {
            Some((values, indices)) => SortByKey { keys, values, sorted_values: indices.clone() }.plan(plan),
            None => keys.plan(plan),
        }
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0)
            .with("input", &self.input)
            .with("output", &self.output)
            .with_some("indices", self.indices.as_ref())
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}

impl<T: Numeric> Top<T> {
    /// Finds the last of the wanted elements, digit by digit: its bits in the order, and how many equal to it are wanted.
    fn choose(&self, plan: &mut Plan<'_>, of: &'static str, order: KeyOrder) -> Result<GpuRef<u64>> {
        let (len, wanted) = (self.input.len() as u64, self.output.len() as u64);
        let (chosen, counts) = (plan.scratch::<u64>(2)?, plan.scratch::<u64>(DIGITS)?);
        plan.zero(&counts)?;
        plan.zero(&chosen)?;
        let blocks = len.div_ceil(u64::from(THREADS) * ELEMENTS).min(MAX_BLOCKS);
        for shift in (0..size_of::<T>() as u32).rev().map(|digit| 8 * digit) {
            let mut arguments = vec![Argument::read(&self.input)?, Argument::value(len)];
            arguments.extend(order.arguments::<T>());
            arguments.extend([
                Argument::value(shift),
                Argument::read(&chosen)?,
                Argument::read_write(&counts)?,
            ]);
            plan.launch(("top", of, "top_count"), blocks, THREADS, arguments)?;
            let arguments = vec![
                Argument::read_write(&counts)?,
                Argument::value(wanted),
                Argument::value(shift),
                Argument::read_write(&chosen)?,
            ];
            plan.launch(("top", of, "top_choose"), 1, DIGITS as u32, arguments)?;
        }
        Ok(chosen)
    }
}
