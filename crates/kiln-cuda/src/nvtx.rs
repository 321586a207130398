//! Ranges and marks for NVIDIA's tools (NVTX): they appear in the timeline of Nsight Systems beside the kernels.
//!
//! A tool that starts a program names its library in `NVTX_INJECTION64_PATH`. kiln loads that library and lets it put its functions into
//! tables, as the NVTX headers do; nothing of NVTX is needed to build kiln. Without a tool a call is one load and one comparison.
//!
//! ```
//! use kiln_cuda::nvtx;
//!
//! let step = nvtx::range("step");
//! nvtx::mark("loss computed");
//! drop(step);
//! ```
//!
//! All ranges and marks are in the domain `kiln`. Those of one thread nest. [`attachment`] says whether there is a tool.

mod event_attributes;
mod function_tables;
mod tool;

use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use event_attributes::EventAttributes;

pub use tool::{Attachment, attachment};

/// What is known of a tool: what every call looks at.
static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const ATTACHED: u8 = 2;

/// Whether a tool listens.
#[inline]
pub fn is_attached() -> bool {
    match KNOWN.load(Ordering::Relaxed) {
        NONE => false,
        ATTACHED => true,
        _ => look(),
    }
}

#[cold]
#[inline(never)]
fn look() -> bool {
    let is_attached = *attachment() == Attachment::Attached;
    KNOWN.store(if is_attached { ATTACHED } else { NONE }, Ordering::Relaxed);
    is_attached
}

/// A range of this thread, which ends when it is dropped.
#[must_use = "the range ends when this is dropped"]
#[derive(Debug)]
pub struct Range {
    is_open: bool,
    /// Ranges of a thread nest: another thread would end the wrong one.
    of_thread: PhantomData<*const ()>,
}

/// Begins a range.
#[inline]
pub fn range(name: &str) -> Range {
    let is_open = is_attached() && push(name, None);
    Range { is_open, of_thread: PhantomData }
}

/// Begins a range with a number, which tools show beside the name.
#[inline]
pub fn numbered_range(name: &str, number: u64) -> Range {
    let is_open = is_attached() && push(name, Some(number));
    Range { is_open, of_thread: PhantomData }
}

/// Marks this moment.
#[inline]
pub fn mark(name: &str) {
    if is_attached() {
        tell_mark(name);
    }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            tool::pop();
        }
    }
}

#[cold]
#[inline(never)]
fn push(name: &str, number: Option<u64>) -> bool {
    let text = text(name);
    tool::push(&EventAttributes::new(&text, number))
}

#[cold]
#[inline(never)]
fn tell_mark(name: &str) {
    let text = text(name);
    tool::mark(&EventAttributes::new(&text, None));
}

/// The name up to its first zero byte, which ends it for the tool.
fn text(name: &str) -> CString {
    let end = name.find('\0').unwrap_or(name.len());
    CString::new(name.get(..end).unwrap_or_default()).unwrap_or_default()
}
