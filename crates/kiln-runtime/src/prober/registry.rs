//! The devices of one platform and their runtimes, one each.
//!
//! The list is asked for once and kept. A fault is kept too, so that a hundred modules do not each ask a driver that does
//! not work, until [`refresh`](super::refresh); a fault that may pass by itself, such as a lack of memory, is not kept at
//! all. A runtime is opened by the first request for its device. Once it is over, the next request opens another; a failed
//! attempt is not kept. No lock is held over a call to the platform.
//!
//! The best device that can be opened serves requests that name none. A better one that could not be opened is skipped, so
//! that all of these requests share one runtime: it is tried again after a refresh, by a request that names it, and
//! when no other device can be opened.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{DeviceInfo, DeviceKind, Refusal};
use kiln_mem::MemoryResourceExt;
use kiln_probe::{
    Availability, CudaAbsence, Devices, Listing, Platform, ProbeError, Selection, SharedAttempt, no_working,
    ranked,
};

use super::runtime_cell::RuntimeCell;
use super::shared_config::{Building, SharedConfig};
use crate::device_state::DeviceState;
use crate::error::{Error, ErrorKind, Misuse, Result};
use crate::isolation::Isolation;
use crate::runtime::{DeviceRuntime, RuntimeConfig};

/// Devices of one platform that a process can use.
pub const MAX_DEVICES: usize = 64;

/// No process has this number.
const NO_PROCESS: u32 = 0;

/// A runtime that was just opened; the configuration stays until everyone can see it.
type Opened<'a> = (&'static DeviceRuntime, Building<'a>);

pub(super) struct Registry {
    platform: Box<dyn Platform>,
    /// What runtimes are built with.
    config: Arc<SharedConfig>,
    kept: Mutex<Option<Result<Availability>>>,
    look: SharedAttempt<Result<Availability>>,
    runtimes: [RuntimeCell; MAX_DEVICES],
    /// Devices that could not be opened when the best one was asked for, and why.
    skipped: Mutex<BTreeMap<u32, Error>>,
    /// The process that first met the platform's driver. A driver does not survive a fork.
    process: AtomicU32,
}

impl Registry {
    pub(super) fn new(platform: Box<dyn Platform>, config: Arc<SharedConfig>) -> Self {
        Self {
            platform,
            config,
            kept: Mutex::new(None),
            look: SharedAttempt::new(),
            runtimes: [const { RuntimeCell::new() }; MAX_DEVICES],
            skipped: Mutex::default(),
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
            return kept.map(|availability| self.with_skipped(availability));
        }
        let answer = self.look.join(|| {
            let kept = self.kept().clone();
            kept.unwrap_or_else(|| self.look_now())
        })?;
        answer.map(|availability| self.with_skipped(availability))
    }

    /// A look that began after this call did. Devices that were skipped are tried again.
    pub(super) fn refresh(&self) -> Result<Availability> {
        self.check_process()?;
        let mut own = false;
        let mut answer = self.look.join(|| {
            own = true;
            self.look_now()
        })?;
        if !own {
            // That look was under way already. The one that we join now, or make, is fresh.
            answer = self.look.join(|| self.look_now())?;
        }
        answer
    }

    /// The one runtime of a device; opened now if there is none, or if the last one is over.
    pub(super) fn runtime(&self, ordinal: u32) -> Result<&'static DeviceRuntime> {
        let cell = usize::try_from(ordinal).ok().and_then(|at| self.runtimes.get(at));
        if let Some(runtime) = cell.and_then(RuntimeCell::get) {
            self.check_process()?;
            return Ok(runtime);
        }
        let devices = self.devices()?;
        match cell {
            Some(cell) if (ordinal as usize) < devices.len() => {
                let runtime = cell.get_or_open(|last| self.open(ordinal, last))?;
                self.skipped().remove(&ordinal);
                Ok(runtime)
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
            Selection::Best => self.best(),
            named => self.runtime(named.choose(&*self.devices()?)?.ordinal),
        }
    }

    /// The ordinal of a device whose runtime is open, if there is one.
    pub(super) fn first_open(&self) -> Option<u32> {
        (0..).zip(&self.runtimes).find(|(_, cell)| cell.get().is_some()).map(|(ordinal, _)| ordinal)
    }

