//! Filling device memory and looking at it, with a wait after each.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Command, DevicePlace, Driver, HostBlock, Object, Pattern, Place, Timeout, WaitTarget};

use crate::error::Result;
use crate::stamp::StreamRef;

/// Bytes that are looked at in one go.
const WINDOW_BYTES: u64 = 1 << 20;

/// Device memory, reached through one pinned window.
pub(super) struct DeviceBytes {
    driver: Arc<dyn Driver>,
    window: Mutex<Option<HostBlock>>,
}

impl DeviceBytes {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, window: Mutex::new(None) }
    }

    /// Fills bytes in the order of a stream and waits for it.
    pub(super) fn fill(&self, to: DevicePlace, count: u64, byte: u8, stream: StreamRef) -> Result<()> {
        let fill = Command::Fill { to, pattern: Pattern::U8(byte), count };
        self.driver.submit(stream.id, &fill)?;
        let _ = self.driver.wait(WaitTarget::Stream(stream.id), Timeout::Never)?;
        Ok(())
    }

    /// The offset of the first byte that is another one, in the order of a stream.
    pub(super) fn first_other(
        &self,
        from: DevicePlace,
        bytes: u64,
        byte: u8,
        stream: StreamRef,
    ) -> Result<Option<u64>> {
        let mut kept = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = match &*kept {
            Some(window) => window.clone(),
            None => kept.insert(self.driver.allocate_host(WINDOW_BYTES)?).clone(),
        };
        let mut seen = vec![0; WINDOW_BYTES.min(bytes) as usize];
        let mut done = 0;
        while done < bytes {
            let part = WINDOW_BYTES.min(bytes - done);
            let to = Place::Host { block: window.id(), offset: 0 };
            let copy = Command::Copy { from: Place::Device(from.plus(done)), to, bytes: part };
            self.driver.submit(stream.id, &copy)?;
            let _ = self.driver.wait(WaitTarget::Stream(stream.id), Timeout::Never)?;
            let seen = &mut seen[..part as usize];
            if window.read(0, seen)
                && let Some(at) = seen.iter().position(|other| *other != byte)
            {
                return Ok(Some(done + at as u64));
            }
            done += part;
        }
        Ok(None)
    }

    /// Gives the window back.
    pub(super) fn release(&self) {
        if let Some(window) = self.window.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = self.driver.destroy(Object::Host(window.id()));
        }
    }
}
