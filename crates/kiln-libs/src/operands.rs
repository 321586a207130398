//! The buffers of a call, under the names that its caller gave them by.

use std::ops::Range;
use std::panic::Location;

use kiln_runtime::internal::{BufferBytes, CallScope, in_call};
use kiln_runtime::{DeviceRuntime, Element, GpuRef, GraphBuilder, Stream};
use smallvec::SmallVec;

use crate::Result;
use crate::call_state::{check_graph, check_stream};

/// Buffers that need no memory of the heap. Few calls have more.
const INLINE: usize = 6;

/// What to do where a buffer must have exactly so many elements.
pub(crate) const EXACT_HINT: &str = "use a buffer of that length, or a view of a longer one";

/// The buffers of a call.
pub(crate) struct Operands<'a> {
    /// The call, such as `prims.sort`.
    call: &'static str,
    all: SmallVec<[(&'static str, BufferBytes<'a>); INLINE]>,
}

impl<'a> Operands<'a> {
    /// None yet.
    pub(crate) fn of(call: &'static str) -> Self {
        Self { call, all: SmallVec::new() }
    }

    /// The same with another one.
    pub(crate) fn with<T: Element>(mut self, name: &'static str, buffer: &'a GpuRef<T>) -> Self {
        self.all.push((name, BufferBytes::of(buffer)));
        self
    }

    /// The same with another one, if it was given.
    pub(crate) fn with_some<T: Element>(self, name: &'static str, buffer: Option<&'a GpuRef<T>>) -> Self {
        match buffer {
            Some(buffer) => self.with(name, buffer),
            None => self,
        }
    }

    /// The same with the bytes of another one.
    pub(crate) fn with_bytes(mut self, name: &'static str, bytes: BufferBytes<'a>) -> Self {
        self.all.push((name, bytes));
        self
    }

    /// What is queued until the answer is dropped is work of the call: what a device finds in it is told with the call, its line and the operand.
    #[inline]
    pub(crate) fn enter(&self, gpu: &DeviceRuntime, line: &'static Location<'static>) -> CallScope {
        in_call(gpu, self.call, line, || self.addresses())
    }

    /// Their names, and where their bytes lie.
    pub(crate) fn addresses(&self) -> Vec<(&'static str, Range<u64>)> {
        let range =
            |bytes: &BufferBytes<'_>| bytes.address().0..bytes.address().0.saturating_add(bytes.len());
        self.all.iter().map(|(name, bytes)| (*name, range(bytes))).collect()
    }

    /// The call that they belong to.
    pub(crate) fn call(&self) -> &'static str {
        self.call
    }

    /// Refuses what a submission cannot have: a device that takes no work, a foreign stream, and a buffer that cannot be used.
    pub(crate) fn check_submission(&self, gpu: &DeviceRuntime, stream: Option<&Stream>) -> Result<()> {
        check_stream(gpu, self.call, stream)?;
        self.check(gpu)
    }

    /// Refuses what a node cannot have: a device that takes no work, a foreign graph or stream, and a buffer that cannot be used.
    pub(crate) fn check_node(
        &self,
        gpu: &DeviceRuntime,
        graph: &GraphBuilder,
        stream: Option<&Stream>,
    ) -> Result<()> {
        check_graph(gpu, self.call, graph, stream)?;
        self.check(gpu)
    }

    /// Refuses a buffer that work of the runtime cannot use: one of another runtime, or one that was lost. Calls without elements ask this, too.
    pub(crate) fn check(&self, gpu: &DeviceRuntime) -> Result<()> {
        self.all.iter().try_for_each(|(name, bytes)| check_operand(gpu, self.call, name, *bytes))
    }
}

/// Refuses a buffer that work of the runtime cannot use, by the names of call and operand.
pub(crate) fn check_operand(
    gpu: &DeviceRuntime,
    call: &'static str,
    name: &str,
    bytes: BufferBytes<'_>,
) -> Result<()> {
    let place = |error: kiln_runtime::Error| error.placed(format!("{call}: `{name}`"));
    Ok(bytes.check_usable(gpu).map_err(place)?)
}
