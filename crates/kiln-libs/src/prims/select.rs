//! Selection (stream compaction): copies the elements that match a predicate or a flag.

use kiln_mem::StreamKey;
use kiln_runtime::{Element, GpuRef};

use super::check::Check;
use super::element::{Comparable, bits_name};
use super::plan::{Argument, Plan};
use super::primitive_call::{Operation, PrimitiveCall};
use super::tile_state::Tiles;
use crate::Result;
use crate::operands::Operands;

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Elements of a tile.
pub(super) const TILE: u64 = THREADS as u64 * 16;

const SELECT: Check = Check("prims.select");
const FLAGGED: Check = Check("prims.select_flagged");

/// Which elements are kept, by their value. A bound may be an infinity and is not NaN.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Predicate<T> {
    /// Those equal to it.
    Equal(T),
    /// Those not equal to it, so also NaN.
    NotEqual(T),
    /// Those less than it.
    Less(T),
    /// Those not greater than it, NaN excepted.
    AtMost(T),
    /// Those greater than it.
    Greater(T),
    /// Those not less than it, NaN excepted.
    AtLeast(T),
    /// Those not less than `first` and less than `end`, so none where both are equal. `end` is not less than `first`.
    Between {
        /// The least that is kept.
        first: T,
        /// The least above it that is not.
        end: T,
    },
}

impl<T: Comparable> Predicate<T> {
    /// Refuses what nothing compares with, and a range whose end comes first.
    fn check(self) -> Result<()> {
        let (bound, end) = self.bounds();
        if bound.to_f64().is_nan() || end.to_f64().is_nan() {
            let what = "a comparison with NaN, which no element equals".to_owned();
            return SELECT.refuse(what, "give a number; `select_flagged` keeps elements by flags");
        }
        if matches!(self, Self::Between { .. }) && end < bound {
            let what = format!("elements from {} to {}", bound.to_text(), end.to_text());
            return SELECT.refuse(what, "give the lower bound first");
        }
        Ok(())
    }

    /// What elements are compared with.
    fn bounds(self) -> (T, T) {
        match self {
            Self::Equal(bound)
            | Self::NotEqual(bound)
            | Self::Less(bound)
            | Self::AtMost(bound)
            | Self::Greater(bound)
            | Self::AtLeast(bound) => (bound, bound),
            Self::Between { first, end } => (first, end),
        }
    }

    /// What the kernel is given: which comparison, and with what.
    fn arguments(self) -> [Argument; 3] {
        let comparison = match self {
            Self::Equal(_) => 0_u32,
            Self::NotEqual(_) => 1,
            Self::Less(_) => 2,
            Self::AtMost(_) => 3,
            Self::Greater(_) => 4,
            Self::AtLeast(_) => 5,
            Self::Between { .. } => 6,
        };
        let (bound, end) = self.bounds();
        [Argument::value(comparison), Argument::value(bound), Argument::value(end)]
    }
}

/// Where kept elements go.
#[derive(Clone, Debug)]
pub(super) struct Kept<T> {
    pub(super) elements: Option<GpuRef<T>>,
    pub(super) indices: Option<GpuRef<u64>>,
    pub(super) count: Option<GpuRef<u64>>,
}

impl<T: Element> Kept<T> {
    /// Refuses outputs that are too short for all elements, or that share memory with the input or with each other.
    pub(super) fn check(&self, check: Check, input: &GpuRef<T>, indices_name: &str) -> Result<()> {
        if let Some(elements) = &self.elements {
            check.room("output", elements, input.len())?;
            check.apart(("input", input), ("output", elements))?;
        }
        if let Some(indices) = &self.indices {
            check.room(indices_name, indices, input.len())?;
            check.apart(("input", input), (indices_name, indices))?;
        }
        if let Some(count) = &self.count {
            check.length("count", count, 1)?;
            check.apart(("input", input), ("count", count))?;
        }
        if let (Some(elements), Some(indices)) = (&self.elements, &self.indices) {
            check.apart(("output", elements), (indices_name, indices))?;
        }
        if let (Some(elements), Some(count)) = (&self.elements, &self.count) {
            check.apart(("output", elements), ("count", count))?;
        }
        match (&self.indices, &self.count) {
            (Some(indices), Some(count)) => check.apart((indices_name, indices), ("count", count)),
            _ => Ok(()),
        }
    }

