//! The devices of one platform and their runtimes, one each.
//!
//! The list is asked for once and kept. A fault is kept too, so that a hundred modules do not each ask a driver that
//! does not work, but only until a fresh look is asked for; one that may pass by itself, such as a lack of
//! memory, is not kept at all. A runtime is built by the first who asks for its device and lives until the process
//! ends; a failed attempt leaves its place free. No lock is held over a call to the platform.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{DeviceInfo, DeviceKind, Refusal};
use kiln_probe::{
    Availability, CudaAbsence, Devices, Flight, Listing, Platform, ProbeError, RetryCell, Selection,
};

use crate::error::{Error, Misuse, Result};
use crate::isolation::Isolation;
use crate::runtime::{DeviceRuntime, RuntimeConfig};

/// Devices of one platform that a process can use.
pub const MAX_DEVICES: usize = 64;

/// No process has this number.
const NO_PROCESS: u32 = 0;

pub(super) struct Registry {
    platform: Box<dyn Platform>,
    /// What runtimes are built with; those that are open keep theirs.
    config: Arc<Mutex<RuntimeConfig>>,
    kept: Mutex<Option<Result<Availability>>>,
    look: Flight<Result<Availability>>,
    runtimes: [RetryCell<&'static DeviceRuntime, Error>; MAX_DEVICES],
    /// The process that first met the platform's driver. A driver does not survive a fork.
    process: AtomicU32,
}

impl Registry {
    pub(super) fn new(platform: Box<dyn Platform>, config: Arc<Mutex<RuntimeConfig>>) -> Self {
        Self {
            platform,
            config,
            kept: Mutex::new(None),
            look: Flight::new(),
            runtimes: [const { RetryCell::new() }; MAX_DEVICES],
            process: AtomicU32::new(NO_PROCESS),
        }
    }

    pub(super) fn kind(&self) -> DeviceKind {
        self.platform.kind()
    }

    /// The kept answer, or a first look.
    pub(super) fn availability(&self) -> Result<Availability> {
        self.check_process()?;
        if let Some(kept) = self.kept().clone() {
            return kept;
        }
        self.look.join(|| {
            let kept = self.kept().clone();
            kept.unwrap_or_else(|| self.look_now())
        })?
    }

    /// A look that began after this call did.
    pub(super) fn refresh(&self) -> Result<Availability> {
        self.check_process()?;
        let mut own = false;
        let mut answer = self.look.join(|| {
            own = true;
            self.look_now()
        })?;
        if !own {
            // That look was under way already. One that we find now, or make, is fresh.
            answer = self.look.join(|| self.look_now())?;
        }
        answer
    }

    /// The one runtime of a device.
    pub(super) fn runtime(&self, ordinal: u32) -> Result<&'static DeviceRuntime> {
        let cell = usize::try_from(ordinal).ok().and_then(|at| self.runtimes.get(at));
        if let Some(runtime) = cell.and_then(RetryCell::get) {
            self.check_process()?;
            return Ok(runtime);
        }
        let devices = self.devices()?;
        match cell {
            Some(cell) if (ordinal as usize) < devices.len() => {
                cell.get_or_try_init(|| self.build(ordinal)).copied()
            }
            None if (ordinal as usize) < devices.len() => {
                let limit = Refusal::Limit { what: "devices in one process", limit: MAX_DEVICES as u64 };
                Err(kiln_driver::Error::refused("open", limit).into())
            }
            _ => Err(devices.unknown(format!("ordinal {ordinal}")).into()),
        }
    }

    /// The one runtime of the chosen device.
    pub(super) fn select(&self, selection: &Selection) -> Result<&'static DeviceRuntime> {
        match selection {
            // A device that did not answer when it was listed may answer now.
            Selection::Ordinal(ordinal) => self.runtime(*ordinal),
            _ => self.runtime(selection.choose(&*self.devices()?)?.ordinal),
        }
    }

    /// The devices, or absence as an error.
    pub(super) fn devices(&self) -> Result<Arc<Devices>> {
        match self.availability()? {
            Availability::Available(devices) => Ok(devices),
            Availability::Absent(absence) => Err(absence.into()),
        }
    }

    fn build(&self, ordinal: u32) -> Result<&'static DeviceRuntime> {
        let kind = self.kind();
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let runtime = match config.isolation {
            Isolation::InProcess => {
                let opened = self.platform.open(ordinal);
                let stopped = |cause| ProbeError::Context { kind, ordinal, cause };
                DeviceRuntime::from_driver(opened.map_err(|error| explain(error, stopped))?, config)?
            }
            Isolation::Process(_) => self.open_isolated(ordinal, config)?,
        };
        let DeviceInfo { name, capability, uuid, .. } = runtime.info();
        match kind {
            DeviceKind::Cuda => {
                tracing::info!("opened {kind} device {ordinal}: {name}, capability {capability}, {uuid}")
            }
            // Why a device is simulated is logged where that is decided.
            DeviceKind::Simulated => tracing::debug!("opened {kind} device {ordinal}: {name}"),
        }
        Ok(Box::leak(Box::new(runtime)))
    }

    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn open_isolated(&self, ordinal: u32, config: RuntimeConfig) -> Result<DeviceRuntime> {
        let unknown = || Misuse::UnknownBackend { name: format!("{} device {ordinal}", self.kind()) };
        let backend = self.platform.backend(ordinal)?.ok_or_else(unknown)?;
        DeviceRuntime::open(&backend, config)
    }

    #[cfg(not(all(feature = "isolate", target_os = "linux")))]
    fn open_isolated(&self, _: u32, _: RuntimeConfig) -> Result<DeviceRuntime> {
        Err(Isolation::not_built())
    }

    fn look_now(&self) -> Result<Availability> {
        let answer = self.ask();
        if !matches!(answer, Ok(Availability::Absent(_))) {
            self.process.store(process::id(), Ordering::Relaxed);
        }
        let keep = answer.as_ref().err().is_none_or(|error| !error.is_oom());
        *self.kept() = keep.then(|| answer.clone());
        answer
    }

    fn ask(&self) -> Result<Availability> {
        let kind = self.kind();
        let listing_failed = |cause| ProbeError::Listing { kind, cause };
        let entries = match self.platform.list().map_err(|error| explain(error, listing_failed))? {
            Listing::Absent(absence) => return Ok(Availability::Absent(absence)),
            Listing::Devices(entries) => entries,
        };
        let devices = Devices::new(kind, entries);
        for (ordinal, error) in devices.broken() {
            tracing::warn!("{kind} device {ordinal} does not answer: {error}");
        }
        if devices.working().next().is_some() {
            return Ok(Availability::Available(Arc::new(devices)));
        }
        match devices.broken().next() {
            Some((_, cause)) => Err(listing_failed(cause.clone()).into()),
            None => Ok(Availability::Absent(CudaAbsence::NoDevice.into())),
        }
    }

    fn check_process(&self) -> Result<()> {
        let met = self.process.load(Ordering::Relaxed);
        if met == NO_PROCESS || met == process::id() { Ok(()) } else { Err(ProbeError::Forked.into()) }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Result<Availability>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what a driver's error stopped; other errors speak for themselves.
fn explain(error: ProbeError, stopped: impl FnOnce(kiln_driver::Error) -> ProbeError) -> ProbeError {
    match error {
        ProbeError::Driver(cause) => stopped(cause),
        error => error,
    }
}
