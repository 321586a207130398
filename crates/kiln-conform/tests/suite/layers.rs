//! The laws through each layer around the simulator: a layer is a driver, and a law is a correct program.

use std::sync::Arc;

use kiln_conform::{Opened, Subject};
use kiln_driver::layer::{Checking, Counting, Layer, Layered, RecordingLayer, Severity, TraceBuffer};
use kiln_sim::{Machine, Mode};

use crate::simulated;

/// The simulator with a layer around it; what the layer says at the end counts like what the machine says.
fn layered<L: Layer>(
    name: &'static str,
    layer: fn() -> L,
    says: fn(&Layered<L>) -> Result<(), String>,
) -> Subject {
    simulated::subject_of(name, move |seed| {
        let machine = Machine::new(simulated::config().mode(Mode::Seeded(seed)));
        let device = machine.device(0).map_err(|error| error.to_string())?;
        let peer = machine.device(1).map_err(|error| error.to_string())?;
        let driver = Arc::new(Layered::new(device, layer()));
        let watched = driver.clone();
        let verdict = move || says(&watched).and_then(|()| simulated::verdict(&machine));
        Ok(Opened::new(driver).with_peer(peer).with_verdict(verdict))
    })
}

/// Nothing broken, nothing left behind; warnings are what the laws do on purpose.
fn nothing_found(driver: &Layered<Checking>) -> Result<(), String> {
    let (violations, left) = (driver.layer().violations(), driver.layer().finish());
    let broken = violations.iter().filter(|violation| violation.severity() == Severity::Error);
    let said: Vec<_> = broken.map(ToString::to_string).chain(left.iter().map(ToString::to_string)).collect();
    if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
}

/// The checking layer knows streams and events by the names they were given, and cannot know that two names are one object.
fn by_name(subject: Subject) -> Subject {
    const WHY: &str =
        "it tells streams and events apart by name, so waiting under one name says nothing of the other";
    subject.exclude("streams.second_name", WHY).exclude("streams.second_name_of_an_event", WHY)
}

mod checking {
    use super::{Checking, by_name, layered, nothing_found};
    kiln_conform::laws!(by_name(layered("the checking layer", Checking::new, nothing_found)).rounds(4));
}

mod strict {
    use super::{Checking, by_name, layered, nothing_found};
    kiln_conform::laws!(
        by_name(layered("the strict checking layer", Checking::strict, nothing_found)).rounds(4)
    );
}

mod counting {
    use kiln_driver::call::CallKind;
    use kiln_driver::layer::CommandKind;

    use super::{Counting, Layered, layered};

    /// Every submission that was taken is counted once more, under its kind.
    fn counted(driver: &Layered<Counting>) -> Result<(), String> {
        let counts = driver.layer().counts();
        let taken: u64 = CommandKind::ALL.iter().map(|kind| counts.submitted(*kind)).sum();
        let refused = counts.of(CallKind::Submit).checked_sub(taken);
        let holds = refused.is_some_and(|refused| refused <= counts.failed());
        if holds { Ok(()) } else { Err(format!("{counts:?}")) }
    }

    kiln_conform::laws!(layered("the counting layer", Counting::default, counted));
}

mod recording {
    use super::{Layered, RecordingLayer, TraceBuffer, layered};

    fn finished(driver: &Layered<RecordingLayer>) -> Result<(), String> {
        driver.layer().finish().map_err(|error| error.to_string())
    }

    fn recording() -> RecordingLayer {
        RecordingLayer::to(TraceBuffer::default())
    }

    kiln_conform::laws!(layered("the recording layer", recording, finished));
}
