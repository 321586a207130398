//! A machine: several devices with one clock, one schedule and one report.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use kiln_driver::fd::{BorrowedFd, OwnedFd};
use kiln_driver::{
    DeviceAddress, DeviceInfo, Error, Fault as Loss, HostId, Image, MemoryId, Refusal, Result,
};

use crate::check::finding::Finding;
use crate::check::undefined_value::UndefinedRange;
use crate::device::sim_device::SimDevice;
use crate::machine_config::MachineConfig;
use crate::memory::page_file::PageFile;
use crate::report::SimReport;
use crate::run_log::TimelineSpan;
use crate::schedule::machine_core::Core;
use crate::schedule::virtual_clock::VirtualClock;

/// A simulated machine. Clones are the same machine.
///
/// ```
/// use kiln_driver::{Driver, DriverExt, MemoryRequest, StreamRequest};
/// use kiln_sim::{FindingKind, Machine, MachineConfig};
///
/// let machine = Machine::new(MachineConfig::seeded(1));
/// let device = machine.device(0)?;
/// let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
/// let memory = device.allocate(MemoryRequest::Direct { bytes: 64 })?;
/// let host = device.allocate_host(64)?;
/// device.fill(stream, memory.id.into(), 7, 64)?;
/// device.download(stream, memory.id.into(), &host, 64)?;
/// // The host looks without waiting for the download.
/// let mut back = [0; 64];
/// assert!(host.read(0, &mut back));
/// device.synchronize(stream)?;
/// assert_eq!(machine.findings()[0].kind, FindingKind::ReadAfterWrite);
/// # Ok::<(), kiln_driver::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    world: Arc<World>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) core: Arc<Core>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    has_host_threads: Mutex<bool>,
}

impl Machine {
    /// Builds a machine; its devices are there and not opened yet.
    pub fn new(config: MachineConfig) -> Self {
        Self { world: World::new(config) }
    }

    pub(crate) fn of(world: Arc<World>) -> Self {
        Self { world }
    }

    /// What the devices are, by ordinal, whether they can be opened or not.
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.world.core.devices.iter().map(|objects| objects.info.clone()).collect()
    }

    /// Opens a device. Opening it again gives the same device.
    ///
    /// # Errors
    /// Refused for an ordinal the machine does not have; for a device that is broken, lost if its code says so, and
    /// refused with the code otherwise.
    pub fn device(&self, ordinal: u32) -> Result<Arc<SimDevice>> {
        const CALL: &str = "open";
        let core = &self.world.core;
        let Some(objects) = core.devices.get(ordinal as usize) else {
            let what = format!("there is no device {ordinal}");
            return Err(Error::invalid(CALL, what, "use an ordinal below the number of devices"));
        };
        let broken = core.config.devices.get(ordinal as usize).and_then(|device| device.broken);
        match broken {
            Some(code) if code.is_sticky() => {
                Err(Error::lost(CALL, Loss { code, detail: "the device was configured to be broken".into() }))
            }
            Some(code) => Err(Error::refused(CALL, Refusal::Driver(code))),
            None => Ok(Arc::new(SimDevice::new(self.world.clone(), objects.clone()))),
        }
    }

    /// The clock all devices share.
    pub fn clock(&self) -> VirtualClock {
        VirtualClock::new(self.world.core.clone())
    }

    /// What was found so far. Work that is queued was not looked at yet.
    pub fn findings(&self) -> Vec<Finding> {
        self.world.core.lock().journal.findings().to_vec()
    }

    /// Bytes of a device's memory to which a kernel stored an undefined value that is still there. Work that is queued was not looked at yet.
    pub fn undefined_values(&self, device: u32, address: u64, bytes: u64) -> Vec<UndefinedRange> {
        if self.world.core.devices.get(device as usize).is_none() {
            return Vec::new();
        }
        self.world.core.lock().undefined_values(device, address..address.saturating_add(bytes))
    }

    /// The addresses of a device's memory that are mapped and were never written, in order. Work that is queued was not looked at yet.
    pub fn unwritten_addresses(&self, device: u32, address: u64, bytes: u64) -> Vec<Range<u64>> {
        if self.world.core.devices.get(device as usize).is_none() {
            return Vec::new();
        }
        self.world.core.lock().unwritten_addresses(device, address..address.saturating_add(bytes))
    }

    /// Runs everything that is queued, looks for what was not given back, and says what was found.
    pub fn finish(&self) -> SimReport {
        self.world.core.finish()
    }

    /// Every call and every step, line by line. The same program gives the same text, unless the machine is threaded.
    pub fn trace(&self) -> String {
        self.world.core.lock().journal.trace().to_string()
    }

    /// How many bytes pages have that a simulated device exported, in this process or another; nothing for any other descriptor.
    pub fn exported_bytes(descriptor: BorrowedFd<'_>) -> Option<u64> {
        PageFile::size(descriptor).ok()
    }

    /// A descriptor of memory that was allocated directly, for another process, whose devices [import](kiln_driver::Driver::import_pages) it as pages:
    /// as many bytes as [`exported_bytes`](Self::exported_bytes) says. The descriptor keeps the memory alive. What other processes write to it is
    /// not checked here.
    ///
    /// # Errors
    /// Refused for a device that the machine does not have, other memory, and while work runs that does not end; unsupported where a device cannot
    /// export.
    pub fn export_memory(&self, device: u32, memory: MemoryId) -> Result<OwnedFd> {
        let core = &self.world.core;
        let Some(objects) = core.devices.get(device as usize) else {
            let what = format!("there is no device {device}");
            return Err(Error::invalid("export_memory", what, "use an ordinal below the number of devices"));
        };
        core.export_memory(objects, memory)
    }

    /// Lets kernels of a device reach registered host memory, as those of all devices of the machine then do, at the addresses of the host. What the host does to
    /// it is not checked, so that all of it counts as written. It ends with the block.
    ///
    /// # Errors
    /// Refused for a device that the machine does not have, a block that is not of that device, and where a device has other memory at these addresses.
    pub fn map_host(&self, device: u32, block: HostId) -> Result<DeviceAddress> {
        let core = &self.world.core;
        let Some(objects) = core.devices.get(device as usize) else {
            let what = format!("there is no device {device}");
            return Err(Error::invalid("map_host", what, "use an ordinal below the number of devices"));
        };
        core.map_host(objects, block)
    }

    /// Whether one device can be let into the memory of another: the two are connected.
    pub fn can_access_peer(&self, device: u32, peer: u32) -> bool {
        let core = &self.world.core;
        let is_there = core.devices.get(device.max(peer) as usize).is_some();
        device != peer && is_there && core.config.links.connects(device, peer)
    }

    /// Lets kernels of a device reach the memory of another one, at the addresses that it has there; at first they do not. Kernels that began before see what they
    /// saw.
    ///
    /// # Errors
    /// Refused for a device that the machine does not have or the same one, unsupported for two that are not connected.
    pub fn enable_peer_access(&self, device: u32, peer: u32) -> Result<()> {
        self.world.core.set_peer_access(device, peer, true)
    }

    /// Ends what [`enable_peer_access`](Self::enable_peer_access) began.
    ///
    /// # Errors
    /// As there.
    pub fn disable_peer_access(&self, device: u32, peer: u32) -> Result<()> {
        self.world.core.set_peer_access(device, peer, false)
    }

    /// What kernels printed so far.
    pub fn printed(&self) -> Vec<u8> {
        self.world.core.lock().journal.printed().to_vec()
    }

    /// The same, and forgets it: what is printed later begins anew, with all the room that there is.
    pub fn take_printed(&self) -> Vec<u8> {
        self.world.core.lock().journal.take_printed()
    }

    /// How many bytes kernels printed so far beyond what [`printed`](Self::printed) holds.
    pub fn printed_left_out_bytes(&self) -> u64 {
        self.world.core.lock().journal.printed_left_out_bytes()
    }

    /// How many findings were made so far beyond what [`findings`](Self::findings) holds.
    pub fn findings_left_out(&self) -> u64 {
        self.world.core.lock().journal.dropped()
    }

    /// When which piece of work ran, in the order it did.
    pub fn timeline(&self) -> Vec<TimelineSpan> {
        self.world.core.lock().journal.spans().to_vec()
    }

    /// What [`timeline`](Self::timeline) tells, handed out and kept no longer, which makes room for what runs later.
    pub fn take_timeline(&self) -> Vec<TimelineSpan> {
        self.world.core.lock().journal.take_spans()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.world.core
    }
}

