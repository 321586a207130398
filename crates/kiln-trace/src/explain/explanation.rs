//! What can be said about a recording.

use super::idle_knowledge::UnknownIdle;
use super::post_mortems::ExplainedPostMortem;
use crate::record::{HeapChange, HostWaitCause, TakeoverPhase, WaitReason};

/// What can be said about a recording. Its `Display` says it in words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Explanation {
    /// The program.
    pub program: String,
    /// Whether all times are those of simulated devices.
    pub is_virtual: bool,
    /// The clocks of these devices.
    pub clocks: Vec<ExplainedClock>,
    /// Each device that did something.
    pub devices: Vec<ExplainedDevice>,
    /// The waits of the host that took longest on each clock, by line.
    pub host_waits: Vec<ExplainedHostWait>,
    /// The other lines of a clock, where there are any.
    pub more_host_waits: Vec<MoreHostWaits>,
    /// Faults, in one line each, the first few.
    pub faults: Vec<String>,
    /// What is known of the losses of devices, the first few.
    pub post_mortems: Vec<ExplainedPostMortem>,
    /// Mistakes that the checks of simulated devices found, the first few different ones.
    pub findings: Vec<ExplainedFinding>,
    /// How many there were, repeats among them.
    pub finding_count: u64,
    /// Collectives, those first that took longest.
    pub collectives: Vec<ExplainedCollective>,
    /// The others.
    pub more_collectives: LeftOut,
    /// Events that the recording misses.
    pub missing_events: u64,
    /// How many and why, in a sentence; none if none is missing.
    pub missing_why: Option<String>,
    /// Whether the program ended its recording itself. Otherwise it was killed, crashed, ended without its exit handlers (`_exit`), or still runs.
    pub is_whole: bool,
    /// Damaged places of the recording that were left out.
    pub damaged_blocks: u64,
    /// Bytes that were left out with them.
    pub skipped_bytes: u64,
    /// The command that records the program again; none if the recording does not have it.
    pub repeat: Option<String>,
    /// Whether nothing is missing to run that.
    pub is_repeat_whole: bool,
    /// What is missing, in words.
    pub repeat_lacks: Option<String>,
    /// Whether the program records itself, so that the command does not.
    pub records_itself: bool,
}

/// What has no place among the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LeftOut {
    /// How many different ones.
    pub count: u64,
    /// Their time altogether.
    pub ns: u64,
}

/// Lines whose waits have no place among the largest of a clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MoreHostWaits {
    /// The clock on which they were measured.
    pub clock: u32,
    /// How many, and how long.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub left_out: LeftOut,
}

/// A mistake that the checks of a device found: the first one of its rule, kernel and line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedFinding {
    /// The device.
    pub device: u32,
    /// Which rule was broken, in a few words.
    pub rule: String,
    /// The kernel that broke it; empty if none did, or it is not known.
    pub kernel: String,
    /// The line of the kernel's source.
    pub line: Option<String>,
    /// All that is known, in one line.
    pub message: String,
    /// The work it was found in, if that is known.
    pub work: Option<WorkName>,
    /// When the work ended, or else when it was noticed.
    pub time_ns: u64,
    /// How many of this rule, kernel and line there were on all devices.
    pub times: u64,
}

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedClock {
    /// Its number in the recording.
    pub clock: u32,
    /// Whether it is that of a simulated machine, which stands still while the program works with devices of other clocks. Otherwise it is that of the host.
    pub is_virtual: bool,
}

/// One device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedDevice {
    /// Its number in the recording.
    pub device: u32,
    /// What it is called.
    pub name: String,
    /// Which of the recording's clocks its times are of. Those of devices with different ones cannot be compared.
    pub clock: u32,
    /// Submissions.
    pub submissions: u64,
    /// Submissions whose time on the device is not known.
    pub untimed_submissions: u64,
    /// From the first submission to the end of the last work.
    pub span_ns: u64,
    /// How long at least one stream ran something; none if that was not measured.
    pub busy_ns: Option<u64>,
    /// Why it is not known how long it was idle; none if it is known, but for `unknown_ns`.
    pub idle_unknown: Option<UnknownIdle>,
    /// How long it is not known whether a stream ran anything, because submissions were not measured, or were made before the recording began.
    pub unknown_ns: u64,
    /// The part of that in which a stream still had work from before the recording.
    pub earlier_ns: u64,
    /// The largest reasons why no stream ran anything, the largest first.
    pub idle: Vec<IdleReason>,
    /// The other reasons.
    pub more_idle: LeftOut,
    /// How long no stream ran anything because the program had not submitted the next work, whatever that was; a part of all reasons.
    pub not_submitted_ns: u64,
    /// The longest waits of streams for work of others, the longest first.
    pub stalls: Vec<StreamStall>,
    /// The others.
    pub more_stalls: LeftOut,
    /// The longest waits that the program asked for with `Stream::wait_for`, the longest first; `stalls` has the others.
    pub asked_stalls: Vec<StreamStall>,
    /// The others.
    pub more_asked_stalls: LeftOut,
    /// The most bytes that were in use at once.
    pub peak_bytes: u64,
    /// When that was.
    pub peak_ns: u64,
    /// Who held memory, the largest at the peak first.
    pub memory: Vec<HeldTag>,
    /// The most bytes that the heap, or the driver's pool, took from the device; 0 if that is not known.
    pub heap_peak_bytes: u64,
    /// Whether that is the driver's pool, which the device has instead of a heap.
    pub is_pool: bool,
    /// What the heap, or the driver's pool, did besides that.
    pub heap_changes: Vec<ExplainedHeapChange>,
    /// Allocations that were refused.
    pub refusals: u64,
    /// The first few of them.
    pub refused: Vec<RefusedAllocation>,
    /// How often it was lost.
    pub losses: u64,
    /// How often it was brought back.
    pub brought_back: u64,
    /// What was spent on bringing the device back, by step.
    pub takeovers: Vec<ExplainedTakeover>,
}

