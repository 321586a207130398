//! Another library of the process: it queues work on a separate stream and knows kiln by native handles alone.

use kiln::{
    DeviceRuntime, GpuRef, Stream,
    foreign::{ForeignEvent, HandedEvent},
};
use kiln_driver::{Command, Driver, EventId, EventRequest, ForeignHandle, Pattern, StreamId, StreamRequest};

pub(crate) struct Library {
    driver: std::sync::Arc<dyn Driver>,
    stream: StreamId,
    event: EventId,
}

#[allow(dead_code, reason = "not every test lets it do everything")]
impl Library {
    pub(crate) fn new(driver: &std::sync::Arc<dyn Driver>) -> Self {
        Self {
            driver: driver.clone(),
            stream: driver.create_stream(StreamRequest::New { priority: 0 }).unwrap(),
            event: driver.create_event(EventRequest::Plain).unwrap(),
        }
    }

    /// Its stream, as kiln takes it in.
    pub(crate) fn lend_stream(&self, gpu: &DeviceRuntime) -> Stream {
        let native = self.driver.native(self.stream.into()).unwrap();
        // SAFETY: the stream lives as long as this library, which outlives the runtime's names for it.
        gpu.streams().import(unsafe { ForeignHandle::new(native) }).unwrap()
    }

    /// Its event, as kiln takes it in.
    pub(crate) fn lend_event(&self, gpu: &DeviceRuntime) -> ForeignEvent {
        let native = self.driver.native(self.event.into()).unwrap();
        // SAFETY: as for the stream.
        gpu.import_event(unsafe { ForeignHandle::new(native) }).unwrap()
    }

    /// Waits on its stream for an event of kiln's.
    pub(crate) fn wait_for(&self, event: &HandedEvent) {
        // SAFETY: the event is kiln's and lives while it is handed on; the name is given back at once.
        let handle = unsafe { ForeignHandle::new(event.native().unwrap()) };
        let name = self.driver.create_event(EventRequest::Foreign(handle)).unwrap();
        self.driver.submit(self.stream, &Command::Wait(name)).unwrap();
        self.driver.destroy(name.into()).unwrap();
    }

    /// Waits on its stream for its own event, which a caller signalled.
    pub(crate) fn wait_for_own_event(&self) {
        self.driver.submit(self.stream, &Command::Wait(self.event)).unwrap();
    }

    /// Fills a buffer on its stream.
    pub(crate) fn fill(&self, buffer: &GpuRef<u32>, value: u32) {
        self.fill_on(self.stream, buffer, value);
    }

    /// Fills a buffer on a stream it was lent.
    pub(crate) fn fill_on(&self, stream: StreamId, buffer: &GpuRef<u32>, value: u32) {
        self.try_fill_on(stream, buffer, value).unwrap();
    }

    /// The same on a device that may refuse.
    pub(crate) fn try_fill_on(
        &self,
        stream: StreamId,
        buffer: &GpuRef<u32>,
        value: u32,
    ) -> kiln_driver::Result<()> {
        let to = buffer.place().unwrap();
        let fill = Command::Fill { to, pattern: Pattern::U32(value), count: buffer.len() as u64 };
        self.driver.submit(stream, &fill).map(drop)
    }

    /// Signals its event after everything it queued.
    pub(crate) fn signal(&self) {
        self.driver.submit(self.stream, &Command::Signal(self.event)).unwrap();
    }

    /// Gives its objects back, when nothing uses them any more.
    pub(crate) fn close(self) {
        use kiln_driver::DriverExt;
        self.driver.synchronize(self.stream).unwrap();
        self.driver.destroy(self.event.into()).unwrap();
        self.driver.destroy(self.stream.into()).unwrap();
    }
}
