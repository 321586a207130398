//! Functions of the program that run in the order of a stream.
//!
//! They run on the calling thread, before the call returns, after a wait for all that was queued before them. What is queued later is ordered after
//! them in this way, too.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::calls::process_state::state;
use crate::calls::streams::{chosen, wait};
use crate::handle_table::RawHandle;

type HostFunction = Option<extern "C" fn(*mut c_void)>;
type StreamCallback = Option<extern "C" fn(RawHandle, c_int, *mut c_void)>;

thread_local! {
    /// Whether the thread runs a function of the program for a stream.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread runs a function of the program for a stream, from which calls that need a context are not permitted.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Says so while it lives.
struct Inside(bool);

impl Inside {
    fn begin() -> Self {
        Self(INSIDE.replace(true))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Waits for what was queued on a stream.
fn reach(stream: RawHandle) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    wait(state, &context, &choice)
}

driver_api! {
    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz (stream: RawHandle, function: HostFunction, data: usize) {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        reach(stream)?;
        let _inside = Inside::begin();
        function(data as *mut c_void);
        Ok(())
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz (stream: RawHandle, callback: StreamCallback, data: usize, flags: c_uint) {
        let callback = callback.ok_or(Code::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // It runs after a failure, too, and is told of it.
        let reached = reach(stream);
        let status = reached.err().unwrap_or(Code::SUCCESS);
        if status == Code::SUCCESS || status.is_sticky() {
            let _inside = Inside::begin();
            callback(stream, status.0, data as *mut c_void);
        }
        reached
    }
}