    /// Adds the launch that keeps elements by a rule.
    pub(super) fn plan(
        &self,
        plan: &mut Plan<'_>,
        (family, of): (&'static str, &'static str),
        input: &GpuRef<T>,
        rule: impl IntoIterator<Item = Argument>,
    ) -> Result<()> {
        let len = input.len() as u64;
        if len == 0 {
            return self.count.as_ref().map_or(Ok(()), |count| plan.zero(count));
        }
        let tiles = Tiles::new(len.div_ceil(TILE), size_of::<u64>() as u64);
        let state = tiles.state(plan)?;
        let mut arguments = vec![
            Argument::read(input)?,
            Argument::value(len),
            Argument::write_some(self.elements.as_ref())?,
            Argument::write_some(self.indices.as_ref())?,
            Argument::write_some(self.count.as_ref())?,
            Argument::read_write(&state)?,
            Argument::value(tiles.count as u32),
        ];
        arguments.extend(rule);
        plan.launch((family, of, "compact"), tiles.count, THREADS, arguments)
    }

    /// The buffers that were given for what is kept.
    pub(super) fn operands<'a>(&'a self, operands: Operands<'a>) -> Operands<'a> {
        let operands = operands.with_some("output", self.elements.as_ref());
        operands.with_some("indices", self.indices.as_ref()).with_some("count", self.count.as_ref())
    }

    pub(super) fn home(&self, otherwise: &GpuRef<T>) -> StreamKey {
        let elements = self.elements.as_ref().map(GpuRef::home);
        elements.or(self.indices.as_ref().map(GpuRef::home)).unwrap_or_else(|| otherwise.home())
    }
}

/// A [`select`](super::Primitives::select).
#[derive(Clone, Debug)]
pub struct Select<T> {
    pub(super) input: GpuRef<T>,
    pub(super) predicate: Predicate<T>,
    pub(super) kept: Kept<T>,
}

/// A [`select_flagged`](super::Primitives::select_flagged).
#[derive(Clone, Debug)]
pub struct SelectFlagged<T> {
    pub(super) input: GpuRef<T>,
    pub(super) flags: GpuRef<u8>,
    pub(super) kept: Kept<T>,
}

impl<T: Comparable> PrimitiveCall<'_, Select<T>> {
    /// Writes the indices of the kept elements, too. There must be room for as many as the input has elements.
    pub fn indices(mut self, indices: &GpuRef<u64>) -> Self {
        self.operation.kept.indices = Some(indices.clone());
        self
    }
}

impl<T: Element> PrimitiveCall<'_, SelectFlagged<T>> {
    /// Writes the indices of the kept elements, too. There must be room for as many as the input has elements.
    pub fn indices(mut self, indices: &GpuRef<u64>) -> Self {
        self.operation.kept.indices = Some(indices.clone());
        self
    }
}

impl<T: Comparable> Operation for Select<T> {
    fn check(&self) -> Result<()> {
        self.predicate.check()?;
        self.kept.check(SELECT, &self.input, "indices")
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        self.kept.plan(plan, ("select_compare", T::NAME), &self.input, self.predicate.arguments())
    }

    fn operands(&self) -> Operands<'_> {
        self.kept.operands(Operands::of(SELECT.0).with("input", &self.input))
    }

    fn home(&self) -> StreamKey {
        self.kept.home(&self.input)
    }
}

impl<T: Element> Operation for SelectFlagged<T> {
    fn check(&self) -> Result<()> {
        let check = FLAGGED;
        bits_of::<T>(check)?;
        check.length_of(("flags", &self.flags), ("input", &self.input))?;
        if let Some(elements) = &self.kept.elements {
            check.apart(("flags", &self.flags), ("output", elements))?;
        }
        if let Some(indices) = &self.kept.indices {
            check.apart(("flags", &self.flags), ("indices", indices))?;
        }
        if let Some(count) = &self.kept.count {
            check.apart(("flags", &self.flags), ("count", count))?;
        }
        self.kept.check(check, &self.input, "indices")
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let of = bits_of::<T>(FLAGGED)?;
        self.kept.plan(plan, ("select_flags", of), &self.input, [Argument::read(&self.flags)?])
    }

    fn operands(&self) -> Operands<'_> {
        self.kept.operands(Operands::of(FLAGGED.0).with("input", &self.input).with("flags", &self.flags))
    }

    fn home(&self) -> StreamKey {
        self.kept.home(&self.input)
    }
}

/// The kernels for elements of a size, of which only bits matter.
pub(super) fn bits_of<T: Element>(check: Check) -> Result<&'static str> {
    match bits_name(size_of::<T>()) {
        Some(name) => Ok(name),
        None => {
            let what = format!("elements of {} bytes", size_of::<T>());
            Err(check.refusal(what, "use elements of 1, 2, 4 or 8 bytes, or indices of them"))
        }
    }
}
