//! The numbers of a runtime as the crate `metrics` gets them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kiln::DeviceRuntime;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use crate::tagged;

/// A recorder that keeps the last number of each series, and how many a histogram got.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, f64>>>);

struct Series {
    kept: Kept,
    name: String,
}

impl Kept {
    fn series(&self, key: &Key) -> Arc<Series> {
        let wanted = ["direction", "tag"];
        let labels = key.labels().filter(|label| wanted.contains(&label.key()));
        let text: String = labels.map(|label| format!("/{}", label.value())).collect();
        assert!(key.labels().any(|label| label.key() == "device"), "{key}");
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
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
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
