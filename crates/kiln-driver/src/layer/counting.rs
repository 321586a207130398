//! Counts calls, so that a test can say how many a piece of work may cost.

use std::sync::atomic::{AtomicU64, Ordering};

use super::forwarding::Layer;
use crate::call::{Answer, Call, CallKind};
use crate::command::Command;
use crate::error::Error;

/// A layer that counts every call that reached the driver, failed ones included.
///
/// ```
/// # fn main() -> kiln_driver::Result<()> {
/// use kiln_driver::call::CallKind;
/// use kiln_driver::layer::{CommandKind, Counting, Layered};
/// use kiln_driver::{Driver, DriverExt, MemoryRequest, StreamRequest};
///
/// # let device = kiln_sim::Machine::new(kiln_sim::MachineConfig::seeded(1)).device(0)?;
/// let driver = Layered::new(device, Counting::default());
/// let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
/// let memory = driver.allocate(MemoryRequest::Direct { bytes: 64 })?;
/// let before = driver.layer().counts();
/// driver.fill(stream, memory.id.into(), 7, 64)?;
/// driver.synchronize(stream)?;
/// let cost = driver.layer().counts().since(&before);
/// assert_eq!((cost.total(), cost.of(CallKind::Wait), cost.submitted(CommandKind::Fill)), (2, 1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Counting {
    calls: [AtomicU64; CallKind::ALL.len()],
    commands: [AtomicU64; CommandKind::ALL.len()],
    failed: AtomicU64,
}

/// How many calls there were of each kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    calls: [u64; CallKind::ALL.len()],
    commands: [u64; CommandKind::ALL.len()],
    failed: u64,
}

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum CommandKind {
    /// [`Command::Copy`].
    Copy,
    /// [`Command::Fill`].
    Fill,
    /// [`Command::Launch`].
    Launch,
    /// [`Command::Signal`].
    Signal,
    /// [`Command::Wait`].
    Wait,
    /// [`Command::Graph`].
    Graph,
}

impl CommandKind {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Copy, Self::Fill, Self::Launch, Self::Signal, Self::Wait, Self::Graph];

    /// The kind of a command.
    pub fn of(command: &Command<'_>) -> Self {
        match command {
            Command::Copy { .. } => Self::Copy,
            Command::Fill { .. } => Self::Fill,
            Command::Launch(_) => Self::Launch,
            Command::Signal(_) => Self::Signal,
            Command::Wait(_) => Self::Wait,
            Command::Graph(_) => Self::Graph,
        }
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            calls: [const { AtomicU64::new(0) }; CallKind::ALL.len()],
            commands: [const { AtomicU64::new(0) }; CommandKind::ALL.len()],
            failed: AtomicU64::new(0),
        }
    }
}

impl Counting {
    /// The counts so far.
    pub fn counts(&self) -> Counts {
        Counts {
            calls: std::array::from_fn(|at| self.calls[at].load(Ordering::Relaxed)),
            commands: std::array::from_fn(|at| self.commands[at].load(Ordering::Relaxed)),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl Counts {
    /// Calls of one kind.
    pub fn of(&self, kind: CallKind) -> u64 {
        self.calls[kind as usize]
    }

    /// Commands of one kind that streams took.
    pub fn submitted(&self, kind: CommandKind) -> u64 {
        self.commands[kind as usize]
    }

    /// Calls of all kinds.
    pub fn total(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// Calls that returned an error.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: std::array::from_fn(|at| self.calls[at].saturating_sub(earlier.calls[at])),
            commands: std::array::from_fn(|at| self.commands[at].saturating_sub(earlier.commands[at])),
            failed: self.failed.saturating_sub(earlier.failed),
        }
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (CallKind, u64)> + '_ {
        CallKind::ALL.iter().map(|kind| (*kind, self.of(*kind))).filter(|(_, count)| *count > 0)
    }
}

impl Layer for Counting {
    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        self.calls[call.kind() as usize].fetch_add(1, Ordering::Relaxed);
        match (call, answer) {
            (_, Err(_)) => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
            (Call::Submit { command, .. }, Ok(_)) => {
                self.commands[CommandKind::of(command) as usize].fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}
