//! The numbers of a runtime as the crate `metrics` gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use kiln::DeviceRuntime;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use crate::tagged;

/// The labels that every series has.
const DEVICE_LABELS: [&str; 4] = ["kind", "device", "name", "uuid"];
/// The page of the book that lists all names.
const PAGE: &str = include_str!("../../../../docs/book/src/recording.md");

/// A recorder that keeps the last number of each series, how many a histogram got, and of what kind each name is.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, f64>>>, Arc<Mutex<BTreeSet<Known>>>);

/// Name, kind, and what it has beside the labels of the device.
type Known = (String, &'static str, Option<(String, String)>);

struct Series {
    kept: Kept,
    name: String,
}

impl Kept {
    fn series(&self, key: &Key, kind: &'static str) -> Arc<Series> {
        let of_device = |name: &str| DEVICE_LABELS.contains(&name);
        let (device, own): (Vec<_>, Vec<_>) = key.labels().partition(|label| of_device(label.key()));
        assert_eq!(device.iter().map(|label| label.key()).collect::<Vec<_>>(), DEVICE_LABELS, "{key}");
        assert!(own.len() <= 1, "{key}");
        let text: String = own.iter().map(|label| format!("/{}", label.value())).collect();
        let label = own.first().map(|label| (label.key().to_owned(), label.value().to_owned()));
        self.1.lock().unwrap().insert((key.name().to_owned(), kind, label));
        Arc::new(Series { kept: self.clone(), name: format!("{}{text}", key.name()) })
    }

    fn get(&self, name: &str) -> f64 {
        let kept = self.0.lock().unwrap();
        *kept.get(name).unwrap_or_else(|| panic!("no {name} among {:?}", kept.keys()))
    }
}

impl Series {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut kept = self.kept.0.lock().unwrap();
        let value = kept.entry(self.name.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.change(|known| known + value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|known| known.max(value as f64));
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.change(|known| known + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|known| known - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series {
    fn record(&self, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds), "{seconds}");
        self.change(|known| known + 1.0);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key, "counter"))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key, "gauge"))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key, "histogram"))
    }
}

#[test]
fn counts_memory_by_tag_and_times_reach_the_recorder_of_the_program() {
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        gpu.telemetry().publish_metrics();
        let weights = tagged(&gpu, gpu.main_stream(), 1 << 10, "weights");
        for value in 0..5 {
            weights.fill_on(gpu.main_stream(), value).unwrap();
        }
        gpu.synchronize().unwrap();
        assert_eq!(kept.get("kiln_fills_total"), 0.0, "as they were then");
        gpu.telemetry().publish_metrics();
        assert_eq!((kept.get("kiln_fills_total"), kept.get("kiln_filled_bytes_total")), (5.0, 5.0 * 4096.0));
        assert_eq!(kept.get("kiln_memory_tag_bytes/weights"), 4096.0);
        assert!(kept.get("kiln_memory_live_bytes") >= 4096.0);
        assert_eq!((kept.get("kiln_faults_total"), kept.get("kiln_takeovers_total")), (0.0, 0.0));
        assert_eq!(kept.get("kiln_copies_total/to_device"), 0.0);
        assert_eq!(kept.get("kiln_submission_seconds"), 5.0, "each once");
        assert!(kept.get("kiln_host_wait_seconds") >= 1.0);
        drop(weights);
        gpu.telemetry().publish_metrics();
        assert_eq!(kept.get("kiln_memory_tag_bytes/weights"), 0.0);
    });
}

/// What the table of the page says: name, kind, and each further label with its value.
fn documented() -> BTreeSet<Known> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `kiln_"));
    let known = rows.flat_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, what] = cells[..] else { panic!("four cells: {row}") };
        assert!(!what.is_empty(), "{row}");
        let kind = ["counter", "gauge", "histogram"].into_iter().find(|known| *known == kind).unwrap();
        let name = name.trim_matches('`').to_owned();
        let values = labels.split_once(": ").map_or_else(Vec::new, |(label, values)| {
            let label = label.trim_matches('`');
            // The values of a tag are the program's.
            let values = values
                .split(", ")
                .map(|value| value.strip_prefix('`').map(|value| value.trim_end_matches('`')));
            values.map(|value| Some((label.to_owned(), value.unwrap_or("weights").to_owned()))).collect()
        });
        let values = if values.is_empty() { vec![None] } else { values };
        values.into_iter().map(move |label| (name.clone(), kind, label))
    });
    known.collect()
}

#[test]
fn the_names_that_are_published_are_those_of_the_book_with_the_numbers_of_the_page_for_prometheus() {
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let weights = tagged(&gpu, gpu.main_stream(), 1 << 10, "weights");
        gpu.telemetry().publish_metrics();
        weights.fill_on(gpu.main_stream(), 7).unwrap();
        let copy = gpu.upload(&[1_u32; 100]).unwrap();
        assert_eq!(copy.download().unwrap(), [1; 100]);
        gpu.synchronize().unwrap();
        gpu.telemetry().publish_metrics();
        let mut published = kept.1.lock().unwrap().clone();
        published.retain(|(.., label)| label.as_ref().is_none_or(|(_, value)| value != "untagged"));
        assert_eq!(published, documented());
        // Each number of the page is what the recorder got.
        let page = gpu.telemetry().snapshot().prometheus();
        let mut compared = 0;
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap();
            let own = labels.trim_end_matches('}').split(',').find_map(|label| {
                let (key, value) = label.split_once('=').unwrap();
                (!DEVICE_LABELS.contains(&key)).then(|| format!("/{}", value.trim_matches('"')))
            });
            let got = kept.get(&format!("{name}{}", own.unwrap_or_default()));
            let told: f64 = value.parse().unwrap();
            assert!((got - told).abs() < 1e-9, "{line}: {got}");
            compared += 1;
        }
        assert!(compared > 35, "{compared}");
        for (name, value) in [
            ("kiln_copied_bytes_total/to_device", 400.0),
            ("kiln_copied_bytes_total/to_host", 400.0),
            ("kiln_fills_total", 1.0),
        ] {
            assert_eq!(kept.get(name), value, "{name}");
        }
    });
}
