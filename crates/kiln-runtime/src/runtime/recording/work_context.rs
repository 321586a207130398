//! What a recording is told about the work of a call before that is submitted: the program's line, and the collective it is.
//!
//! A call of the program goes through several functions, of which some take closures, so that the compiler cannot hand the line down. The
//! outermost function notes it for its thread; what is done inside belongs to that line.

use std::cell::Cell;
use std::panic::Location;

use crate::runtime::DeviceRuntime;
use crate::runtime::inner::Inner;

/// A collective that is being submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveLabel {
    /// The operation, such as `all_reduce`.
    pub name: &'static str,
    /// What the communicator is called on all its ranks.
    pub communicator: u64,
    /// This rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Bytes of the larger buffer.
    pub bytes: u64,
    /// When the rank came to it, where it waits for others before it submits anything.
    pub came: Option<RecordedMoment>,
}

/// A moment of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedMoment {
    /// As submissions take it.
    pub(super) ticks: u64,
    /// As waits do.
    pub(super) time_ns: u64,
}

/// Now; none if the runtime is not recorded.
pub fn recorded_moment(gpu: &DeviceRuntime) -> Option<RecordedMoment> {
    let recording = gpu.inner().recording()?;
    Some(RecordedMoment { ticks: recording.ticks(), time_ns: recording.now() })
}

#[derive(Clone, Copy)]
struct Context {
    line: Option<&'static Location<'static>>,
    collective: Option<CollectiveLabel>,
    /// Whether the program asks for an order by itself, without work.
    asks_for_order: bool,
}

const NOTHING: Context = Context { line: None, collective: None, asks_for_order: false };

thread_local! {
    /// Whether there is any: what a submission looks at. No destructor and nothing to make, so that it is read like a variable.
    static IS_NOTED: Cell<bool> = const { Cell::new(false) };
    static CONTEXT: Cell<Context> = const { Cell::new(NOTHING) };
}

/// What is known until it is dropped.
#[must_use = "it is forgotten when this is dropped"]
pub struct WorkContext {
    /// What was known before; none if nothing was noted.
    before: Option<Context>,
}

impl Drop for WorkContext {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set(before);
        }
    }
}

/// Whether a call around this one noted anything.
#[inline(always)]
pub(super) fn is_noted() -> bool {
    IS_NOTED.get()
}

/// The line of the program that the work of this thread belongs to, where a call noted one.
#[inline]
pub(super) fn line() -> Option<&'static Location<'static>> {
    if IS_NOTED.get() { CONTEXT.get().line } else { None }
}

/// The collective that this thread is submitting.
#[inline]
pub(super) fn collective() -> Option<CollectiveLabel> {
    if IS_NOTED.get() { CONTEXT.get().collective } else { None }
}

/// Whether this thread makes a stream wait because the program asked for that.
#[inline]
pub(super) fn asks_for_order() -> bool {
    IS_NOTED.get() && CONTEXT.get().asks_for_order
}

fn set(context: Context) {
    CONTEXT.set(context);
    IS_NOTED.set(context.line.is_some() || context.collective.is_some() || context.asks_for_order);
}

impl Inner {
    /// What is done until the answer is dropped belongs to that line, or to the one of a call around it.
    #[inline]
    pub(crate) fn called_from(&self, line: &'static Location<'static>) -> WorkContext {
        if self.is_recorded() { note(Some(line), None) } else { WorkContext { before: None } }
    }

    /// Streams that are made to wait until the answer is dropped wait because that line asked for it, or the one of a call around it.
    pub(in crate::runtime) fn asks_for_order(&self, line: &'static Location<'static>) -> WorkContext {
        if !self.is_recorded() {
            return WorkContext { before: None };
        }
        let context = note(Some(line), None);
        set(Context { asks_for_order: true, ..CONTEXT.get() });
        context
    }
}

/// What is done with a runtime until the answer is dropped belongs to that line, or to the one of a call around it.
pub fn called_from(gpu: &DeviceRuntime, line: &'static Location<'static>) -> WorkContext {
    gpu.inner().called_from(line)
}

/// The work that this thread submits to a runtime until the answer is dropped is a collective. It is asked for only if it is recorded.
pub fn as_collective(gpu: &DeviceRuntime, label: impl FnOnce() -> CollectiveLabel) -> WorkContext {
    if !gpu.inner().is_recorded() {
        return WorkContext { before: None };
    }
    let label = label();
    if let Some(came) = label.came {
        gpu.inner().waited_for_ranks(came);
    }
    note(None, Some(label))
}

#[cold]
fn note(line: Option<&'static Location<'static>>, collective: Option<CollectiveLabel>) -> WorkContext {
    let before = CONTEXT.get();
    let (line, collective) = (before.line.or(line), before.collective.or(collective));
    set(Context { line, collective, ..before });
    WorkContext { before: Some(before) }
}
