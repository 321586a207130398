//! The numbers of a runtime for the crate `metrics`, and through it for whatever a program exports them with.

use kiln_mem::{Heap, MemoryResourceExt};
use metrics::Label;

use super::metric::{Kind, METRICS, Source};
use super::reader::Telemetry;
use super::snapshot::Snapshot;
use crate::device_state::Phase;
use crate::runtime::Metered;

/// How long the host takes for a submission.
const SUBMISSIONS: &str = "kiln_submission_seconds";
/// How long threads wait for the device.
const WAITS: &str = "kiln_host_wait_seconds";
/// Live memory by tag.
const TAGS: &str = "kiln_memory_tag_bytes";
/// Losses of the device.
const FAULTS: &str = "kiln_faults_total";
/// Losses after which it took work again.
const TAKEOVERS: &str = "kiln_takeovers_total";

impl Telemetry<'_> {
    /// Gives the numbers as they are now to the recorder of the crate `metrics`, under the names that they have on the page for Prometheus: counters,
    /// gauges, memory by tag (`kiln_memory_tag_bytes`), `kiln_faults_total` and `kiln_takeovers_total`. Call it from time to time, or before each
    /// export. From the first call on, the times of submissions and of waits go into the histograms `kiln_submission_seconds` and
    /// `kiln_host_wait_seconds` of the recorder that is in place then, which costs a submission two readings of the clock.
    ///
    /// ```
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// gpu.telemetry().publish_metrics(); // with no recorder installed, nothing happens
    /// assert_eq!(gpu.upload(&[1_u32, 2])?.download()?, [1, 2]);
    /// gpu.telemetry().publish_metrics();
    /// # Ok::<(), kiln::Error>(())
    /// ```
    pub fn publish_metrics(&self) {
        let snapshot = self.snapshot();
        for metric in METRICS {
            for series in metric.series {
                publish(metric.name, metric.kind, series.source, &snapshot, labels(&snapshot, series.label));
            }
        }
        let inner = self.runtime().inner();
        if let Some(heap) = inner.memory().find::<Heap>() {
            for (tag, counts) in heap.counts_by_tag() {
                let labels = labels(&snapshot, Some(("tag", tag.name())));
                metrics::gauge!(TAGS, labels).set(counts.live_bytes() as f64);
            }
        }
        let status = inner.state().status();
        let takeovers = status.generation.0;
        let is_lost = matches!(status.phase(), Phase::Lost | Phase::Rebuilding | Phase::Failed);
        metrics::counter!(TAKEOVERS, labels(&snapshot, None)).absolute(takeovers);
        metrics::counter!(FAULTS, labels(&snapshot, None)).absolute(takeovers + u64::from(is_lost));
        inner.meter(|| Metered {
            submissions: metrics::histogram!(SUBMISSIONS, labels(&snapshot, None)),
            waits: metrics::histogram!(WAITS, labels(&snapshot, None)),
        });
    }
}

fn publish(name: &'static str, kind: Kind, source: Source, snapshot: &Snapshot, labels: Vec<Label>) {
    match (kind, source) {
        (Kind::Counter, Source::Count(count)) => {
            metrics::counter!(name, labels).absolute(snapshot.count(count));
        }
        // Counters are whole numbers.
        (_, Source::Seconds(count)) => metrics::gauge!(name, labels).set(snapshot.count(count) as f64 / 1e9),
        (_, Source::Gauge(gauge)) => metrics::gauge!(name, labels).set(snapshot.gauge(gauge) as f64),
        (Kind::Gauge, Source::Count(count)) => {
            metrics::gauge!(name, labels).set(snapshot.count(count) as f64)
        }
    }
}

/// What the device is called, and what the number is besides.
fn labels(snapshot: &Snapshot, further: Option<(&'static str, &str)>) -> Vec<Label> {
    let device = snapshot.device();
    let own = [
        ("kind", device.kind.clone()),
        ("device", device.ordinal.to_string()),
        ("name", device.name.clone()),
        ("uuid", device.uuid.clone()),
    ];
    let further = further.map(|(name, value)| (name, value.to_owned()));
    own.into_iter().chain(further).map(|(name, value)| Label::new(name, value)).collect()
}
