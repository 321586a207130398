//! Making the resource a text describes.

use std::sync::Arc;

use kiln_driver::Driver;

use super::Stack;
use super::layer::{StackBase, StackLayer};
use crate::budget::Budget;
use crate::direct::Direct;
use crate::driver_pool::DriverPool;
use crate::error::Result;
use crate::heap::{Heap, HeapConfig};
use crate::layer::{
    Aligned, Annotated, Budgeted, Counted, Failing, Guarded, LeakTracked, Limited, Retrying, TraceConfig,
    Traced,
};
use crate::pages::Pages;
use crate::resource::MemoryResource;
use crate::stream_order::Order;

/// Where a stack is built.
#[derive(Clone)]
pub struct StackContext {
    /// The device.
    pub driver: Arc<dyn Driver>,
    /// The order of its streams.
    pub order: Arc<dyn Order>,
    /// How a heap or pages at the bottom are set up; layers share its pressure.
    pub heap: HeapConfig,
}

impl StackContext {
    /// A device with its order, and heaps as they are by default.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>) -> Self {
        Self { driver, order, heap: HeapConfig::default() }
    }
}

impl Stack {
    /// Makes the resource.
    ///
    /// # Errors
    /// Unsupported where the device has no pool or no pages and the text asks for them, and for a guard around host memory; whatever
    /// the driver says.
    pub fn build(&self, context: &StackContext) -> Result<Arc<dyn MemoryResource>> {
        let has_guard = self.layers().iter().any(|layer| matches!(layer, StackLayer::Guard(_)));
        if has_guard && self.base() == StackBase::Host {
            return Err(Guarded::<Heap>::host_memory().into());
        }
        let base = build_base(self, context)?;
        let built =
            self.layers().iter().rev().try_fold(base, |inner, layer| build_layer(layer, inner, context))?;
        Ok(Annotated::around(&context.driver, built))
    }
}

fn build_base(stack: &Stack, context: &StackContext) -> Result<Arc<dyn MemoryResource>> {
    let (driver, order) = (context.driver.clone(), context.order.clone());
    let spare = stack.spare().unwrap_or(context.heap.spare);
    let mapping_host_bytes = stack.mapping().map(|bytes| bytes.0).or(context.heap.mapping_host_bytes);
    let config = HeapConfig { spare, mapping_host_bytes, ..context.heap.clone() };
    Ok(match stack.base() {
        StackBase::Heap if driver.info().features.pages => Arc::new(Heap::over_pages(driver, order, config)?),
        StackBase::Heap | StackBase::Chunks => Arc::new(Heap::over_chunks(driver, order, config)),
        StackBase::Host => Arc::new(Heap::over_host(driver, order, config)),
        StackBase::Pages => Arc::new(Pages::new(driver, order, config)?),
        StackBase::Direct => Arc::new(Direct::new(driver, order)),
        StackBase::Pool => Arc::new(DriverPool::new(driver, order)?),
    })
}

fn build_layer(
    layer: &StackLayer,
    inner: Arc<dyn MemoryResource>,
    context: &StackContext,
) -> Result<Arc<dyn MemoryResource>> {
    Ok(match *layer {
        StackLayer::Budget(limit) => {
            let budgeted = Budgeted::new(Budget::new("stack", limit.0), inner);
            Arc::new(budgeted.under(context.heap.pressure.clone()))
        }
        StackLayer::Limit(limit) => Arc::new(Limited::new(limit.0, inner)),
        StackLayer::Statistics => Arc::new(Counted::new(inner)),
        StackLayer::Trace(records_per_thread) => {
            let config = TraceConfig { records_per_thread, ..TraceConfig::default() };
            Arc::new(Traced::new(config, inner))
        }
        StackLayer::Guard(config) => {
            Arc::new(Guarded::new(config, context.driver.clone(), context.order.clone(), inner))
        }
        StackLayer::Leaks(every) => Arc::new(LeakTracked::sampling(every, inner)),
        StackLayer::Align(align) => Arc::new(Aligned::new(align.0, inner)?),
        StackLayer::Retry(rounds) => Arc::new(Retrying::new(rounds, inner)),
        StackLayer::Fail(plan) => Arc::new(Failing::new(plan, inner)),
    })
}