    /// The runtime of the best device that can be opened. Devices that were skipped before come last.
    fn best(&self) -> Result<&'static DeviceRuntime> {
        let devices = self.devices()?;
        let kind = self.kind();
        let mut candidates: Vec<u32> = ranked(&devices).iter().map(|device| device.ordinal).collect();
        let skipped: Vec<u32> = self.skipped().keys().copied().collect();
        candidates.sort_by_key(|ordinal| skipped.contains(ordinal));
        let mut first = None;
        for (at, ordinal) in (1..).zip(&candidates) {
            let error = match self.runtime(*ordinal) {
                Ok(runtime) => return Ok(runtime),
                Err(error) => error,
            };
            if matches!(error.kind(), ErrorKind::Probe(ProbeError::Forked | ProbeError::Recursion)) {
                return Err(error);
            }
            if at < candidates.len() {
                tracing::warn!("{kind} device {ordinal} cannot be opened and is skipped: {error:#}");
            }
            self.skipped().insert(*ordinal, error.clone());
            first.get_or_insert(error);
        }
        Err(first.unwrap_or_else(|| no_working(&devices).into()))
    }

    /// The devices, or absence as an error.
    pub(super) fn devices(&self) -> Result<Arc<Devices>> {
        match self.availability()? {
            Availability::Available(devices) => Ok(devices),
            Availability::Absent(absence) => Err(absence.into()),
        }
    }

    /// Opens a device, whose last runtime is over if it had one.
    fn open(&self, ordinal: u32, last: Option<&'static DeviceRuntime>) -> Result<Opened<'_>> {
        let Some(last) = last else { return self.build(ordinal) };
        let kind = self.kind();
        let failure = match last.state() {
            DeviceState::Failed(cause) => Some(cause),
            _ => None,
        };
        match &failure {
            Some(cause) => tracing::warn!("{kind} device {ordinal} failed and is opened again: {cause}"),
            None => tracing::info!("{kind} device {ordinal} was shut down and is opened again"),
        }
        // Memory that no handle holds any more is for the next runtime. A device that is lost has none to give back.
        let _ = last.memory().trim();
        self.build(ordinal)
            .map_err(|error| ErrorKind::Reopen { kind, ordinal, failure, cause: Box::new(error) }.into())
    }

    fn build(&self, ordinal: u32) -> Result<Opened<'_>> {
        let kind = self.kind();
        let building = self.config.take();
        let config = building.config.clone();
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
            // The caller that decided to simulate says why.
            DeviceKind::Simulated => tracing::debug!("opened {kind} device {ordinal}: {name}"),
        }
        Ok((Box::leak(Box::new(runtime)), building))
    }

    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn open_isolated(&self, ordinal: u32, config: RuntimeConfig) -> Result<DeviceRuntime> {
        DeviceRuntime::open(&self.backend(ordinal)?, config)
    }

    /// How a worker process opens the best device.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    pub(super) fn best_backend(&self) -> Result<kiln_isolate::DeviceSpec> {
        let devices = self.devices()?;
        let ranked = ranked(&devices);
        let best = ranked.first().ok_or_else(|| no_working(&devices))?;
        self.backend(best.ordinal)
    }

    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<kiln_isolate::DeviceSpec> {
        let unknown = || Misuse::UnknownBackend { name: format!("{} device {ordinal}", self.kind()) };
        Ok(self.platform.backend(ordinal)?.ok_or_else(unknown)?)
    }

    #[cfg(not(all(feature = "isolate", target_os = "linux")))]
    fn open_isolated(&self, _: u32, _: RuntimeConfig) -> Result<DeviceRuntime> {
        Err(Isolation::not_built())
    }

    fn look_now(&self) -> Result<Availability> {
        self.skipped().clear();
        let answer = self.ask();
        if !matches!(answer, Ok(Availability::Absent(_))) {
            self.process.store(process::id(), Ordering::Relaxed);
        }
        let keep = answer.as_ref().err().is_none_or(|error| !error.is_retryable());
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

    /// The same answer with the devices that could not be opened.
    fn with_skipped(&self, availability: Availability) -> Availability {
        let skipped = self.skipped();
        match availability {
            Availability::Available(devices) if !skipped.is_empty() => {
                let skipped = skipped.iter().map(|(ordinal, error)| (*ordinal, of_probe(error))).collect();
                Availability::Available(Arc::new(devices.with_skipped(skipped)))
            }
            availability => availability,
        }
    }

    fn check_process(&self) -> Result<()> {
        let met = self.process.load(Ordering::Relaxed);
        if met == NO_PROCESS || met == process::id() { Ok(()) } else { Err(ProbeError::Forked.into()) }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Result<Availability>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn skipped(&self) -> MutexGuard<'_, BTreeMap<u32, Error>> {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same error as a list of devices holds it.
fn of_probe(error: &Error) -> ProbeError {
    match error.kind() {
        ErrorKind::Probe(error) => error.clone(),
        ErrorKind::Driver(error) => error.clone().into(),
        _ => ProbeError::other(error.clone()),
    }
}

/// Says what a driver's error stopped; other errors say so themselves.
fn explain(error: ProbeError, stopped: impl FnOnce(kiln_driver::Error) -> ProbeError) -> ProbeError {
    match error {
        ProbeError::Driver(cause) => stopped(cause),
        error => error,
    }
}
