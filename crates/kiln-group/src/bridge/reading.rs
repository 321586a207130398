//! What this rank brings, read from its device.

use std::panic::Location;

use kiln_operation::BRING;
use kiln_runtime::internal::submit_called_at;
use kiln_runtime::{DeviceRuntime, GpuRef, Module};

use super::Bridge;
use crate::collective_part::Part;
use crate::error::Result;

impl Bridge {
    /// Reads what this rank brings to a call at a line of the program.
    pub(super) fn read(
        &self,
        device: (&DeviceRuntime, &Module),
        part: &Part,
        line: &'static Location<'static>,
    ) -> Result<Vec<u8>> {
        let Some(from) = self.given(part)?.filter(|from| !from.is_empty()) else { return Ok(Vec::new()) };
        let read = self.copied(device, part, (&from, line))?;
        read.unwrap_or(from).download().map_err(|source| self.failed(source))
    }

    /// A copy that the device has made as the collective, so that a mistake which it finds is said to be one of the collective and not of a copy. None if the device has no room for it.
    fn copied(
        &self,
        (runtime, module): (&DeviceRuntime, &Module),
        part: &Part,
        (from, line): (&GpuRef<u8>, &'static Location<'static>),
    ) -> Result<Option<GpuRef<u8>>> {
        let failed = |source| self.failed(source);
        let copy = match runtime.allocate::<u8>(from.len()) {
            Err(source) if source.is_oom() => return Ok(None),
            allocated => allocated.map_err(failed)?,
        };
        let kernel = module.kernel(&format!("{BRING}{}", part.collective), None).map_err(failed)?;
        let mut launch = runtime.launch(&kernel);
        launch.grid(1).block(1).read(from).write(&copy).value(from.len() as u64);
        // SAFETY: it reads one buffer, writes another one of the same size, and ends.
        unsafe { submit_called_at(&mut launch, line) }.map_err(failed)?;
        Ok(Some(copy))
    }
}
