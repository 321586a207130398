//! Where a log is replayed: a stack with the streams it needs.

use std::sync::Arc;

use kiln_driver::{Driver, Object, StreamRequest};

use super::allocation_log::AllocationLog;
use crate::error::Result;
use crate::heap::HeapConfig;
use crate::last_use::StreamRef;
use crate::resource::MemoryResource;
use crate::resource_stack::{Stack, StackContext};
use crate::stream_order::{DriverOrder, Order};

/// A memory stack on a device, with the streams of a log, which it destroys when it is dropped.
pub struct ReplayStack {
    driver: Arc<dyn Driver>,
    order: Arc<DriverOrder>,
    resource: Option<Arc<dyn MemoryResource>>,
    streams: Vec<StreamRef>,
}

impl ReplayStack {
    /// Builds a stack on a device, with a stream for each of a log.
    ///
    /// # Errors
    /// As for [`Stack::build`]; what the driver answers to creating streams.
    pub fn new(
        driver: Arc<dyn Driver>,
        stack: &Stack,
        heap: HeapConfig,
        log: &AllocationLog,
    ) -> Result<Self> {
        let order = Arc::new(DriverOrder::new(driver.clone()));
        let mut made =
            Self { driver: driver.clone(), order: order.clone(), resource: None, streams: Vec::new() };
        for _ in 0..log.streams() {
            let id = driver.create_stream(StreamRequest::New { priority: 0 })?;
            made.streams.push(order.add(id)?);
        }
        made.resource = Some(stack.build(&StackContext { driver, order, heap })?);
        Ok(made)
    }

    /// The stack.
    pub fn resource(&self) -> Option<&Arc<dyn MemoryResource>> {
        self.resource.as_ref()
    }

    pub(super) fn stream(&self, number: u32) -> Option<StreamRef> {
        self.streams.get(number as usize).copied()
    }

    pub(super) fn order(&self) -> &dyn Order {
        &*self.order
    }
}

impl Drop for ReplayStack {
    fn drop(&mut self) {
        // Memory goes first: its streams have to be there when it asks about them.
        self.resource = None;
        for stream in &self.streams {
            // What cannot be given back belongs to a device that is lost.
            let _ = self.order.remove(*stream);
            let _ = self.driver.destroy(Object::Stream(stream.id()));
        }
    }
}
