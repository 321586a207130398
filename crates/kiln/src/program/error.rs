//! What does not fit between a program and what it was given. Nothing was queued.

use kiln_ir::{PlanError, Role, Type};

use super::element_kind::ElementKind;

/// Why a program was not run, or what stopped it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Lengths, scalars or the shape do not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    #[error("program `{program}` trapped with code {code} in thread {thread} of block {block}")]
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
    #[error("program `{program}` was not done in time")]
    TimedOut {
        /// The program.
        program: String,
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
