//! What happened to memory, as records of fixed size, and the formats other tools read.

mod binary;
mod pickle;
mod record;
mod ring;
mod rmm_csv;
mod snapshot;

pub(crate) use binary::MAGIC as TRACE_MAGIC;
pub use binary::{RecordedTrace, read_trace, write_trace};
pub use record::{TraceAction, TraceRecord};
pub(crate) use ring::Ring;
pub use rmm_csv::write_rmm_csv;
pub use snapshot::write_snapshot;
