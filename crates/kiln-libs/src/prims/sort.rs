//! Radix sort of keys, or of keys with values.

use std::ops::Range;

use kiln_mem::StreamKey;
use kiln_runtime::{Element, GpuRef};

use super::check::{Check, begin_together};
use super::element::{NumberKind, Numeric};
use super::embedded_ptx::items_of;
use super::plan::{Argument, Plan};
use super::primitive_call::{Operation, PrimitiveCall};
use crate::Result;
use crate::operands::Operands;

/// Threads of a block in a pass.
const THREADS: u64 = 384;
/// Threads of a block that counts digits.
const COUNT_THREADS: u32 = 256;
/// Blocks that count digits at most.
const MAX_COUNT_BLOCKS: u64 = 2048;
/// Values of a digit.
const DIGITS: u64 = 256;
/// Elements at most: a word that tiles exchange has 30 bits for a count.
pub(crate) const MAX_LEN: u64 = (1 << 30) - 1;

const SORT: Check = Check("prims.sort");
const SORT_BY_KEY: Check = Check("prims.sort_by_key");

/// The order of keys: which bits are flipped before they are compared as unsigned numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeyOrder {
    /// Flipped in all keys.
    pub(super) sign: u64,
    /// Flipped in keys whose highest bit is set.
    pub(super) magnitude: u64,
}

impl KeyOrder {
    pub(super) fn new<K: Numeric>(is_descending: bool) -> Self {
        let bits = 8 * size_of::<K>() as u32;
        let (top, all) = (1 << (bits - 1), u64::MAX >> (64 - bits));
        let (sign, magnitude) = match K::KIND {
            NumberKind::Unsigned => (0, 0),
            NumberKind::Signed => (top, 0),
            NumberKind::Float => (top, all ^ top),
        };
        Self { sign: if is_descending { sign ^ all } else { sign }, magnitude }
    }

    /// Both as arguments of a kernel for such keys.
    pub(super) fn arguments<K>(self) -> [Argument; 2] {
        [self.sign, self.magnitude].map(|mask| {
            if size_of::<K>() == 8 { Argument::value(mask) } else { Argument::value(mask as u32) }
        })
    }
}

/// A [`sort`](super::Primitives::sort).
#[derive(Clone, Debug)]
pub struct Sort<K> {
    input: GpuRef<K>,
    output: GpuRef<K>,
    pub(super) is_descending: bool,
    bits: Option<Range<u32>>,
}

impl<K> Sort<K> {
    pub(crate) fn new(input: GpuRef<K>, output: GpuRef<K>) -> Self {
        Self { input, output, is_descending: false, bits: None }
    }

    /// Compares these bits only.
    pub(crate) fn with_bits(self, bits: Range<u32>) -> Self {
        Self { bits: Some(bits), ..self }
    }
}

/// A [`sort_by_key`](super::Primitives::sort_by_key).
#[derive(Clone, Debug)]
pub struct SortByKey<K, V> {
    pub(crate) keys: Sort<K>,
    pub(crate) values: GpuRef<V>,
    pub(crate) sorted_values: GpuRef<V>,
}

impl<K: Numeric> PrimitiveCall<'_, Sort<K>> {
    /// The greatest key first. Equal keys keep their order.
    pub fn descending(mut self) -> Self {
        self.operation.is_descending = true;
        self
    }

    /// Compares these bits of the keys only, 0 the lowest, after floats and signed integers were brought into the order of unsigned ones. Fewer bits are
    /// sorted faster.
    pub fn bits(mut self, bits: Range<u32>) -> Self {
        self.operation.bits = Some(bits);
        self
    }
}

impl<K: Numeric, V: Element> PrimitiveCall<'_, SortByKey<K, V>> {
    /// As for a [`sort`](super::Primitives::sort) without values.
    pub fn descending(mut self) -> Self {
        self.operation.keys.is_descending = true;
        self
    }

    /// As for a [`sort`](super::Primitives::sort) without values.
    pub fn bits(mut self, bits: Range<u32>) -> Self {
        self.operation.keys.bits = Some(bits);
        self
    }
}

impl<K: Numeric> Sort<K> {
    fn bits(&self) -> Range<u32> {
        self.bits.clone().unwrap_or(0..8 * size_of::<K>() as u32)
    }

