//! The standard output and error of a command: text, JSON, colours, width.
//!
//! A reader may leave early (`kiln demo | head`); that is no fault of the command and no reason to panic. Once the pipe
//! is closed the rest is not written, and the command ends as it would have. Any other failure to write is kept and
//! ends the command with the code of files that cannot be written. Only a terminal gets colours. No line is wider than the terminal; in a pipe or a file lines are not
//! broken, so that they can be searched, unless `COLUMNS` says how wide they may be. A line that is pasted elsewhere is never broken. Control characters that come
//! from files or names are shown as escapes.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;
use crate::line_wrap::wrap;
use crate::outputs_at_start::output_was_closed;
use crate::printable_text::printable;

/// Columns of a drawing or a help text where there is no terminal.
const DEFAULT_COLUMNS: usize = 80;
/// A narrower terminal is taken for one of so many columns.
const LEAST_COLUMNS: usize = 40;
const MOST_COLUMNS: usize = 400;

/// The standard output.
pub(crate) struct Console {
    out: Box<dyn Write>,
    state: State,
    colours: bool,
    /// None if lines are not broken.
    columns: Option<usize>,
    /// Whether a JSON document was written.
    has_json: bool,
}

enum State {
    Open,
    /// It was closed when the command began, which is a failure as soon as there is something to write.
    WasClosed,
    /// The reader left.
    Closed,
    Failed(io::Error),
}

impl Console {
    /// The standard output of this process.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let colours = is_terminal && allows_colours();
        let columns = columns(terminal_columns(&out));
        let state = match output_was_closed() {
            true => State::WasClosed,
            false => State::Open,
        };
        Self { out: Box::new(out), state, colours, columns, has_json: false }
    }

    /// Whether output may have colours.
    pub(crate) fn colours(&self) -> bool {
        self.colours
    }

    /// How wide a line may be.
    pub(crate) fn columns(&self) -> usize {
        self.columns.unwrap_or(usize::MAX)
    }

    /// How wide a drawing or a help text is.
    pub(crate) fn drawing_columns(&self) -> usize {
        self.columns.unwrap_or(DEFAULT_COLUMNS)
    }

    /// Writes a line, or several; lines that are too wide are broken.
    pub(crate) fn line(&mut self, text: impl Display) {
        let text = printable(&text.to_string(), self.colours);
        self.write(&wrap(&text, self.columns()));
    }

    /// Writes a line that is pasted elsewhere, such as a command or an address, so that it is never broken.
    pub(crate) fn unbroken(&mut self, text: impl Display) {
        self.write(&printable(&text.to_string(), self.colours));
    }

    /// Writes text as it is, such as code or JSON, and a line end.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.write(text);
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(value).map_err(|error| Failure::fault(error.to_string()))?;
        self.write(&json);
        self.has_json = true;
        Ok(())
    }

    /// Whether a JSON document was written.
    pub(crate) fn has_json(&self) -> bool {
        self.has_json
    }

    fn write(&mut self, text: &str) {
        match self.state {
            State::Open => {}
            State::WasClosed => {
                self.state = State::Failed(io::Error::other("the standard output is closed"));
                return;
            }
            State::Closed | State::Failed(_) => return,
        }
        if let Err(error) = writeln!(self.out, "{text}").and_then(|()| self.out.flush()) {
            self.state = match error.kind() {
                io::ErrorKind::BrokenPipe => State::Closed,
                _ => State::Failed(error),
            };
        }
    }

    /// Whether all that was written came through so far.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// From here on, what anything else writes to the standard output goes to the standard error, such as what a GPU's driver
    /// prints for kernels. Only this console still writes to the output.
    #[cfg(unix)]
    pub(crate) fn reserve_stdout(&mut self) -> io::Result<()> {
        use std::os::fd::AsFd;
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        self.out = Box::new(std::fs::File::from(own));
        Ok(())
    }

    /// Other systems do not keep the two apart.
    #[cfg(not(unix))]
    pub(crate) fn reserve_stdout(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Why something could not be written. A reader that left is no failure.
    pub(crate) fn failure(self) -> Option<io::Error> {
        match self.state {
            State::Open | State::WasClosed | State::Closed => None,
            State::Failed(error) => Some(error),
        }
    }
}

/// Whether what goes to the standard error may have colours.
pub(crate) fn stderr_colours() -> bool {
    io::stderr().is_terminal() && allows_colours()
}

fn allows_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes a line to the standard error. If that fails, too, there is no place left to say so.
pub(crate) fn complain(text: impl Display) {
    let err = io::stderr();
    let columns = columns(terminal_columns(&err)).unwrap_or(usize::MAX);
    let _ = writeln!(io::stderr(), "{}", wrap(&printable(&text.to_string(), stderr_colours()), columns));
}

/// Writes a line to the standard error that is pasted elsewhere, so that it is never broken.
pub(crate) fn complain_unbroken(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", printable(&text.to_string(), stderr_colours()));
}

/// The columns to use: what `COLUMNS` says, else the terminal's; none without both.
fn columns(terminal: Option<usize>) -> Option<usize> {
    let wanted: Option<usize> = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    wanted.or(terminal).map(|columns| columns.clamp(LEAST_COLUMNS, MOST_COLUMNS))
}

#[cfg(unix)]
fn terminal_columns(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn terminal_columns<T>(_: &T) -> Option<usize> {
    None
}
