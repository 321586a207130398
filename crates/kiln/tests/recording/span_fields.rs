//! What the span of a submission says.
//!
//! The first thread that comes to a span has `tracing` decide for all threads whether a subscriber wants it, and as long as there is one subscriber only that
//! thread's is asked. A test beside this one, on a thread without a subscriber, would have these spans switched off for the whole process. So the subscriber is
//! that of a process in which nothing else runs, for all its threads, and is set before anything of kiln is called.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::{Command, Stdio};
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

/// Set in the process whose spans are looked at.
const ROLE: &str = "KILN_TEST_SPAN_FIELDS";

#[test]
fn a_span_of_a_submission_has_its_stream_its_kernel_and_its_number() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "span_fields::child", "--nocapture"]);
    let output = command.env(ROLE, "looks").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child looked: {said}");
}

/// What a child does, which the test above started.
#[test]
#[ignore = "helper process"]
fn child() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    const NOTHING: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
    let fields = Fields::default();
    tracing::subscriber::set_global_default(fields.clone()).unwrap();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let nothing = gpu.load_kernel(&Image::Ptx(NOTHING), "nothing", None).unwrap();
    // SAFETY: the kernel touches nothing.
    let launched = unsafe { gpu.launch(&nothing).grid(1).block(1).submit() }.unwrap();
    let filled = gpu.zeros::<u32>(4).unwrap().fill_on(gpu.main_stream(), 7).unwrap();
    let (launched, filled) = (launched.stamp().number.to_string(), filled.stamp().number.to_string());
    let spans = fields.0.lock().unwrap();
    let with = |number: &String| spans.iter().find(|span| span.get("number") == Some(number)).unwrap();
    let (launch, fill) = (with(&launched), with(&filled));
    assert_eq!(launch.get("kernel").map(String::as_str), Some("nothing"), "{launch:?}");
    assert!(launch.contains_key("stream") && launch.contains_key("command"), "{launch:?}");
    assert!(!fill.contains_key("kernel") && fill["command"].to_lowercase().contains("fill"), "{fill:?}");
}