    fn check_keys(&self, check: Check, (from, to): (&str, &str)) -> Result<()> {
        check.length_of((to, &self.output), (from, &self.input))?;
        check.same_or_apart((from, &self.input), (to, &self.output))?;
        check.at_most(from, self.input.len(), MAX_LEN)?;
        let (bits, width) = (self.bits(), 8 * size_of::<K>() as u32);
        if bits.start > bits.end || bits.end > width {
            let what = format!("bits {} to {} of keys that have {width}", bits.start, bits.end);
            return check.refuse(what, "give a range inside of the key, the lower end first");
        }
        Ok(())
    }
}

impl<K: Numeric> Operation for Sort<K> {
    fn check(&self) -> Result<()> {
        self.check_keys(SORT, ("input", "output"))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        Passes { keys: self, values: None::<(&GpuRef<u32>, &GpuRef<u32>)> }.plan(plan)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(SORT.0).with("input", &self.input).with("output", &self.output)
    }

    fn home(&self) -> StreamKey {
        self.output.home()
    }
}

impl<K: Numeric, V: Element> Operation for SortByKey<K, V> {
    fn check(&self) -> Result<()> {
        let check = SORT_BY_KEY;
        self.keys.check_keys(check, ("keys", "sorted_keys"))?;
        if ![4, 8].contains(&size_of::<V>()) {
            let what = format!("values of {} bytes", size_of::<V>());
            return check.refuse(what, "sort indices of four or eight bytes, and gather by them");
        }
        check.length_of(("values", &self.values), ("keys", &self.keys.input))?;
        check.length_of(("sorted_values", &self.sorted_values), ("keys", &self.keys.input))?;
        check.same_or_apart(("values", &self.values), ("sorted_values", &self.sorted_values))?;
        check.apart(("keys", &self.keys.input), ("sorted_values", &self.sorted_values))?;
        check.apart(("values", &self.values), ("sorted_keys", &self.keys.output))?;
        check.apart(("sorted_keys", &self.keys.output), ("sorted_values", &self.sorted_values))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        Passes { keys: &self.keys, values: Some((&self.values, &self.sorted_values)) }.plan(plan)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(SORT_BY_KEY.0)
            .with("keys", &self.keys.input)
            .with("values", &self.values)
            .with("sorted_keys", &self.keys.output)
            .with("sorted_values", &self.sorted_values)
    }

    fn home(&self) -> StreamKey {
        self.keys.output.home()
    }
}

/// The passes of a sort. The last one writes the output; the others alternate between it and temporary memory.
struct Passes<'a, K, V> {
    keys: &'a Sort<K>,
    values: Option<(&'a GpuRef<V>, &'a GpuRef<V>)>,
}

/// Keys and, if there are any, values.
#[derive(Clone)]
struct Side<K, V> {
    keys: GpuRef<K>,
    values: Option<GpuRef<V>>,
}

