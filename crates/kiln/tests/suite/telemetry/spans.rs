//! Spans of submissions, as a subscriber receives them.

use std::sync::{Arc, Mutex};

use kiln_sim::MachineConfig;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::rig::Rig;

/// Keeps the names of spans that were entered, down to a level.
#[derive(Clone)]
struct Names(Level, Arc<Mutex<(Vec<&'static str>, Vec<&'static str>)>>);

impl Names {
    fn entered(&self) -> Vec<&'static str> {
        self.1.lock().unwrap().1.clone()
    }
}

impl Subscriber for Names {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "kiln" && *metadata.level() <= self.0
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.0.into())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut names = self.1.lock().unwrap();
        names.0.push(span.metadata().name());
        Id::from_u64(names.0.len() as u64)
    }

    fn enter(&self, span: &Id) {
        let mut names = self.1.lock().unwrap();
        let name = names.0[span.into_u64() as usize - 1];
        names.1.push(name);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn exit(&self, _: &Id) {}
}

/// The spans of a little work, down to a level.
fn spans(level: Level) -> Vec<&'static str> {
    let names = Names(level, Arc::default());
    tracing::subscriber::with_default(names.clone(), || {
        let rig = Rig::new(MachineConfig::seeded(1));
        let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
        rig.mix(rig.gpu.main_stream(), &a, &b);
        rig.gpu.record(|builder| builder.fill(&a, 1)).unwrap().0.replay().unwrap();
        a.download().unwrap();
        drop((a, b));
        rig.finish();
    });
    names.entered()
}

#[test]
fn submissions_transfers_and_graphs_are_spans() {
    assert_eq!(spans(Level::DEBUG), ["transfer", "transfer", "build graph", "transfer"]);
    assert_eq!(spans(Level::TRACE), ["transfer", "transfer", "submit", "build graph", "submit", "transfer"]);
    assert!(spans(Level::INFO).is_empty());
}
