//! Where a log is replayed: a stack with the streams it needs.

use std::sync::Arc;

use kiln_driver::{Driver, Object, StreamRequest};

use super::log::Log;
use crate::error::Result;
use crate::heap::HeapConfig;
use crate::order::{DriverOrder, Order};
use crate::resource::MemoryResource;
use crate::stack::{Site, Stack};
use crate::stamp::StreamRef;

/// A memory stack on a device, with streams of its own, which it gives back.
pub struct Stage {
    driver: Arc<dyn Driver>,
    order: Arc<DriverOrder>,
    resource: Option<Arc<dyn MemoryResource>>,
    streams: Vec<StreamRef>,
}

impl Stage {
    /// Builds a stack on a device, with a stream for each of a log.
    ///
    /// # Errors
    /// As for [`Stack::build`]; whatever the driver says to creating streams.
    pub fn new(driver: Arc<dyn Driver>, stack: &Stack, heap: HeapConfig, log: &Log) -> Result<Self> {
        let order = Arc::new(DriverOrder::new(driver.clone()));
        let mut stage =
            Self { driver: driver.clone(), order: order.clone(), resource: None, streams: Vec::new() };
        for _ in 0..log.streams() {
            let id = driver.create_stream(StreamRequest::New { priority: 0 })?;
            stage.streams.push(order.add(id));
        }
        stage.resource = Some(stack.build(&Site { driver, order, heap })?);
        Ok(stage)
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

impl Drop for Stage {
    fn drop(&mut self) {
        // Memory goes first: its streams have to be there when it asks about them.
        self.resource = None;
        for stream in &self.streams {
            // What cannot be given back belongs to a device that is lost.
            let _ = self.order.remove(*stream);
            let _ = self.driver.destroy(Object::Stream(stream.id));
        }
    }
}
