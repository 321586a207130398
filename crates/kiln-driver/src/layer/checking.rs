//! Asserts the caller's side of the contract, as far as it can be seen from outside.

mod command_operands;
mod live_objects;
mod order;
mod pending_uses;
mod rules;
mod state;
mod violation;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::live_objects::Ledger;
use self::rules::examine;
use self::state::{State, Underway};
pub use self::violation::{LiveObject, Rule, Severity, Violation};
use super::forwarding::Layer;
use crate::call::{Answer, Call};
use crate::driver::Driver;
use crate::error::{Error, Result};

/// A layer that follows what a caller makes, queues and waits for, and notes where it breaks its side of the
/// [contract](crate).
///
/// It keeps its own account of order (streams, events, host waits) and holds against it: objects and mappings taken
/// back under work that names them, copies and fills that touch the same bytes unordered, pool memory used or freed
/// out of order, copies that overlap themselves, commands on bytes that are not mapped or not writable, and, as
/// warnings, stale handles and waits for events that were never signalled. [`finish`](Self::finish) lists what was never
/// taken back.
///
/// A program that keeps the contract never trips it. The reverse does not hold: it sees neither what kernels touch (but for
/// [what they declare](Self::following_launches)) nor what the host reads and writes in its blocks, and it does not follow two mappings of the same pages. After the
/// device is lost it says nothing more.
///
/// ```
/// # fn main() -> kiln_driver::Result<()> {
/// use std::sync::Arc;
/// use kiln_driver::layer::{Checking, Layered};
/// use kiln_driver::{Driver, DriverExt, MemoryRequest, StreamRequest};
///
/// # let device = kiln_sim::Machine::new(kiln_sim::MachineConfig::seeded(1)).device(0)?;
/// let driver = Layered::new(device, Checking::new());
/// let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
/// let memory = driver.allocate(MemoryRequest::Direct { bytes: 64 })?;
/// driver.fill(stream, memory.id.into(), 7, 64)?;
/// driver.synchronize(stream)?;
/// driver.free(memory.id, None)?;
/// assert!(driver.layer().violations().is_empty());
/// assert_eq!(driver.layer().finish().len(), 1, "the stream is still there");
/// # Ok(())
/// # }
/// ```
pub struct Checking {
    strict: bool,
    state: Mutex<State>,
}

impl Checking {
    /// A layer that only notes.
    pub fn new() -> Self {
        Self { strict: false, state: Mutex::default() }
    }

    /// A layer that refuses calls which break the contract, instead of making them. Warnings are still only noted.
    pub fn strict() -> Self {
        Self { strict: true, ..Self::new() }
    }

    /// The same layer, which also looks at what launches [declare](crate::LaunchCommand::declared): a declared span is memory of which the kernel may touch any
    /// byte. A launch and a copy or fill of all of that memory are unordered for certain ([`Rule::Unordered`]); of others it is a warning
    /// ([`Rule::MayBeUnordered`]). It has to be around the driver from the start, because it notes where memory lies.
    #[must_use]
    pub fn following_launches(self) -> Self {
        let state = State { ledger: Ledger::with_addresses(), ..State::default() };
        Self { state: Mutex::new(state), ..self }
    }

    /// Whether it does.
    pub fn follows_launches(&self) -> bool {
        self.state().ledger.has_addresses()
    }

    /// Hands out what was found since the last call, and keeps it no longer.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.state().violations)
    }

    /// What was found so far, in the order of the calls.
    pub fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    /// Objects that were made through the layer and not taken back, in the order they were made.
    pub fn finish(&self) -> Vec<LiveObject> {
        self.state().ledger.live()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Checking {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Checking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "checking: {} calls, {} violations", state.calls, state.violations.len())
    }
}

impl Layer for Checking {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> Result<()> {
        let mut state = self.state();
        state.calls += 1;
        let number = state.calls;
        let findings = if state.lost { Vec::new() } else { examine(&state, call) };
        let broken = findings.iter().find(|finding| finding.rule.severity() == Severity::Error);
        if let (true, Some(finding)) = (self.strict, broken) {
            let what = format!("{}: {}", finding.object, finding.why);
            let answer = Error::invalid(call.kind().name(), what, finding.rule.next());
            state.report(call, number, findings);
            return Err(answer);
        }
        let point = state.reference(call);
        state.underway.insert(std::thread::current().id(), Underway { number, findings, point });
        Ok(())
    }

    fn after(&self, call: &Call<'_>, answer: std::result::Result<Answer<'_>, &Error>) {
        let mut state = self.state();
        let Some(underway) = state.underway.remove(&std::thread::current().id()) else { return };
        let Underway { number, mut findings, point } = underway;
        match answer {
            Ok(answer) => {
                // Another thread may have queued work since this call went down.
                if matches!(call, Call::Submit { .. }) && !state.lost {
                    findings = examine(&state, call);
                }
                state.report(call, number, findings);
                state.note(call, &answer, number, point);
            }
            Err(error) => {
                // What was refused did not happen, and so broke nothing.
                findings.retain(|finding| finding.rule.severity() == Severity::Warning);
                state.report(call, number, findings);
                state.lost |= error.is_sticky();
                if let (Call::Wait { .. }, Some(point)) = (call, point) {
                    // The wait ended with the late failure of what it waited for: that is over, too.
                    state.order.host_saw(point);
                }
            }
        }
    }
}
