//! A system on which signals are not passed on.

use std::io;
use std::process::Command;

use crate::program_end::ProgramEnd;

/// The signals of this command, which end it.
pub(crate) struct ProgramSignals;

/// A wait, which signals end with this command.
pub(crate) struct NotedSignals;

impl NotedSignals {
    /// Never.
    pub(crate) fn is_ended(&self) -> bool {
        false
    }
}

impl ProgramSignals {
    /// Does nothing.
    pub(crate) fn wait(&self) -> NotedSignals {
        NotedSignals
    }

    /// Does nothing.
    ///
    /// # Errors
    /// None.
    pub(crate) fn hold() -> io::Result<Self> {
        Ok(Self)
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub(crate) fn run(&mut self, command: &mut Command) -> io::Result<ProgramEnd> {
        Ok(ProgramEnd { status: command.status()?, is_signalled: false })
    }
}