/// What the heap did in one way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedHeapChange {
    /// What it did.
    pub change: HeapChange,
    /// How often.
    pub times: u64,
    /// Bytes, altogether.
    pub bytes: u64,
    /// The tag of the allocations for which it did most of it; empty if none is known.
    pub tag: String,
    /// Bytes for that tag.
    pub tag_bytes: u64,
}

/// An allocation that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RefusedAllocation {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Whether these are more than any block can have, however much memory is free.
    pub is_too_large: bool,
    /// The line that asked for them.
    pub line: Option<String>,
    /// When.
    pub time_ns: u64,
    /// The limit that was reached; none if the device had no more.
    pub limit_bytes: Option<u64>,
    /// Bytes that the heap held, or the driver's pool.
    pub held_bytes: u64,
    /// Whether that is the driver's pool.
    pub is_pool: bool,
    /// Bytes of them that were free.
    pub free_bytes: u64,
    /// The largest free piece.
    pub largest_free_bytes: u64,
    /// Who held most since the recording began, the largest first.
    pub tags: Vec<TagBytes>,
}

/// How much memory is held under a tag.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TagBytes {
    /// The tag; empty for memory without one.
    pub tag: String,
    /// Its bytes.
    pub bytes: u64,
}

/// A step of bringing a device back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedTakeover {
    /// The step.
    pub phase: TakeoverPhase,
    /// How long, altogether.
    pub ns: u64,
    /// How often.
    pub times: u64,
}

/// A kind of collective on one communicator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedCollective {
    /// The operation.
    pub name: String,
    /// The communicator, the same word on all its ranks.
    pub communicator: String,
    /// This rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// How often it was called.
    pub calls: u64,
    /// Bytes of the larger buffer, altogether.
    pub bytes: u64,
    /// How long it was under way on the device, with the wait for other ranks; none if that was not measured.
    pub ns: Option<u64>,
    /// How long at the most.
    pub longest_ns: Option<u64>,
}

/// A reason why a device was idle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct IdleReason {
    /// Why.
    pub why: IdleWhy,
    /// The work that was next, in the longest case.
    pub before: WorkName,
    /// How long, altogether.
    pub ns: u64,
    /// How often.
    pub times: u64,
    /// How long at the most.
    pub longest_ns: u64,
}

/// Why a device was idle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "kind", rename_all = "snake_case"))]
pub enum IdleWhy {
    /// The program waited, and submitted nothing meanwhile.
    HostWait {
        /// What it had asked for.
        cause: HostWaitCause,
        /// Which line waited.
        line: Option<String>,
    },
    /// The program did something else before it submitted the next work.
    HostBusy,
    /// The next work waited for another device.
    OtherDevice {
        /// What it waited for.
        writer: WorkName,
    },
    /// The device was being brought back.
    Takeover {
        /// Which step took the time.
        phase: TakeoverPhase,
    },
    /// The work was queued, and the device took so long to start it.
    Start,
}

/// A wait of a stream for work of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StreamStall {
    /// What waited, in the longest case.
    pub waiter: WorkName,
    /// What it had to come after.
    pub writer: WorkName,
    /// Why.
    pub reason: WaitReason,
    /// The block it was about, in the longest case.
    pub block: Option<u64>,
    /// Its tag; empty if it has none.
    pub tag: String,
    /// Which line asked for the wait, where the program did.
    pub line: Option<String>,
    /// The unrelated work that was waited for as well, in the longest case: the last of it.
    pub unrelated: Option<WorkName>,
    /// How long, altogether.
    pub ns: u64,
    /// How often.
    pub times: u64,
    /// How long at the most.
    pub longest_ns: u64,
    /// How much of the longest case was spent on unrelated work.
    pub unrelated_ns: u64,
}

/// Memory under one tag.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HeldTag {
    /// The tag; empty for memory without one.
    pub tag: String,
    /// Bytes when the device's memory was fullest.
    pub peak_bytes: u64,
    /// Bytes that were not given back.
    pub left_bytes: u64,
    /// Blocks that were not given back.
    pub left_blocks: u64,
    /// The line that allocated most of what was not given back.
    pub left_line: Option<String>,
    /// When the oldest of these blocks was allocated.
    pub left_since_ns: Option<u64>,
}

/// A line of the program that waited for devices with one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedHostWait {
    /// On which clock it was measured.
    pub clock: u32,
    /// What it had asked for.
    pub cause: HostWaitCause,
    /// Which line.
    pub line: Option<String>,
    /// The work that was waited for in the longest case, if that is known.
    pub awaited: Option<WorkName>,
    /// How long, altogether.
    pub ns: u64,
    /// How often.
    pub times: u64,
    /// How long at the most.
    pub longest_ns: u64,
}

/// Work by its name and place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WorkName {
    /// The kernel or operation; empty if it is not in the recording.
    pub name: String,
    /// Which line submitted it.
    pub line: Option<String>,
    /// The device.
    pub device: u32,
    /// The stream.
    pub stream: u32,
    /// The number on its stream.
    pub number: u64,
}
