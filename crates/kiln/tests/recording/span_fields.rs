//! What the span of a submission says.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use kiln::DeviceRuntime;
use kiln_driver::Image;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the fields of kiln's spans.
#[derive(Clone, Default)]
struct Fields(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

struct Into<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Fields {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "kiln"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = BTreeMap::new();
        span.record(&mut Into(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        values.record(&mut Into(&mut spans[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_span_of_a_submission_has_its_stream_its_kernel_and_its_number() {
    const NOTHING: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
    let fields = Fields::default();
    let (launched, filled) = tracing::subscriber::with_default(fields.clone(), || {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let nothing = gpu.load_kernel(&Image::Ptx(NOTHING), "nothing", None).unwrap();
        // SAFETY: the kernel touches nothing.
        let launched = unsafe { gpu.launch(&nothing).grid(1).block(1).submit() }.unwrap();
        let filled = gpu.zeros::<u32>(4).unwrap().fill_on(gpu.main_stream(), 7).unwrap();
        (launched.stamp().number.to_string(), filled.stamp().number.to_string())
    });
    let spans = fields.0.lock().unwrap();
    let with = |number: &String| spans.iter().find(|span| span.get("number") == Some(number)).unwrap();
    let (launch, fill) = (with(&launched), with(&filled));
    assert_eq!(launch.get("kernel").map(String::as_str), Some("nothing"), "{launch:?}");
    assert!(launch.contains_key("stream") && launch.contains_key("command"), "{launch:?}");
    assert!(!fill.contains_key("kernel") && fill["command"].to_lowercase().contains("fill"), "{fill:?}");
}
