//! Why a device was lost.

use std::fmt;
use std::panic::Location;

use kiln_driver::Code;

use crate::order::{Stamp, Tracker};

/// How drivers write a launch; its name follows where it is known.
const LAUNCH: &str = "launch";

/// Why a device was lost, with everything that is known of the work that did it.
#[derive(Clone, Debug)]
pub struct Cause {
    error: kiln_driver::Error,
    ticket: Option<Stamp>,
    launched_at: Option<&'static Location<'static>>,
}

impl Cause {
    /// The error alone.
    pub(crate) fn new(error: kiln_driver::Error) -> Self {
        Self { error, ticket: None, launched_at: None }
    }

    /// The error, and which launch of ours it belongs to, if the driver knows the submission and it is not long ago.
    pub(crate) fn found(error: kiln_driver::Error, tracker: &Tracker) -> Self {
        let site = error.site().filter(|site| site.command.starts_with(LAUNCH));
        let lane = site.and_then(|site| tracker.lane_of(site.stream));
        let launch = lane.zip(site).and_then(|(lane, site)| {
            let (number, at) = lane.sites().find(site.submission)?;
            Some((Stamp { stream: lane.key, number }, at))
        });
        Self { error, ticket: launch.map(|(stamp, _)| stamp), launched_at: launch.map(|(_, at)| at) }
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
        match self.launched_at {
            Some(at) => write!(f, ", launched at {}:{}", at.file(), at.line()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
