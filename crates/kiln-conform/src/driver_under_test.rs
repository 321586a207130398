//! `Subject`: how to open the driver under test, and what is excluded for it.

use std::fmt;
use std::sync::Arc;

use kiln_driver::Driver;

use crate::kernels::Kernels;

/// How often each law runs unless the subject says otherwise.
const DEFAULT_ROUNDS: u64 = 1;
/// About a millisecond on hardware.
const DEFAULT_SPIN_CLOCKS: u64 = 2_000_000;

type Open = dyn Fn(u64) -> Result<Opened, String> + Send + Sync;

/// A driver under test: how to open it fresh, which kernels it loads, and which laws it is excused from.
///
/// ```no_run
/// use kiln_conform::{Kernels, Opened, Subject};
/// # fn open_my_device() -> Result<std::sync::Arc<dyn kiln_driver::Driver>, String> { Err("none".into()) }
///
/// let subject = Subject::new("my device", Kernels::ptx(), |_round| Ok(Opened::new(open_my_device()?)))
///     .exclude("graphs.nested", "its graphs have no graphs inside");
/// println!("{}", kiln_conform::run_all(&subject));
/// ```
pub struct Subject {
    pub(crate) name: String,
    pub(crate) kernels: Kernels,
    pub(crate) open: Box<Open>,
    pub(crate) rounds: u64,
    pub(crate) spin_clocks: u64,
    pub(crate) real_time: bool,
    pub(crate) loss: Loss,
    pub(crate) exclusions: Vec<(&'static str, &'static str)>,
    pub(crate) absent: Option<Absent>,
}

/// A freshly opened driver, and what belongs to it.
pub struct Opened {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) peer: Option<Arc<dyn Driver>>,
    pub(crate) verdict: Option<Box<dyn FnOnce() -> Result<(), String> + Send>>,
}

/// Where a law may lose a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// On a separate device: losing it harms no other.
    FreshDevice,
    /// In a separate process, because a lost device is lost for the whole process.
    ChildProcess,
}

/// Why there is nothing to test, and whether that is a failure.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) reason: String,
    pub(crate) required: bool,
}

impl Subject {
    /// A subject that is opened fresh for each round of each law. The number of the round may serve as a seed.
    pub fn new(
        name: impl Into<String>,
        kernels: Kernels,
        open: impl Fn(u64) -> Result<Opened, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            kernels,
            open: Box::new(open),
            rounds: DEFAULT_ROUNDS,
            spin_clocks: DEFAULT_SPIN_CLOCKS,
            real_time: false,
            loss: Loss::FreshDevice,
            exclusions: Vec::new(),
            absent: None,
        }
    }

    /// A subject that is not there: every law counts as skipped, or as failed where the subject is required.
    pub fn absent(name: impl Into<String>, reason: impl Into<String>, required: bool) -> Self {
        let reason = reason.into();
        let mut subject = Self::new(name, Kernels::ptx(), |_| Err("absent".into()));
        subject.absent = Some(Absent { reason, required });
        subject
    }

    /// Runs each law so often, each time on a fresh driver with the next number.
    #[must_use]
    pub fn rounds(self, rounds: u64) -> Self {
        Self { rounds: rounds.max(1), ..self }
    }

    /// How long a kernel has to spin to be still running when the host has made a few calls.
    #[must_use]
    pub fn spin_clocks(self, clocks: u64) -> Self {
        Self { spin_clocks: clocks, ..self }
    }

    /// Says that a spinning kernel takes the host's time too, so that a call which waits for it can be told from one that
    /// does not.
    #[must_use]
    pub fn in_real_time(self) -> Self {
        Self { real_time: true, ..self }
    }

    /// Where a law may lose a device; a fresh one unless it is said otherwise.
    #[must_use]
    pub fn loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// Excuses the subject from a law. If it keeps the law, that is a failure: the exclusion is out of
    /// date.
    #[must_use]
    pub fn exclude(mut self, law: &'static str, reason: &'static str) -> Self {
        self.exclusions.push((law, reason));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn exclusion(&self, law: &str) -> Option<&'static str> {
        self.exclusions.iter().find(|(excluded, _)| *excluded == law).map(|(_, reason)| *reason)
    }
}

impl Opened {
    /// A driver alone.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, peer: None, verdict: None }
    }

    /// A driver of another device that this one can copy to and from.
    #[must_use]
    pub fn with_peer(self, peer: Arc<dyn Driver>) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Something that looks at the driver, or at what stands below it, after a law that was kept; what it finds is
    /// a failure of that law. The law has given back what it made by then.
    #[must_use]
    pub fn with_verdict(self, verdict: impl FnOnce() -> Result<(), String> + Send + 'static) -> Self {
        Self { verdict: Some(Box::new(verdict)), ..self }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subject {} in {} rounds, {} exclusions", self.name, self.rounds, self.exclusions.len())
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.driver.info().name)
    }
}
