//! What a recording holds.

mod allocation;
mod collective;
mod command;
mod device;
mod dropped;
mod end;
mod event;
mod fault;
mod heap;
mod host_wait;
mod stamp;
mod start;
mod stream_wait;
mod submission;
mod takeover;
mod time_span;
mod trace_line;

pub use allocation::{AllocationRecord, FreeRecord};
pub use collective::CollectiveRecord;
pub use command::{CommandPart, CommandRecord};
pub use device::{DeviceRecord, StreamRecord};
pub use dropped::{DropCause, DroppedRecord};
pub use end::EndRecord;
pub use event::TraceEvent;
pub use fault::FaultRecord;
pub use heap::{HeapChange, HeapRecord};
pub use host_wait::{HostWaitCause, HostWaitRecord};
pub use stamp::{TraceStamp, TraceStream};
pub use start::{RecordingClock, StartRecord};
pub use stream_wait::{AwaitedBlock, StreamWaitRecord, WaitReason};
pub use submission::{LaunchSize, SubmissionKind, SubmissionRecord};
pub use takeover::{TakeoverPhase, TakeoverRecord};
pub use time_span::TimeSpan;
pub use trace_line::TraceLine;