impl<K: Numeric, V: Element> Passes<'_, K, V> {
    /// The type that the kernels are named by, and elements of a thread, as they are compiled.
    fn kernels(&self) -> (&'static str, u64) {
        let of = match (size_of::<K>(), self.values.map(|_| size_of::<V>())) {
            (4, None) => "key_u32",
            (4, Some(4)) => "key_u32_value_u32",
            (4, Some(_)) => "key_u32_value_u64",
            (_, None) => "key_u64",
            (_, Some(4)) => "key_u64_value_u32",
            (_, Some(_)) => "key_u64_value_u64",
        };
        (of, items_of("sort", of))
    }

    fn scratch(&self, plan: &mut Plan<'_>) -> Result<Side<K, V>> {
        let len = self.keys.input.len() as u64;
        let values = self.values.map(|_| plan.scratch::<V>(len)).transpose()?;
        Ok(Side { keys: plan.scratch(len)?, values })
    }

    fn copy(plan: &mut Plan<'_>, from: &Side<K, V>, to: &Side<K, V>) -> Result<()> {
        plan.copy(&from.keys, &to.keys)?;
        match from.values.as_ref().zip(to.values.as_ref()) {
            Some((from, to)) => plan.copy(from, to),
            None => Ok(()),
        }
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (len, bits) = (self.keys.input.len() as u64, self.keys.bits());
        let input = Side { keys: self.keys.input.clone(), values: self.values.map(|(from, _)| from.clone()) };
        let output = Side { keys: self.keys.output.clone(), values: self.values.map(|(_, to)| to.clone()) };
        let passes = bits.len().div_ceil(8);
        if len < 2 || passes == 0 {
            return Self::copy(plan, &input, &output);
        }
        let counts = self.count(plan, passes as u64)?;
        let (of, items) = self.kernels();
        let tiles = len.div_ceil(THREADS * items);
        let state = plan.scratch::<u32>((tiles + 1) * DIGITS)?;
        let other = if passes > 1 { Some(self.scratch(plan)?) } else { None };
        let mut from = input;
        // An odd number of passes would read and write the same memory in the first one.
        let values = from.values.as_ref().zip(output.values.as_ref());
        let is_shared = begin_together(&from.keys, &output.keys)
            || values.is_some_and(|(from, to)| begin_together(from, to));
        if is_shared && passes % 2 == 1 {
            let copied = self.scratch(plan)?;
            Self::copy(plan, &from, &copied)?;
            from = copied;
        }
        for pass in 0..passes {
            let to = match &other {
                Some(other) if (passes - 1 - pass) % 2 == 1 => other.clone(),
                _ => output.clone(),
            };
            plan.zero(&state)?;
            let arguments = self.pass_arguments(pass, &from, &to, &counts, &state)?;
            plan.launch(("sort", of, "sort_pass"), tiles, THREADS as u32, arguments)?;
            from = to;
        }
        Ok(())
    }

    /// Counts all digits, and makes places of the counts.
    fn count(&self, plan: &mut Plan<'_>, passes: u64) -> Result<GpuRef<u32>> {
        let (len, bits, (of, _)) = (self.keys.input.len() as u64, self.keys.bits(), self.kernels());
        let counts = plan.scratch::<u32>(passes * DIGITS)?;
        plan.zero(&counts)?;
        let mut arguments = vec![
            Argument::read(&self.keys.input)?,
            Argument::value(len as u32),
            Argument::value(bits.start),
            Argument::value(bits.end),
        ];
        arguments.extend(KeyOrder::new::<K>(self.keys.is_descending).arguments::<K>());
        arguments.push(Argument::read_write(&counts)?);
        let blocks = len.div_ceil(u64::from(COUNT_THREADS) * 16).min(MAX_COUNT_BLOCKS);
        plan.launch(("sort", of, "sort_count"), blocks, COUNT_THREADS, arguments)?;
        plan.launch(
            ("sort", of, "sort_starts"),
            passes,
            DIGITS as u32,
            vec![Argument::read_write(&counts)?],
        )?;
        Ok(counts)
    }

    fn pass_arguments(
        &self,
        pass: usize,
        from: &Side<K, V>,
        to: &Side<K, V>,
        counts: &GpuRef<u32>,
        state: &GpuRef<u32>,
    ) -> Result<Vec<Argument>> {
        let bits = self.keys.bits();
        let shift = bits.start + 8 * pass as u32;
        let mut arguments = vec![Argument::read(&from.keys)?, Argument::write(&to.keys)?];
        if let Some((from, to)) = from.values.as_ref().zip(to.values.as_ref()) {
            arguments.extend([Argument::read(from)?, Argument::write(to)?]);
        }
        arguments.extend([
            Argument::value(self.keys.input.len() as u32),
            Argument::value(shift),
            Argument::value((bits.end - shift).min(8)),
        ]);
        // The first pass folds the keys into the order of unsigned numbers, and the last one unfolds them.
        let (order, unchanged) =
            (KeyOrder::new::<K>(self.keys.is_descending), KeyOrder { sign: 0, magnitude: 0 });
        let is_last = shift + 8 >= bits.end;
        arguments.extend(if pass == 0 { order } else { unchanged }.arguments::<K>());
        arguments.extend(if is_last { order } else { unchanged }.arguments::<K>());
        let digits = DIGITS as usize;
        arguments.push(Argument::read(&counts.view(pass * digits..(pass + 1) * digits)?)?);
        arguments.push(Argument::read_write(state)?);
        Ok(arguments)
    }
}
