//! Making the resource a text describes.

use std::sync::Arc;

use kiln_driver::Driver;

use super::Stack;
use super::layer::{Base, Layer};
use crate::budget::Budget;
use crate::decorator::{
    Aligned, Budgeted, Failing, Guarded, LeakTracking, Limited, Retrying, Statistics, TraceConfig, Traced,
};
use crate::direct::Direct;
use crate::driver_pool::DriverPool;
use crate::error::Result;
use crate::heap::{Heap, HeapConfig};
use crate::order::Order;
use crate::pages::Pages;
use crate::resource::MemoryResource;

/// Where a stack is built.
#[derive(Clone)]
pub struct Site {
    /// The device.
    pub driver: Arc<dyn Driver>,
    /// The order of its streams.
    pub order: Arc<dyn Order>,
    /// How a heap or pages at the bottom are set up; layers share its pressure.
    pub heap: HeapConfig,
}

impl Site {
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
    pub fn build(&self, site: &Site) -> Result<Arc<dyn MemoryResource>> {
        let has_guard = self.layers().iter().any(|layer| matches!(layer, Layer::Guard(_)));
        if has_guard && self.base() == Base::Host {
            return Err(Guarded::<Heap>::host_memory().into());
        }
        let base = build_base(self, site)?;
        self.layers().iter().rev().try_fold(base, |inner, layer| build_layer(layer, inner, site))
    }
}

fn build_base(stack: &Stack, site: &Site) -> Result<Arc<dyn MemoryResource>> {
    let (driver, order) = (site.driver.clone(), site.order.clone());
    let spare = stack.spare().unwrap_or(site.heap.spare);
    let mapping_host_bytes = stack.mapping().map(|bytes| bytes.0).or(site.heap.mapping_host_bytes);
    let config = HeapConfig { spare, mapping_host_bytes, ..site.heap.clone() };
    Ok(match stack.base() {
        Base::Heap if driver.info().features.pages => Arc::new(Heap::over_pages(driver, order, config)?),
        Base::Heap | Base::Chunks => Arc::new(Heap::over_chunks(driver, order, config)),
        Base::Host => Arc::new(Heap::over_host(driver, order, config)),
        Base::Pages => Arc::new(Pages::new(driver, order, config)?),
        Base::Direct => Arc::new(Direct::new(driver, order)),
        Base::Pool => Arc::new(DriverPool::new(driver, order)?),
    })
}

fn build_layer(
    layer: &Layer,
    inner: Arc<dyn MemoryResource>,
    site: &Site,
) -> Result<Arc<dyn MemoryResource>> {
    Ok(match *layer {
        Layer::Budget(limit) => {
            let budgeted = Budgeted::new(Budget::new("stack", limit.0), inner);
            Arc::new(budgeted.under(site.heap.pressure.clone()))
        }
        Layer::Limit(limit) => Arc::new(Limited::new(limit.0, inner)),
        Layer::Statistics => Arc::new(Statistics::new(inner)),
        Layer::Trace(records_per_thread) => {
            let config = TraceConfig { records_per_thread, ..TraceConfig::default() };
            Arc::new(Traced::new(config, inner))
        }
        Layer::Guard(config) => {
            Arc::new(Guarded::new(config, site.driver.clone(), site.order.clone(), inner))
        }
        Layer::Leaks(every) => Arc::new(LeakTracking::sampling(every, inner)),
        Layer::Align(align) => Arc::new(Aligned::new(align.0, inner)?),
        Layer::Retry(rounds) => Arc::new(Retrying::new(rounds, inner)),
        Layer::Fail(plan) => Arc::new(Failing::new(plan, inner)),
    })
}
