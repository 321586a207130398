//! What a runtime did, in numbers.
//!
//! Every stream counts its own work, in memory only the thread that submits to it writes just then, so counting adds no locked instruction to a
//! submission and no line that two submitting threads share. A [`Snapshot`] adds the streams up; it can be taken at any moment, from any
//! thread, and does not block.
//!
//! - [`Count`]s only grow, until [`Telemetry::reset`] starts them anew; they count what the driver took.
//! - [`Gauge`]s say how things are at the moment.
//! - [`process_snapshot`] adds up all runtimes of the process, and [`ProcessSnapshot::prometheus`] is the page for a scraper;
//!   [`prometheus`] writes a page of snapshots of the caller's choice, one for each device.
//! - With the feature `metrics`, `Telemetry::publish_metrics` gives the same numbers to the recorder of the crate `metrics`, with histograms of
//!   submissions and waits.
//! - [`publish`] shows the runtimes of the process to `kiln top`, as `KILN_TOP=1` does; [`Nvml`] has the figures of GPUs.
//! - Device time is measured where it is asked for: [`Launch::submit_timed`](crate::Launch::submit_timed),
//!   [`Graph::replay_timed`](crate::Graph::replay_timed).
//! - Submissions, transfers, compilations and graphs are `tracing` spans with the target `kiln`; that of a submission has its stream, its command, its
//!   kernel and, once it is known, its number. Without a subscriber, a span is one
//!   comparison.
//!
//! ```
//! use kiln::DeviceRuntime;
//! use kiln::telemetry::{Count, Gauge};
//!
//! let gpu = DeviceRuntime::simulated(1)?;
//! let buffer = gpu.upload(&[1_u32; 256])?;
//! buffer.fill(7)?;
//! let seen = gpu.telemetry().snapshot();
//! assert_eq!((seen.count(Count::Uploads), seen.count(Count::UploadedBytes), seen.count(Count::Fills)), (1, 1024, 1));
//! assert_eq!(seen.gauge(Gauge::LiveBytes), 1024);
//! assert!(seen.prometheus().contains("kiln_fills_total{"));
//! # Ok::<(), kiln::Error>(())
//! ```

mod device_name;
mod metric;
#[cfg(feature = "metrics")]
mod metrics_facade;
mod process_totals;
mod prometheus;
mod reader;
mod snapshot;

pub use device_name::DeviceName;
pub use process_totals::{ProcessSnapshot, process_snapshot};
pub use prometheus::prometheus;
pub use reader::Telemetry;
pub use snapshot::{Gauge, Snapshot};

pub use crate::counters::Count;
pub use crate::runtime::published::{TOP_VARIABLE, publish, published_folder};
pub use crate::runtime::{DeviceTimes, TakenTimes, UnknownTimes};
pub use crate::runtime::{Timed, Timing};
pub use kiln_cuda::{GpuFigures, Nvml, NvmlAbsence};
