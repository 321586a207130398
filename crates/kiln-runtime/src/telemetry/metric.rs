//! The names of the numbers on a page for Prometheus, as data.

use super::snapshot::{Gauge, Snapshot};
use crate::counters::Count;

/// One metric: a name, and a series for each label it has.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) series: &'static [Series],
}

/// What kind of metric it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

/// One number of a metric.
pub(super) struct Series {
    /// A label beside those of the device.
    pub(super) label: Option<(&'static str, &'static str)>,
    pub(super) source: Source,
}

/// Where a number comes from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Count(Count),
    /// Nanoseconds, written as seconds.
    Seconds(Count),
    Gauge(Gauge),
}

impl Source {
    /// The number as it is written.
    pub(super) fn text(self, snapshot: &Snapshot) -> String {
        match self {
            Self::Count(count) => snapshot.count(count).to_string(),
            Self::Gauge(gauge) => snapshot.gauge(gauge).to_string(),
            Self::Seconds(count) => {
                let nanoseconds = snapshot.count(count);
                format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
            }
        }
    }
}

const fn counter(name: &'static str, help: &'static str, series: &'static [Series]) -> Metric {
    Metric { name, help, kind: Kind::Counter, series }
}

const fn gauge(name: &'static str, help: &'static str, series: &'static [Series]) -> Metric {
    Metric { name, help, kind: Kind::Gauge, series }
}

const fn count(count: Count) -> Series {
    Series { label: None, source: Source::Count(count) }
}

const fn level(gauge: Gauge) -> Series {
    Series { label: None, source: Source::Gauge(gauge) }
}

const fn labelled(label: &'static str, value: &'static str, count: Count) -> Series {
    Series { label: Some((label, value)), source: Source::Count(count) }
}

/// All metrics, in the order they are written.
pub(super) const METRICS: &[Metric] = &[
    counter(
        "kiln_launches_total",
        "Kernels and library operations launched one by one.",
        &[count(Count::Launches)],
    ),
    counter(
        "kiln_library_launches_total",
        "Launches that are work of library calls; kiln_launches_total counts them, too.",
        &[count(Count::LibraryLaunches)],
    ),
    counter("kiln_graph_replays_total", "Graphs replayed.", &[count(Count::Replays)]),
    counter("kiln_fills_total", "Fills.", &[count(Count::Fills)]),
    counter("kiln_filled_bytes_total", "Bytes written by fills.", &[count(Count::FilledBytes)]),
    counter(
        "kiln_copies_total",
        "Copies, by where the bytes went.",
        &[
            labelled("direction", "to_device", Count::Uploads),
            labelled("direction", "to_host", Count::Downloads),
            labelled("direction", "on_device", Count::Copies),
        ],
    ),
    counter(
        "kiln_copied_bytes_total",
        "Bytes copied, by where they went.",
        &[
            labelled("direction", "to_device", Count::UploadedBytes),
            labelled("direction", "to_host", Count::DownloadedBytes),
            labelled("direction", "on_device", Count::CopiedBytes),
        ],
    ),
    counter("kiln_stream_waits_total", "Waits of one stream for another.", &[count(Count::StreamWaits)]),
    counter("kiln_events_recorded_total", "Events recorded.", &[count(Count::Signals)]),
    counter(
        "kiln_host_waits_total",
        "Times the host waited for the device or asked how far it is.",
        &[labelled("mode", "block", Count::HostWaits), labelled("mode", "poll", Count::HostPolls)],
    ),
    counter("kiln_graphs_built_total", "Graphs built.", &[count(Count::GraphsBuilt)]),
    counter("kiln_graph_updates_total", "Graph nodes changed in place.", &[count(Count::GraphUpdates)]),
    counter(
        "kiln_pinned_blocks_total",
        "Pinned blocks given out, by whether the pool had one.",
        &[labelled("result", "hit", Count::PinnedReused), labelled("result", "miss", Count::PinnedMade)],
    ),
    counter("kiln_module_hits_total", "Modules found loaded.", &[count(Count::ModuleHits)]),
    counter("kiln_compilations_total", "Compilations.", &[count(Count::Compilations)]),
    counter(
        "kiln_compile_seconds_total",
        "Time spent compiling.",
        &[Series { label: None, source: Source::Seconds(Count::CompileNanoseconds) }],
    ),
    counter("kiln_module_loads_total", "Modules loaded by the code cache.", &[count(Count::ModuleLoads)]),
    counter(
        "kiln_module_load_seconds_total",
        "Time spent loading modules.",
        &[Series { label: None, source: Source::Seconds(Count::ModuleLoadNanoseconds) }],
    ),
    counter(
        "kiln_code_saved_seconds_total",
        "Time the code caches saved: what it once took to make what they answered.",
        &[
            Series {
                label: Some(("cache", "memory")),
                source: Source::Seconds(Count::MemorySavedNanoseconds),
            },
            Series { label: Some(("cache", "disk")), source: Source::Seconds(Count::DiskSavedNanoseconds) },
        ],
    ),
    counter(
        "kiln_disk_cache_total",
        "Compiled code looked up on disk, by whether it was there.",
        &[labelled("result", "hit", Count::DiskHits), labelled("result", "miss", Count::DiskMisses)],
    ),
    counter("kiln_disk_cache_stores_total", "Compiled code written to disk.", &[count(Count::DiskStores)]),
    counter(
        "kiln_unfinished_uses_total",
        "Prepared uses of blocks that were dropped without being finished.",
        &[count(Count::UnfinishedUses)],
    ),
    gauge("kiln_memory_live_bytes", "Device memory in use.", &[level(Gauge::LiveBytes)]),
    gauge(
        "kiln_memory_peak_live_bytes",
        "The most device memory in use so far.",
        &[level(Gauge::PeakLiveBytes)],
    ),
    gauge(
        "kiln_memory_pending_bytes",
        "Device memory given back that work may still use.",
        &[level(Gauge::PendingBytes)],
    ),
    gauge(
        "kiln_memory_reserved_bytes",
        "Device memory taken from the device.",
        &[level(Gauge::ReservedBytes)],
    ),
    gauge("kiln_streams_leased", "Streams leased.", &[level(Gauge::LeasedStreams)]),
    gauge("kiln_streams_idle", "Streams that wait to be leased again.", &[level(Gauge::IdleStreams)]),
    gauge("kiln_events", "Events made.", &[level(Gauge::Events)]),
    gauge("kiln_events_leased", "Events in use.", &[level(Gauge::LeasedEvents)]),
    gauge("kiln_events_idle", "Events that wait to be used again.", &[level(Gauge::IdleEvents)]),
    gauge("kiln_modules_loaded", "Modules loaded.", &[level(Gauge::LoadedModules)]),
    gauge("kiln_ptx_sources", "PTX texts that the code cache has loaded.", &[level(Gauge::PtxSources)]),
    gauge(
        "kiln_pinned_idle_bytes",
        "Pinned host memory waiting to be used again.",
        &[level(Gauge::IdlePinnedBytes)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_on_the_page_once() {
        let sources = || METRICS.iter().flat_map(|metric| metric.series).map(|series| series.source);
        for count in Count::ALL {
            let same =
                |source: &Source| matches!(source, Source::Count(of) | Source::Seconds(of) if of == count);
            assert_eq!(sources().filter(same).count(), 1, "{count:?}");
        }
        for gauge in Gauge::ALL {
            let same = |source: &Source| matches!(source, Source::Gauge(of) if of == gauge);
            assert_eq!(sources().filter(same).count(), 1, "{gauge:?}");
        }
    }
}
