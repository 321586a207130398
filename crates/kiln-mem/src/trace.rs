//! Allocation traces: records of fixed size, and writers for the formats of other tools.

mod binary;
mod pickle;
mod pytorch_snapshot;
mod record;
mod ring;
mod rmm_csv_writer;

pub(crate) use binary::MAGIC as TRACE_MAGIC;
pub use binary::{RecordedTrace, read_trace, write_trace};
pub use pytorch_snapshot::write_snapshot;
pub use record::{TraceAction, TraceRecord};
pub(crate) use ring::Ring;
pub use rmm_csv_writer::write_rmm_csv;
