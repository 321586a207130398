//! Fills and reads device memory for the checks.
//!
//! Everything happens on a separate stream, after the host waited for the stream of the block, and is waited for. The
//! block's stream may be gone by then; so is its work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Command, DevicePlace, Driver, HostBlock, Object, Pattern, Place, StreamId, StreamRequest, Timeout,
    WaitTarget,
};

use crate::error::Result;
use crate::last_use::StreamRef;

/// Bytes that are looked at in one go.
const WINDOW_BYTES: u64 = 1 << 20;

/// Device memory, reached through one pinned window.
pub(super) struct DeviceBytes {
    driver: Arc<dyn Driver>,
    tools: Mutex<Option<Tools>>,
}

#[derive(Clone)]
struct Tools {
    window: HostBlock,
    stream: StreamId,
}

impl DeviceBytes {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, tools: Mutex::new(None) }
    }

    pub(super) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// Fills bytes once a stream is done.
    pub(super) fn fill(&self, to: DevicePlace, count: u64, byte: u8, after: StreamRef) -> Result<()> {
        let mut kept = self.tools();
        let tools = self.tools_in(&mut kept)?;
        self.wait_for(after)?;
        let fill = Command::Fill { to, pattern: Pattern::U8(byte), count };
        self.run(&tools, &fill)
    }

    /// The offset of the first byte that is another one, once a stream is done.
    pub(super) fn first_other(
        &self,
        from: DevicePlace,
        bytes: u64,
        byte: u8,
        after: StreamRef,
    ) -> Result<Option<u64>> {
        let mut kept = self.tools();
        let tools = self.tools_in(&mut kept)?;
        self.wait_for(after)?;
        let mut seen = vec![0; WINDOW_BYTES.min(bytes) as usize];
        let mut done = 0;
        while done < bytes {
            let part = WINDOW_BYTES.min(bytes - done);
            let to = Place::Host { block: tools.window.id(), offset: 0 };
            self.run(&tools, &Command::Copy { from: Place::Device(from.plus(done)), to, bytes: part })?;
            let seen = &mut seen[..part as usize];
            if tools.window.read(0, seen)
                && let Some(at) = seen.iter().position(|other| *other != byte)
            {
                return Ok(Some(done + at as u64));
            }
            done += part;
        }
        Ok(None)
    }

    /// Gives window and stream back.
    pub(super) fn release(&self) {
        if let Some(tools) = self.tools().take() {
            let _ = self.driver.destroy(Object::Host(tools.window.id()));
            let _ = self.driver.destroy(Object::Stream(tools.stream));
        }
    }

    fn tools(&self) -> MutexGuard<'_, Option<Tools>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tools_in(&self, kept: &mut Option<Tools>) -> Result<Tools> {
        if let Some(tools) = kept {
            return Ok(tools.clone());
        }
        let stream = self.driver.create_stream(StreamRequest::New { priority: 0 })?;
        let window = self.driver.allocate_host(WINDOW_BYTES).inspect_err(|_| {
            // Nothing was submitted to it; if it cannot be destroyed, the device is lost.
            let _ = self.driver.destroy(Object::Stream(stream));
        })?;
        Ok(kept.insert(Tools { window, stream }).clone())
    }

    fn run(&self, tools: &Tools, command: &Command<'_>) -> Result<()> {
        self.driver.submit(tools.stream, command)?;
        let _ = self.driver.wait(WaitTarget::Stream(tools.stream), Timeout::Never)?;
        Ok(())
    }

    fn wait_for(&self, stream: StreamRef) -> Result<()> {
        match self.driver.wait(WaitTarget::Stream(stream.id()), Timeout::Never) {
            Err(error) if !error.is_refused() => Err(error.into()),
            _ => Ok(()),
        }
    }
}
