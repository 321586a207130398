//! What the probe found: every device of a platform, working or not, none of them opened.
//!
//! Listing asks the driver for names and numbers, which needs no context. A device that cannot even answer that stays
//! in the list with its error, so that it neither hides the others nor shifts their ordinals.

use std::fmt;

use kiln_driver::{Capability, DeviceInfo, DeviceKind, PciId, Uuid, Version};

use crate::error::{ProbeError, Result};
use crate::libraries::{self, Library, LibraryVersion};

/// What is known of a device that was not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSummary {
    /// Its number among the devices of its platform.
    pub ordinal: u32,
    /// Hardware or simulation.
    pub kind: DeviceKind,
    /// The name the vendor gave it.
    pub name: String,
    /// Its identity, the same after a reboot.
    pub uuid: Uuid,
    /// Where it sits.
    pub pci: PciId,
    /// Compute capability.
    pub capability: Capability,
    /// The CUDA version that its driver supports.
    pub driver_version: Version,
    /// Device memory in bytes.
    pub total_memory_bytes: u64,
    /// Whether this is a slice of a device (MIG).
    pub mig: bool,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads resident on a multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// Shared memory of a block without asking.
    pub shared_bytes_per_block: u32,
    /// Shared memory of a block when the kernel opts in.
    pub shared_bytes_per_block_optin: u32,
}

impl DeviceSummary {
    /// How much work the device holds at once: its resident threads. Devices are chosen and work is split by this.
    pub fn score(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.max_threads_per_multiprocessor)
    }
}

impl From<&DeviceInfo> for DeviceSummary {
    fn from(info: &DeviceInfo) -> Self {
        Self {
            ordinal: info.ordinal,
            kind: info.kind,
            name: info.name.clone(),
            uuid: info.uuid,
            pci: info.pci,
            capability: info.capability,
            driver_version: info.driver_version,
            total_memory_bytes: info.total_memory_bytes,
            mig: info.mig,
            multiprocessors: info.limits.multiprocessors,
            max_threads_per_multiprocessor: info.limits.max_threads_per_multiprocessor,
            shared_bytes_per_block: info.limits.shared_bytes_per_block,
            shared_bytes_per_block_optin: info.limits.shared_bytes_per_block_optin,
        }
    }
}

impl fmt::Display for DeviceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} device {}: {}, capability {}", self.kind, self.ordinal, self.name, self.capability)
    }
}

/// One line of the list: a device, or why it does not answer.
pub type DeviceEntry = std::result::Result<DeviceSummary, kiln_driver::Error>;

/// Every device of one platform; the place in the list is the ordinal.
#[derive(Clone, Debug)]
pub struct Devices {
    kind: DeviceKind,
    entries: Vec<DeviceEntry>,
    skipped: Vec<(u32, ProbeError)>,
}

impl Devices {
    /// A list as a platform found it.
    pub fn new(kind: DeviceKind, entries: Vec<DeviceEntry>) -> Self {
        Self { kind, entries, skipped: Vec::new() }
    }

    /// The same list, with devices that could not be opened and why.
    #[must_use]
    pub fn with_skipped(&self, skipped: Vec<(u32, ProbeError)>) -> Self {
        Self { skipped, ..self.clone() }
    }

    /// Hardware or simulation.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// How many there are, broken ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, by ordinal.
    pub fn entries(&self) -> &[DeviceEntry] {
        &self.entries
    }

    /// The devices that answer, by ordinal.
    pub fn working(&self) -> impl Iterator<Item = &DeviceSummary> {
        self.entries.iter().filter_map(|entry| entry.as_ref().ok())
    }

    /// The devices that do not, with why.
    pub fn broken(&self) -> impl Iterator<Item = (u32, &kiln_driver::Error)> {
        (0u32..).zip(&self.entries).filter_map(|(ordinal, entry)| Some((ordinal, entry.as_ref().err()?)))
    }

    /// The devices that answer and could not be opened when the best device was asked for, with why. A request that names
    /// no device uses another one until the devices are looked up anew.
    pub fn skipped(&self) -> impl Iterator<Item = (u32, &ProbeError)> {
        self.skipped.iter().map(|(ordinal, error)| (*ordinal, error))
    }

    /// One device.
    ///
    /// # Errors
    /// Unknown ordinal; or that device's own error.
    pub fn device(&self, ordinal: u32) -> Result<&DeviceSummary> {
        let entry = usize::try_from(ordinal).ok().and_then(|at| self.entries.get(at));
        let Some(entry) = entry else {
            return Err(self.unknown(format!("ordinal {ordinal}")));
        };
        entry.as_ref().map_err(|error| error.clone().into())
    }

    /// The version of the CUDA toolkit kernels would be compiled with, which is NVRTC's; none without NVRTC.
    pub fn toolkit_version(&self) -> Option<LibraryVersion> {
        libraries::find(Library::Nvrtc).ok().and_then(|found| found.version)
    }

    /// The error for a device that is not in the list.
    pub fn unknown(&self, wanted: String) -> ProbeError {
        ProbeError::UnknownDevice { kind: self.kind, wanted, known: self.entries.len() }
    }
}
