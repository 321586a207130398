//! A law and its result.

use std::fmt;
use std::panic::Location;

use crate::chapters;
use crate::fixture::Rig;

/// One sentence of the contract of the driver interface, with the program that shows it to be kept.
#[derive(Clone, Copy)]
pub struct Law {
    /// Chapter and law, such as `pages.survive_unmap`.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Shows it, or where it fails.
    pub run: fn(&Rig<'_>) -> LawVerdict,
}

/// The answer of a law.
pub type LawVerdict = Result<(), Stop>;

/// Why a law did not come to its end.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The driver does not keep it.
    Failed(Failure),
    /// There is nothing to show on this device, and why.
    Inapplicable(String),
}

/// A law that is not kept: what it expected, what it saw, and where.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the law says should be.
    pub expected: String,
    /// What was.
    pub seen: String,
    /// The line of the law.
    pub at: &'static Location<'static>,
}

/// A group of laws, one file each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Chapter {
    /// Properties of a device.
    Device,
    /// Addresses, physical memory, and mappings between them.
    Pages,
    /// Memory that is mapped already, direct and from the pool.
    Memory,
    /// Host memory the device can reach.
    Host,
    /// Streams, events, waiting.
    Streams,
    /// Modules and kernels.
    Code,
    /// Library operations.
    Libraries,
    /// Copies, fills and launches.
    Work,
    /// Order between streams.
    Order,
    /// Graphs.
    Graphs,
    /// Two devices of a process.
    Peers,
    /// Communicators and collectives.
    Collectives,
    /// Handles that are stale or belong to another device.
    Handles,
    /// Many threads at once.
    Threads,
    /// A device that is lost.
    Loss,
}

impl Chapter {
    /// All chapters, in reading order.
    pub const ALL: &'static [Self] = &[
        Self::Device,
        Self::Pages,
        Self::Memory,
        Self::Host,
        Self::Streams,
        Self::Code,
        Self::Libraries,
        Self::Work,
        Self::Order,
        Self::Graphs,
        Self::Peers,
        Self::Collectives,
        Self::Handles,
        Self::Threads,
        Self::Loss,
    ];

    /// Its laws.
    pub fn laws(self) -> &'static [Law] {
        match self {
            Self::Device => chapters::device::LAWS,
            Self::Pages => chapters::pages::LAWS,
            Self::Memory => chapters::memory::LAWS,
            Self::Host => chapters::host_memory::LAWS,
            Self::Streams => chapters::streams::LAWS,
            Self::Code => chapters::code::LAWS,
            Self::Libraries => chapters::libraries::LAWS,
            Self::Work => chapters::work::LAWS,
            Self::Order => chapters::order::LAWS,
            Self::Graphs => chapters::graphs::LAWS,
            Self::Peers => chapters::peers::LAWS,
            Self::Collectives => chapters::collectives::LAWS,
            Self::Handles => chapters::handles::LAWS,
            Self::Threads => chapters::threads::LAWS,
            Self::Loss => chapters::loss::LAWS,
        }
    }

    /// Its name, as in the names of its laws.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Pages => "pages",
            Self::Memory => "memory",
            Self::Host => "host",
            Self::Streams => "streams",
            Self::Code => "code",
            Self::Libraries => "libraries",
            Self::Work => "work",
            Self::Order => "order",
            Self::Graphs => "graphs",
            Self::Peers => "peers",
            Self::Collectives => "collectives",
            Self::Handles => "handles",
            Self::Threads => "threads",
            Self::Loss => "loss",
        }
    }
}

/// All laws, in reading order.
pub fn all_laws() -> impl Iterator<Item = &'static Law> {
    Chapter::ALL.iter().flat_map(|chapter| chapter.laws())
}

impl Law {
    /// Whether running it loses the device.
    pub fn loses_device(&self) -> bool {
        Chapter::Loss.laws().iter().any(|law| law.name == self.name)
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.says)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, saw {} ({}:{})", self.expected, self.seen, self.at.file(), self.at.line())
    }
}

impl From<kiln_driver::Error> for Stop {
    #[track_caller]
    fn from(error: kiln_driver::Error) -> Self {
        fail("the call to succeed", error)
    }
}

/// A failure at the caller's line.
#[track_caller]
pub(crate) fn fail(expected: impl fmt::Display, seen: impl fmt::Display) -> Stop {
    let at = Location::caller();
    Stop::Failed(Failure { expected: expected.to_string(), seen: seen.to_string(), at })
}
