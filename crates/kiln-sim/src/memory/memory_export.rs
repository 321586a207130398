//! Makes memory that was allocated one that other processes can map.
//!
//! Allocations are memory of this process alone, which is cheap. One that is to be shared moves into a memory file, at the same addresses and with its history.
//! What other processes write is not seen here, so all its bytes count as written from then on.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kiln_driver::fd::OwnedFd;
use kiln_driver::{Code, Error, MemoryId, Refusal, Result, SharedBytes};

use crate::check::byte_shadow::Shadow;
use crate::device::objects::{Objects, Origin};
use crate::memory::page_file::PageFile;
use crate::memory::physical_memory::{Charge, Physical};
use crate::schedule::machine_core::{Core, HOST_POLL};

/// Bytes that are moved at a time.
const STEP_BYTES: usize = 64 << 10;

impl Core {
    /// A descriptor of the memory, whose size is that of the block, rounded up to whole pages. It keeps the memory alive, also after it is
    /// freed here.
    pub(crate) fn export_memory(&self, objects: &Objects, memory: MemoryId) -> Result<OwnedFd> {
        const CALL: &str = "export_memory";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        if !objects.info.features.page_export {
            return Err(Error::unsupported(CALL, "exported memory", "this device cannot export"));
        }
        let block = objects.memory.find(CALL, memory)?;
        if block.origin != Origin::Direct {
            let what = format!("{memory} was not allocated directly");
            return Err(Error::invalid(CALL, what, "export memory of a direct allocation"));
        }
        // Work that runs uses the memory that was there when it began.
        let mut waited = Duration::ZERO;
        while state.running > state.host_functions.begun() {
            if waited >= self.config.limits.idle_host {
                let why = "work that does not end runs on the device".into();
                return Err(Error::refused(CALL, Refusal::Busy { handle: memory.to_string(), why }));
            }
            waited += HOST_POLL;
            let slept = self.moved.wait_timeout(state, HOST_POLL);
            state = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
        let used_bytes = state.device(device).used_bytes.clone();
        let map = Arc::make_mut(&mut state.device(device).map);
        let segments = map.overlapping_mut(block.address..block.address + block.bytes);
        let [segment] = segments else {
            return Err(Error::refused(CALL, Refusal::Stale { handle: memory.to_string() }));
        };
        let refused = |_| Error::refused(CALL, Refusal::Driver(Code::OPERATING_SYSTEM));
        if let Some(file) = &segment.physical.file {
            return file.share().map_err(refused);
        }
        let granularity = objects.info.limits.page_granularity_bytes.max(1);
        let file = PageFile::create(block.bytes.next_multiple_of(granularity)).map_err(refused)?;
        let bytes = file.map().map_err(refused)?;
        copy_used(&segment.physical.bytes, &bytes);
        let descriptor = file.share().map_err(refused)?;
        let mut shadow = std::mem::replace(&mut *segment.physical.shadow(), Shadow::new(true));
        shadow.define_all();
        let charge = Charge::new(&used_bytes, block.bytes);
        segment.physical = Arc::new(Physical::new(Arc::new(bytes), shadow, Some(charge)).with_file(file));
        Ok(descriptor)
    }
}

/// Copies all bytes to memory that is zero; parts that are zero take no memory there.
fn copy_used(from: &SharedBytes, to: &SharedBytes) {
    let mut step = vec![0; STEP_BYTES.min(from.len())];
    for at in (0..from.len()).step_by(STEP_BYTES) {
        let part = step.get_mut(..STEP_BYTES.min(from.len() - at)).unwrap_or_default();
        let moved = from.read(at, part) && (part.iter().all(|byte| *byte == 0) || to.write(at, part));
        debug_assert!(moved, "both are as long as the block");
    }
}
