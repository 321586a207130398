//! What happened to memory, as records of fixed size, and the formats other tools read.

mod pickle;
mod record;
mod ring;
mod rmm_csv;
mod snapshot;

pub use record::{TraceAction, TraceRecord};
pub(crate) use ring::Ring;
pub use rmm_csv::write_rmm_csv;
pub use snapshot::write_snapshot;
