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

/// Records an event behind what the stream of the launch has, if none stands there: who waits for that work does not wait for this launch then, which waits for something
/// else itself. What goes wrong here goes wrong in the launch, too, or makes such a wait longer.
pub fn mark_earlier_work(launch: &Launch<'_>) {
    if let Ok(lane) = launch.lane() {
        let _ = launch.runtime.tracker().mark_end(lane);
    }
}
