//! Launches that are work of a library call: how recordings name them, and how they are counted.
//!
//! A call of a library is one operation of NVIDIA's, or one kernel or several of a crate above. Recordings call the operation by its name, and such a kernel by the
//! call and its own name, so that the passes of one call are told apart and a search for the call finds all of them.

use std::panic::Location;

use kiln_order::{StreamCount, StreamState};
use kiln_trace::SubmissionKind;

use super::builder::Launch;
use super::kernel::Kernel;
use super::launch_label::{labelled, launch_size};
use super::shape::Shape;
use crate::error::Result;
use crate::runtime::{Ticket, WorkLabel};

/// As [`Launch::submit`], for a launch that a library call is made of.
///
/// # Safety
/// As for [`Launch::submit`].
///
/// # Errors
/// As for [`Launch::submit`].
#[track_caller]
pub unsafe fn submit_in_call(launch: &mut Launch<'_>, call: &'static str) -> Result<Ticket> {
    let label = |kernel: &Kernel, shape: &Shape| labelled_in_call(kernel, shape, call);
    // SAFETY: the caller says what this asks.
    unsafe { launch.submit_counted(Location::caller(), (label, count)) }
}

/// Counts a launch; the caller has entered the stream.
#[inline]
fn count(lane: &StreamState) {
    lane.note_launch();
    lane.counters().add_entered(StreamCount::LibraryLaunches, 1);
}

#[inline]
fn labelled_in_call(kernel: &Kernel, shape: &Shape, call: &'static str) -> WorkLabel {
    if kernel.is_library() {
        return labelled(kernel, shape);
    }
    let size = Some(launch_size(shape));
    WorkLabel { size, ..WorkLabel::new(SubmissionKind::Library, kernel.name_in_call(call), 0) }
}
