//! Launches that a call of a crate above is made of, with the line of the program that made the call.

use std::panic::Location;

use kiln_order::StreamState;

use super::builder::Launch;
use super::launch_label::labelled;
use crate::error::Result;
use crate::runtime::Ticket;

/// As [`Launch::submit`], for a call at a line of the program: errors name that line.
///
/// # Safety
/// As for [`Launch::submit`].
///
/// # Errors
/// As for [`Launch::submit`].
pub unsafe fn submit_called_at(launch: &mut Launch<'_>, line: &'static Location<'static>) -> Result<Ticket> {
    // SAFETY: the caller says what this asks.
    unsafe { launch.submit_counted(line, (labelled, StreamState::note_launch)) }
}

/// Lets earlier work of the launch's stream be waited for without the launch, which waits for something else itself.
pub fn mark_earlier_work(launch: &Launch<'_>) {
    launch.mark_earlier_work();
}
