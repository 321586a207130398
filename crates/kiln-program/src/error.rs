//! Errors of bindings that do not fit a program.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::ShortTime;
use kiln_ir::{PlanError, Role, Type, trap_text};
use kiln_runtime::ErrorKind;

use crate::element_kind::ElementKind;
use crate::single_rank_collective::CollectiveError;

/// Why a program was not run, or what stopped it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Lengths, scalars or the shape do not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A collective that does not fit its communicator or its buffers.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A name the program does not have.
    #[error("the program has no {what} `{name}`; it has {known}")]
    Unknown {
        /// "buffer" or "scalar".
        what: &'static str,
        /// The name.
        name: String,
        /// The names it has.
        known: String,
    },
    /// A name that was given twice.
    #[error("{what} `{name}` was given twice; give it once")]
    Twice {
        /// "buffer" or "scalar".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Elements of another type.
    #[error("buffer `{name}` has elements of {wanted}, and {given} were given")]
    Element {
        /// The buffer.
        name: String,
        /// Its elements.
        wanted: Type,
        /// What was given.
        given: ElementKind,
    },
    /// A buffer given in a way its role does not allow.
    #[error("buffer `{name}` is {role}, and cannot be {given}; {next}")]
    Role {
        /// The buffer.
        name: String,
        /// What the program does with it.
        role: Role,
        /// What was tried, in words.
        given: &'static str,
        /// What to do instead.
        next: &'static str,
    },
    /// More bytes than there are addresses.
    #[error("buffer `{name}` would have {elements} elements, more than any device can hold")]
    TooLarge {
        /// The buffer.
        name: String,
        /// Its elements.
        elements: u64,
    },
    /// A grid or block the device cannot run.
    #[error("program `{program}`: a {what} of {given} is outside of the device's limits ({limit})")]
    Shape {
        /// The program.
        program: String,
        /// "grid" or "block".
        what: &'static str,
        /// What it would be.
        given: String,
        /// What is possible.
        limit: String,
    },
    /// Shared memory whose size the launch must say, or one that it must not.
    #[error("program `{program}`: {reason}")]
    Shared {
        /// The program.
        program: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The program was told not to check its accesses, so running it is unsafe.
    #[error(
        "program `{program}` does not check its accesses to `{buffer}`; dispatch it with `dispatch_unchecked`"
    )]
    Unchecked {
        /// The program.
        program: String,
        /// The first such buffer.
        buffer: String,
    },
    /// Two resident buffers share bytes, and the program writes one of them.
    #[error(
        "program `{program}`: `{first}` and `{second}` share bytes that it writes; give each different bytes"
    )]
    Overlap {
        /// The program.
        program: String,
        /// One of the buffers.
        first: String,
        /// The other.
        second: String,
    },
    /// More blocks than can be on the device at once, although all of them must be.
    #[error(
        "program `{program}` must have its {blocks} blocks resident at once, and {limit} can be; use fewer or smaller blocks"
    )]
    CooperativeResidencyExceeded {
        /// The program.
        program: String,
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks that fit.
        limit: u64,
    },
    /// A typed handle has another number of buffers or scalars than its program.
    #[error("program `{program}` has {declared} {what}, and its typed handle names {named}")]
    ParameterCount {
        /// The program.
        program: String,
        /// "buffers" or "scalars".
        what: &'static str,
        /// What the program has.
        declared: usize,
        /// What the handle names.
        named: usize,
    },
    /// A typed handle says something of a parameter that its program does not.
    #[error("program `{program}`: {declared}, and its typed handle says `{said}` of it")]
    ParameterType {
        /// The program.
        program: String,
        /// What the program says, with the name of the parameter.
        declared: String,
        /// What the handle says.
        said: String,
    },
    /// A device older than any architecture a program can be compiled for.
    #[error("programs run on compute capability 7.0 and above, and the device has {capability}")]
    DeviceTooOld {
        /// What the device has.
        capability: String,
    },
    /// A choice that cannot be honoured here.
    #[error("{what} cannot be had here: {why}")]
    Unsupported {
        /// The choice.
        what: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// The program trapped. What it wrote is not to be trusted.
    #[error("program `{program}` trapped with {} in thread {thread} of block {block}", trap_text(*code))]
    Trap {
        /// The program.
        program: String,
        /// What it said.
        code: u32,
        /// The number of the thread in its block.
        thread: u32,
        /// The number of the block in the grid.
        block: u64,
    },
    /// The time was up before the program was done. It still runs; what it writes is not to be trusted yet.
    #[error(
        "program `{program}` was not done within {}; it still runs, and what it writes is not to be trusted", ShortTime(*.limit)
    )]
    TimedOut {
        /// The program, or the first one of the sequence.
        program: String,
        /// The time it had.
        limit: Duration,
    },
    /// The flag still said that something changed after the last step.
    #[error("program `{program}` did not converge in {steps} steps")]
    NotConverged {
        /// The program.
        program: String,
        /// Steps that ran.
        steps: u64,
    },
}

impl ProgramError {
    /// Whether the program ran, and this is how it ended; anything else was refused before it.
    pub fn is_outcome(&self) -> bool {
        matches!(self, Self::Trap { .. } | Self::TimedOut { .. } | Self::NotConverged { .. })
    }
}

impl From<ProgramError> for ErrorKind {
    fn from(error: ProgramError) -> Self {
        Self::Other(Arc::new(error))
    }
}

impl From<CollectiveError> for ErrorKind {
    fn from(error: CollectiveError) -> Self {
        ProgramError::from(error).into()
    }
}
