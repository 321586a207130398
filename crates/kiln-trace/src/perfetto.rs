//! Perfetto's own trace format: protocol buffers with names kept once.
//!
//! Every track is a sequence of packets with its own clock, whose times are distances from the last packet, and its own names. A kernel
//! takes two packets, its beginning and its end, of about 42 bytes together with the shape of the launch, and a wait about 45 more for its arrow and what it says.
//!
//! | track | shows |
//! |---|---|
//! | a device, and below it | |
//! | each stream | what ran on it, with an arrow from what it waited for |
//! | each stream, submitted | work whose time on the device is not known, when the host submitted it |
//! | each thread | its waits for the device |
//! | memory by tag, memory held by the heap | counters |
//! | faults, findings, changes of the heap | instants |
//! | takeover | its steps |
//! | a worker process, by itself | from when to when it has a device |

mod exporter;
mod flows;
mod memory_counters;
mod note;
mod packet_sequence;
mod schema;
mod track;
mod wire;

pub use exporter::{ExportError, PerfettoSummary, export_perfetto};
