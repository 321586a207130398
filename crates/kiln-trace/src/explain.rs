//! A recording in words: why devices were idle, what streams waited for, who held the memory, and which waits the program asked for.
//!
//! [`Explainer`] takes events, [`Explanation`] is what follows from them. Work is looked at in
//! parts, and a part and the one before it are kept, so that memory does not grow with the recording.
//!
//! A device is idle when none of its streams runs anything. The work that ends an idle time says why: if the host submitted it only
//! after the device had become idle, the host is the reason, and a wait that the host was in then is named. If it waited for another
//! device, that is the reason. A stream can wait while its device is busy; such waits are listed apart. Times of devices with different clocks are never compared: no wait for one explains
//! the time of another.

mod collective_calls;
mod device_clocks;
mod device_idle;
mod device_work;
mod explainer;
mod explanation;
mod finding_list;
mod heap_text;
mod held_memory;
mod host_waiting;
mod idle_knowledge;
mod left_out_text;
mod missing_events;
mod name_table;
mod post_mortems;
mod quantity;
mod ranking;
mod stall_text;
mod stream_stalls;
mod takeover_steps;
mod text;
mod timeline;

pub(crate) use device_clocks::DeviceClocks;
pub use explainer::Explainer;
pub use explanation::{
    ExplainedClock, ExplainedCollective, ExplainedDevice, ExplainedFinding, ExplainedHeapChange,
    ExplainedHostWait, ExplainedTakeover, Explanation, HeldTag, IdleReason, IdleWhy, LeftOut, MoreHostWaits,
    RefusedAllocation, StreamStall, TagBytes, WorkName,
};
pub use idle_knowledge::{IdleKnowledge, UnknownIdle};
pub use missing_events::MissingEvents;
pub use post_mortems::{ExplainedPostMortem, PostMortems};
pub(crate) use quantity::{Bytes, Time};
