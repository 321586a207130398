//! Loading a library on systems where this command has no other process for it.

use std::time::Instant;

use kiln::DeviceRuntime;
use kiln::libraries::{FoundLibrary, MissingLibrary};

use super::library_cost::{Sample, sample_operation};

/// The library with the version that it tells, and how its first use on a device goes.
///
/// # Errors
/// It cannot be used.
pub(super) fn load(
    found: &FoundLibrary,
    gpu: Option<&DeviceRuntime>,
) -> Result<(FoundLibrary, Option<Sample>), MissingLibrary> {
    let start = Instant::now();
    let loaded = found.load()?;
    let sample = sample_operation(found.kind).zip(gpu);
    Ok((loaded, sample.map(|(operation, gpu)| Sample::on(gpu, operation, start.elapsed()))))
}
