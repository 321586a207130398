//! Why a device was lost.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use kiln_driver::Code;
use kiln_order::{DependencyTracker, Stamp};

/// How drivers write a launch; its name follows where it is known.
const LAUNCH: &str = "launch";

/// Why a device was lost, with everything that is known of the work that did it.
#[derive(Clone, Debug)]
pub struct Cause {
    error: kiln_driver::Error,
    ticket: Option<Stamp>,
    launched_at: Option<&'static Location<'static>>,
    given_up: Option<Arc<str>>,
    /// What work is told that failed by it, where that is no error of a driver.
    told: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Cause {
    /// The error alone.
    pub fn new(error: kiln_driver::Error) -> Self {
        Self { error, ticket: None, launched_at: None, given_up: None, told: None }
    }

    /// The error, and which launch of ours it belongs to, if the driver knows the submission and it is not long ago.
    pub(crate) fn found(error: kiln_driver::Error, tracker: &DependencyTracker) -> Self {
        let site = error.site().filter(|site| site.command.starts_with(LAUNCH));
        let lane = site.and_then(|site| tracker.state_of(site.stream));
        let launch = lane.zip(site).and_then(|(lane, site)| {
            let (number, at) = lane.sites().find(site.submission)?;
            Some((Stamp { stream: lane.key, number }, at))
        });
        let (ticket, launched_at) = launch.unzip();
        Self { error, ticket, launched_at, given_up: None, told: None }
    }

    /// The same, where failed work is told an error of a crate above.
    pub(crate) fn told_as(self, told: Arc<dyn std::error::Error + Send + Sync>) -> Self {
        Self { told: Some(told), ..self }
    }

    /// What failed work is told instead of the error of the driver.
    pub(crate) fn told(&self) -> Option<&Arc<dyn std::error::Error + Send + Sync>> {
        self.told.as_ref()
    }

    /// The same, and why the device did not come back.
    pub(crate) fn given_up(&self, why: &str) -> Self {
        Self { given_up: Some(why.into()), ..self.clone() }
    }

    /// The same, and whether the device may come back.
    pub(crate) fn with_successor(&self, has_successor: bool) -> Self {
        Self { error: self.error.clone().with_successor(has_successor), ..self.clone() }
    }

    /// What the driver said. Every waiter was told the same.
    pub fn error(&self) -> &kiln_driver::Error {
        &self.error
    }

    /// The CUDA code.
    pub fn code(&self) -> Option<Code> {
        self.error.code()
    }

    /// The kernel that ran, if a launch did it and the driver can tell which.
    pub fn kernel(&self) -> Option<&str> {
        self.error.site()?.command.strip_prefix(LAUNCH)?.strip_prefix(' ')
    }

    /// The ticket of the work that did it, if that is known.
    pub fn ticket(&self) -> Option<Stamp> {
        self.ticket
    }

    /// Why the device was not brought back, if that was tried in vain.
    pub fn why_given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// The line that launched it, if that is known.
    pub fn launched_at(&self) -> Option<&'static Location<'static>> {
        self.launched_at
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        if let Some(ticket) = self.ticket {
            write!(f, ", ticket {ticket}")?;
        }
        if let Some(at) = self.launched_at {
            write!(f, ", launched at {}:{}", at.file(), at.line())?;
        }
        match &self.given_up {
            Some(why) => write!(f, "; it was not brought back: {why}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
