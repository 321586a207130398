//! Log records of a prober, as a subscriber receives them.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::scripted::{Scripted, prober};

/// Keeps the lines a person would read by default.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

/// The lines written while something runs on this thread.
pub(crate) fn lines(run: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), run);
    lines.0.lock().unwrap().clone()
}

#[test]
fn a_simulation_in_place_of_a_gpu_is_one_line_with_the_reason() {
    let prober = prober(&Scripted::absent());
    let said = lines(|| {
        prober.auto().unwrap();
        prober.auto().unwrap();
    });
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("no NVIDIA driver") && said[0].contains("kiln simulated device"), "{said:?}");
}

#[test]
fn a_gpu_that_is_opened_is_one_line_that_says_which() {
    let prober = prober(&Scripted::one_device());
    let said = lines(|| {
        prober.auto().unwrap();
        prober.require().unwrap();
    });
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("opened CUDA device 0") && said[0].contains("capability 9.0"), "{said:?}");
}
