//! Reads the data that the layers of a resource stack have collected.

use std::any::Any;
use std::fmt;

use crate::layer::NamedParts;
use crate::resource::MemoryResource;

/// One layer of a stack of resources: what it has collected, and the resource below it.
///
/// A stack that was built from text is an `Arc<dyn MemoryResource>`, and the types of its layers are not known.
/// [`MemoryResourceExt::find`](crate::MemoryResourceExt::find) goes through the layers, outermost first, and returns what the first layer of a
/// kind has collected:
///
/// | in the text | `find::<T>()` | what it has |
/// |---|---|---|
/// | `stats(…)` | [`Statistics`](crate::layer::Statistics) | counts by tag, peak |
/// | `trace(…)` | [`TraceRecorder`](crate::layer::TraceRecorder) | records, how many were dropped |
/// | `guard(…)` | [`GuardChecker`](crate::layer::GuardChecker) | findings, a check of all blocks |
/// | `leaks(…)` | [`LeakTracker`](crate::layer::LeakTracker) | live blocks, by tag |
/// | `budget(…)` | [`Budget`](crate::Budget) | limit, used, peak |
/// | `heap`, `chunks`, `host` | [`Heap`](crate::Heap) | activity, counts by tag |
/// | `pages`, `direct`, `pool` | [`Pages`](crate::Pages), [`Direct`](crate::Direct), [`DriverPool`](crate::DriverPool) | |
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::layer::{GuardChecker, LeakTracker, Statistics, TraceRecorder};
/// use kiln_mem::resource_stack::StackContext;
/// use kiln_mem::{AllocTag, DriverOrder, MemoryResource, MemoryResourceExt, AllocationRequest, Stack};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let stack: Stack = "budget(1GiB, stats(trace(leaks(heap))))".parse()?;
/// let memory = stack.build(&StackContext::new(driver, order))?;
///
/// let weights = AllocTag::new("weights")?;
/// let block = memory.allocate(&AllocationRequest::new(5000, stream).tag(weights))?;
///
/// let statistics = memory.find::<Statistics>().ok_or("no `stats` in the stack")?;
/// assert_eq!(statistics.counts(weights).live_bytes(), 5000);
/// let recorder = memory.find::<TraceRecorder>().ok_or("no `trace` in the stack")?;
/// assert_eq!(recorder.records().len(), 1);
/// let leaks = memory.find::<LeakTracker>().ok_or("no `leaks` in the stack")?;
/// assert_eq!(leaks.live()[0].tag, weights);
/// assert!(memory.find::<GuardChecker>().is_none());
/// memory.free(block)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct LayerView<'a> {
    collected: Option<&'a (dyn Any + Send + Sync)>,
    inner: Option<&'a dyn MemoryResource>,
    /// The blocks that leave the stack here, as the device knows them.
    named: Option<&'a NamedParts>,
}

impl<'a> LayerView<'a> {
    /// A layer with nothing to show and nothing below it.
    pub fn base() -> Self {
        Self { collected: None, inner: None, named: None }
    }

    /// A layer around a resource.
    pub fn around(inner: &'a dyn MemoryResource) -> Self {
        Self { collected: None, inner: Some(inner), named: None }
    }

    /// The same layer with what it has collected.
    #[must_use]
    pub fn showing<T: Any + Send + Sync>(self, collected: &'a T) -> Self {
        Self { collected: Some(collected), ..self }
    }

    /// The same layer of a stack whose blocks are named to the device from here on.
    pub(crate) fn annotated(self, named: &'a NamedParts) -> Self {
        Self { named: Some(named), ..self }
    }

    /// The blocks that leave the stack here, if they are named to the device.
    pub(crate) fn named_parts(&self) -> Option<&'a NamedParts> {
        self.named
    }

    /// What it has collected, if that is of this type.
    pub fn collected<T: Any>(&self) -> Option<&'a T> {
        self.collected.and_then(|collected| collected.downcast_ref())
    }

    /// The resource below it.
    pub fn inner(&self) -> Option<&'a dyn MemoryResource> {
        self.inner
    }
}

impl fmt::Debug for LayerView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner {
            Some(inner) => write!(f, "a layer around {inner}"),
            None => f.write_str("the base of a stack"),
        }
    }
}

/// The layers of a stack, outermost first; see [`MemoryResourceExt::layers`](crate::MemoryResourceExt::layers).
#[derive(Clone, Debug)]
pub struct Layers<'a> {
    next: Option<LayerView<'a>>,
}

impl<'a> Layers<'a> {
    pub(crate) fn from(outermost: LayerView<'a>) -> Self {
        Self { next: Some(outermost) }
    }
}

impl<'a> Iterator for Layers<'a> {
    type Item = LayerView<'a>;

    fn next(&mut self) -> Option<LayerView<'a>> {
        let layer = self.next.take()?;
        self.next = layer.inner.map(|inner| inner.layer());
        Some(layer)
    }
}
