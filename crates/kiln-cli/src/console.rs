//! Where the command's words go.
//!
//! A reader may leave early (`kiln demo | head`); that is no fault of the command and no reason to panic. Once the pipe
//! is closed the rest is not written, and the command ends as it would have. Any other failure to write is kept and
//! ends the command as a fault. Colours are for people: only a terminal gets them.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::exit::Exit;

/// Columns of a terminal whose width is not known.
const DEFAULT_COLUMNS: usize = 100;

/// The standard output.
pub(crate) struct Console {
    out: Box<dyn Write>,
    state: State,
    colours: bool,
}

enum State {
    Open,
    Closed,
    Failed(io::Error),
}

impl Console {
    /// The standard output of this process.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let colours = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { out: Box::new(out), state: State::Open, colours }
    }

    /// Whether a person with a terminal reads this.
    pub(crate) fn colours(&self) -> bool {
        self.colours
    }

    /// How wide a drawing may be.
    pub(crate) fn columns(&self) -> usize {
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        columns.filter(|columns| (40..=400).contains(columns)).unwrap_or(DEFAULT_COLUMNS)
    }

    /// Writes a line, or several.
    pub(crate) fn line(&mut self, text: impl Display) {
        if !matches!(self.state, State::Open) {
            return;
        }
        if let Err(error) = writeln!(self.out, "{text}").and_then(|()| self.out.flush()) {
            self.state = match error.kind() {
                io::ErrorKind::BrokenPipe => State::Closed,
                _ => State::Failed(error),
            };
        }
    }

    /// Writes a value as JSON.
    pub(crate) fn json(&mut self, command: &str, value: &impl Serialize) -> Exit {
        match serde_json::to_string_pretty(value) {
            Ok(json) => {
                self.line(json);
                Exit::Done
            }
            Err(error) => {
                complain(format_args!("kiln {command}: {error}"));
                Exit::Fault
            }
        }
    }

    /// Sends what others write to the standard output from here on to the standard error instead, such as what a GPU's driver
    /// prints for kernels; only this console still writes to the output.
    #[cfg(unix)]
    pub(crate) fn keep_for_itself(&mut self) -> io::Result<()> {
        use std::os::fd::AsFd;
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        self.out = Box::new(std::fs::File::from(own));
        Ok(())
    }

    /// Elsewhere the two are not kept apart.
    #[cfg(not(unix))]
    pub(crate) fn keep_for_itself(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Why something could not be written, unless the reader had simply left.
    pub(crate) fn failure(self) -> Option<io::Error> {
        match self.state {
            State::Open | State::Closed => None,
            State::Failed(error) => Some(error),
        }
    }
}

/// Writes a line to the standard error; there is nobody to tell if that fails.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