impl World {
    pub(crate) fn new(config: MachineConfig) -> Arc<Self> {
        let core = Arc::new(Core::new(config));
        let spawn = |_| {
            let core = core.clone();
            Builder::new().name("kiln-sim worker".into()).spawn(move || work(&core)).ok()
        };
        let workers = (0..core.workers()).filter_map(spawn).collect();
        Arc::new(Self { core, workers: Mutex::new(workers), has_host_threads: Mutex::new(false) })
    }

    /// Starts the threads for functions of the host, if an image has some and they are not there yet.
    pub(crate) fn start_host_threads(&self, image: &Image<'_>) -> Result<()> {
        let Image::HostKernels(name) = image else { return Ok(()) };
        let mut libraries = self.core.config.libraries.iter();
        let has_some = libraries.any(|library| library.name() == *name && library.has_host_functions());
        let mut are_there = self.has_host_threads.lock().unwrap_or_else(PoisonError::into_inner);
        if !has_some || *are_there {
            return Ok(());
        }
        for run in [Core::call_host_functions, Core::move_for_host_functions] {
            let core = self.core.clone();
            let thread = Builder::new().name("kiln-sim host".into()).spawn(move || run(&core));
            let thread = thread.map_err(|error| {
                let why = format!("no thread can be started for them: {error}");
                Error::unsupported("load", "functions of the host", why)
            })?;
            self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        *are_there = true;
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.core.lock().stop = true;
        self.core.notify();
        let workers = self.workers.get_mut().unwrap_or_else(PoisonError::into_inner);
        let here = std::thread::current().id();
        // A kernel may hold the last handle to its own machine; its thread cannot wait for itself.
        for worker in workers.drain(..).filter(|worker| worker.thread().id() != here) {
            let _ = worker.join();
        }
    }
}

/// A thread that runs what is ready.
fn work(core: &Core) {
    let mut state = core.lock();
    while !state.stop {
        state = match state.next_in_turn() {
            Some(ready) => core.step(state, ready),
            None => core.sleep(state),
        };
    }
}
