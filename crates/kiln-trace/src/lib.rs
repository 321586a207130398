//! Recordings of what a program did on its devices.
//!
//! A recording says which work was submitted, what it waited for and why, who holds how much memory, and what went wrong. This crate has
//! its data model, its file format, and what can be made of it: a trace for Perfetto and an explanation in words.
//!
//! ```text
//!   ProgramRecorder (a thread, lanes)
//!        │
//!   RecordingWriter ──► file of blocks ──► RecordingReader ──┬─► export_perfetto
//!    (TraceEvent)       (length, checksum)   (TraceEvent)    └─► Explainer ─► Explanation
//! ```
//!
//! # The file
//!
//! - 16 bytes at the start: a mark, the version, a checksum of both.
//! - Then blocks, only ever appended. A block has its length, a checksum of its contents and a checksum of these two numbers. It holds
//!   the names that its events use and then the events, so that every block can be read alone.
//! - A file that is cut anywhere is readable up to its last whole block. A damaged block is told with its offset; reading can go on
//!   behind it where its length is known.
//! - A reader holds one block, which has at most [`MAX_BLOCK_BYTES`], whatever the file says.
//!
//! # The contract
//!
//! - Times are nanoseconds since the recording began, on the clock of the device ([`DeviceRecord::clock`], [`DeviceRecord::clock_kind`]). Devices with the clock of the host share it. Each simulated machine has a separate
//!   clock: times of devices with different clocks cannot be compared, and a wait of the program is on the clock of the device it waited for.
//! - A stream has one name in the whole file ([`TraceStream`]), and its submissions are numbered upwards.
//! - Events of one stream come in the order of their numbers, and waits before the work that waits; where two threads submit to one
//!   stream at once, neighbours may be swapped. Events of different streams come in any order.
//! - The last event is an [`EndRecord`] where the program ended its recording itself ([`RecordingReader::has_end_mark`]).
//! - Nothing panics on any input.
//!
//! # In reading order
//!
//! [`TraceEvent`] and the records it holds: [`SubmissionRecord`], [`StreamWaitRecord`], [`HostWaitRecord`], [`AllocationRecord`],
//! [`FreeRecord`], [`HeapRecord`], [`FaultRecord`], [`PostMortemRecord`], [`FindingRecord`], [`TakeoverRecord`], [`WorkerRecord`], [`CollectiveRecord`], [`CommandRecord`], [`EarlierRecord`], [`EndRecord`]. [`RecordingWriter`] and
//! [`RecordingReader`] with [`ReadError`]. [`ProgramRecorder`], [`StreamLane`] and [`RecordingLane`]: what a program does while it runs. [`export_perfetto`]. [`Explainer`] and [`Explanation`]. [`IdleKnowledge`]: whether idle time is known. [`RankLog`], [`RecordedRun`] and [`JobExplanation`]: recordings of the ranks of one job. [`RepeatCommand`] with [`CommandGaps`]: how the program is run again. [`shell_word`], [`with_process_number`]: words and names of files, which need not be text. [`plain_text`], [`text_in_one_line`]: names and texts that stay on their line.
//!
//! ```
//! use kiln_trace::{RecordingReader, RecordingWriter, StartRecord, TraceEvent};
//!
//! let mut file = Vec::new();
//! let mut writer = RecordingWriter::new(&mut file)?;
//! writer.push(&TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() }))?;
//! writer.finish()?;
//!
//! let mut reader = RecordingReader::new(std::io::Cursor::new(file))?;
//! while let Some(event) = reader.next_event()? {
//!     assert!(matches!(event, TraceEvent::Start(start) if start.program == "train"));
//! }
//! assert!(!reader.is_cut());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! It knows neither drivers nor runtimes: what is recorded is what it is given.

#![forbid(unsafe_code)]

mod explain;
mod file;
mod format;
mod job;
mod perfetto;
mod plain_text;
mod process_path;
mod record;
mod recorder;
mod repeat_command;
mod secret_words;
mod shell_word;

pub use explain::{
    ExplainedClock, ExplainedCollective, ExplainedDevice, ExplainedFinding, ExplainedHeapChange,
    ExplainedHostWait, ExplainedPostMortem, ExplainedTakeover, Explainer, Explanation, HeldTag,
    IdleKnowledge, IdleReason, IdleWhy, LeftOut, MissingEvents, MoreHostWaits, PostMortems,
    RefusedAllocation, StreamStall, TagBytes, UnknownIdle, WorkName,
};
pub use file::{ReadError, RecordingReader, RecordingWriter, open_plain_file, refused_place, special_file};
pub use format::{FORMAT_VERSION, MAX_BLOCK_BYTES, MAX_NAME_BYTES};
pub use job::{
    ClockAlignment, JobCollective, JobExplanation, JobPart, RankCall, RankLateness, RankLog, RecordedRun,
};
pub use perfetto::{ExportError, PerfettoSummary, export_perfetto};
pub use plain_text::{plain_text, text_in_one_line};
pub use process_path::{split_process_number, with_process_number};
pub use record::{
    AllocationRecord, AwaitedBlock, CollectiveRecord, CommandGaps, CommandPart, CommandRecord, DeviceRecord,
    DropCause, DroppedRecord, EarlierRecord, EndRecord, FaultRecord, FindingRecord, FreeRecord, HeapChange,
    HeapRecord, HostWaitCause, HostWaitRecord, LaunchSize, NOT_BROUGHT_BACK, PostMortemRecord,
    RecordingClock, StartRecord, StreamRecord, StreamWaitRecord, SubmissionKind, SubmissionRecord,
    TakeoverPhase, TakeoverRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp, TraceStream, WaitReason,
    WorkerRecord, finding_message,
};
pub use recorder::{
    CollectiveNote, KnownLine, KnownName, NanosecondTicks, ProgramRecorder, RecordingFailure, RecordingFile,
    RecordingLane, RecordingTotals, StreamLane, SubmissionNote, TickScale, WaitNote, interned_name,
    is_being_recorded,
};
pub use repeat_command::RepeatCommand;
pub use shell_word::shell_word;
