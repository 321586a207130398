//! Runs a trace against another driver.

mod handles;
mod player;

use std::fmt;

use self::player::Player;
use super::Trace;
use crate::call::CallKind;
use crate::driver::Driver;

/// Makes the calls of a trace on another driver, one after the other, with its own handles in place of the recorded
/// ones, and compares the kinds of the answers.
///
/// What the program knew the replay makes true: a wait that ended done is waited for as long as it takes, one
/// that timed out is only looked at, and where recorded progress said that a submission was done the replay waits for
/// it. What a trace leaves behind is left behind.
///
/// What it cannot reproduce:
///
/// - the bytes the host wrote into its blocks, which were no calls; host memory holds zeros. Registered memory
///   becomes new memory of the same size,
/// - calls of several threads at once; they come one after the other, in the order in which they came back,
/// - memory, streams and events of other libraries, handles of other devices, and objects from before the
///   recording; calls that name them are left out,
/// - launches, unless the trace is [vouched](Trace::vouched) for. Where a word of the packed arguments lies in a block of the
///   recording, the replay puts the address of its block there; a number that looks like an address is changed
///   too, and an address the kernel finds elsewhere, in memory or of a host block, stays what it was,
/// - descriptors from outside; an import takes the last pages of that size the replay exported.
pub fn replay(trace: &Trace, driver: &dyn Driver) -> TraceReport {
    let mut player = Player::new(driver, trace.vouched);
    let mut report = TraceReport::default();
    for (at, entry) in trace.entries.iter().enumerate() {
        let (line, call) = (at + 2, entry.call.kind());
        match player.play(entry) {
            Err(why) => report.skipped.push(Skipped { line, call, why }),
            Ok(answer) => {
                report.calls += 1;
                let (recorded, replayed) = (entry.answer.kind(), answer.kind());
                if recorded != replayed {
                    report.differences.push(Difference { line, call, recorded, replayed });
                }
            }
        }
    }
    player.settle();
    report
}

/// How a replay went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceReport {
    /// Calls that were made.
    pub calls: usize,
    /// Calls that could not be made, and why.
    pub skipped: Vec<Skipped>,
    /// Answers of another kind than the recorded ones.
    pub differences: Vec<Difference>,
}

/// A call the replay left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// Its line in the trace.
    pub line: usize,
    /// The call.
    pub call: CallKind,
    /// Why it could not be made.
    pub why: String,
}

/// An answer of another kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Its line in the trace.
    pub line: usize,
    /// The call.
    pub call: CallKind,
    /// What the recording says.
    pub recorded: String,
    /// What the driver says now.
    pub replayed: String,
}

impl TraceReport {
    /// Whether every call was made and every answer was of the recorded kind.
    pub fn is_faithful(&self) -> bool {
        self.skipped.is_empty() && self.differences.is_empty()
    }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, skipped, differences } = self;
        write!(f, "{calls} calls replayed, {} left out, {} different", skipped.len(), differences.len())?;
        for Skipped { line, call, why } in skipped {
            write!(f, "\n  line {line}, {}: left out: {why}", call.name())?;
        }
        for Difference { line, call, recorded, replayed } in differences {
            write!(f, "\n  line {line}, {}: {recorded} in the recording, {replayed} now", call.name())?;
        }
        Ok(())
    }
}
