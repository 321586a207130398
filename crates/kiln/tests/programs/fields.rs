//! Every field of a configuration, by every way to run a step: what it says happens, or is refused.

use std::collections::BTreeSet;
use std::time::Duration;

use kiln::program::{Bindings, Converge, DispatchConfig, Pipeline, Program, ProgramError, Speculation};
use kiln::{GpuRef, Result};

use crate::config::COUNT;
use crate::rig::Rig;

/// A way to run a step.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// By itself.
    Dispatch,
    /// In a sequence.
    Step,
    /// In a loop of a sequence, which turns once.
    Turn,
    /// In a graph.
    Record,
}

const WAYS: [Way; 4] = [Way::Dispatch, Way::Step, Way::Turn, Way::Record];

/// What comes of it.
#[derive(PartialEq, Debug)]
enum Outcome {
    /// So many threads and blocks ran.
    Ran(u32, u32),
    /// The same, and the device's time came with it.
    Timed(u32, u32),
    Unsupported,
    TooManyBlocks,
    WrongShared,
    NotConverged(u64),
    TimedOut,
}

/// Runs the counting program with a configuration.
fn run(rig: &Rig, pipeline: &Pipeline, config: &DispatchConfig, way: Way) -> Outcome {
    let zero = || rig.gpu().zeros::<u32>(1).unwrap();
    let (threads, blocks) = (zero(), zero());
    match run_on(rig, pipeline, config, way, [&threads, &blocks]) {
        Ok(timed) => {
            let [threads, blocks] = [threads, blocks].map(|count| count.download().unwrap()[0]);
            if timed { Outcome::Timed(threads, blocks) } else { Outcome::Ran(threads, blocks) }
        }
        Err(error) => match error.downcast_ref() {
            Some(ProgramError::Unsupported { .. }) => Outcome::Unsupported,
            Some(ProgramError::CooperativeResidencyExceeded { .. }) => Outcome::TooManyBlocks,
            Some(ProgramError::Shared { .. }) => Outcome::WrongShared,
            Some(ProgramError::NotConverged { steps, .. }) => Outcome::NotConverged(*steps),
            Some(ProgramError::TimedOut { .. }) => Outcome::TimedOut,
            _ => panic!("{way:?}: {error}"),
        },
    }
}

/// Whether the device's time came with it.
fn run_on(
    rig: &Rig,
    pipeline: &Pipeline,
    config: &DispatchConfig,
    way: Way,
    [threads, blocks]: [&GpuRef<u32>; 2],
) -> Result<bool> {
    let given = Bindings::new().resident("threads", threads).resident("blocks", blocks);
    let mut sequence = rig.backend.sequence();
    match way {
        Way::Dispatch => return Ok(pipeline.dispatch_with(given, config)?.timing.is_some()),
        Way::Step => drop(sequence.step_with(pipeline, given, config)?),
        Way::Turn => drop(sequence.repeat(1, |turn| turn.step_with(pipeline, given, config).map(drop))?),
        Way::Record => {
            sequence.record(pipeline, given, config)?;
            sequence.build()?.replay()?;
            return Ok(false);
        }
    }
    Ok(sequence.run()?.timing.is_some())
}

/// A field, a configuration that says something of it, and what comes of it: by itself, in a sequence, in a loop, in a graph.
type Row = (&'static str, DispatchConfig, [Outcome; 4]);

fn each(outcome: impl Fn() -> Outcome) -> [Outcome; 4] {
    WAYS.map(|_| outcome())
}

/// A setting of the whole sequence is refused of one step.
fn alone(outcome: Outcome) -> [Outcome; 4] {
    [outcome, Outcome::Unsupported, Outcome::Unsupported, Outcome::Unsupported]
}

fn rows(too_many: u32) -> Vec<Row> {
    let of = |grid: u32| DispatchConfig { grid: Some(grid.into()), ..DispatchConfig::default() };
    let shared = DispatchConfig { dynamic_shared_elements: Some(4), ..of(1) };
    let converge = Some(Converge { flag: "threads".into(), limit: 5 });
    let limit = Some(Duration::from_nanos(1));
    let ran = |threads, blocks| move || Outcome::Ran(threads, blocks);
    vec![
        ("grid", of(7), each(ran(7 * 32, 7))),
        ("block", DispatchConfig { block: Some([64, 1, 1]), ..of(3) }, each(ran(3 * 64, 3))),
        ("dynamic_shared_elements", shared, each(|| Outcome::WrongShared)),
        (
            "steps",
            DispatchConfig { steps: 3, ..of(2) },
            [Outcome::Ran(192, 6), Outcome::Ran(192, 6), Outcome::Ran(192, 6), Outcome::Unsupported],
        ),
        (
            "steps",
            DispatchConfig { steps: 0, ..of(2) },
            [Outcome::Ran(0, 0), Outcome::Ran(0, 0), Outcome::Ran(0, 0), Outcome::Unsupported],
        ),
        (
            "converge",
            DispatchConfig { converge, ..of(2) },
            [Outcome::NotConverged(5), Outcome::NotConverged(5), Outcome::Unsupported, Outcome::Unsupported],
        ),
        ("cooperative", DispatchConfig { cooperative: true, ..of(4) }, each(ran(4 * 32, 4))),
        (
            "cooperative",
            DispatchConfig { cooperative: true, ..of(too_many) },
            each(|| Outcome::TooManyBlocks),
        ),
        ("timeout", DispatchConfig { timeout: limit, ..of(1) }, alone(Outcome::TimedOut)),
        ("label", DispatchConfig { label: Some("audit".into()), ..of(1) }, alone(Outcome::Ran(32, 1))),
        ("profile", DispatchConfig { profile: true, ..of(1) }, alone(Outcome::Timed(32, 1))),
        (
            "speculation",
            DispatchConfig { speculation: Speculation::Force, ..of(1) },
            each(|| Outcome::Unsupported),
        ),
        ("speculation", DispatchConfig { speculation: Speculation::Off, ..of(1) }, each(ran(32, 1))),
    ]
}

#[test]
fn every_field_is_honoured_or_refused_by_every_way_to_run_a_step() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNT).unwrap()).unwrap();
    let limits = &rig.gpu().info().limits;
    let rows = rows(limits.multiprocessors * limits.max_blocks_per_multiprocessor + 1);
    for (field, config, expected) in &rows {
        for (way, expected) in WAYS.iter().zip(expected) {
            assert_eq!(&run(&rig, &pipeline, config, *way), expected, "{field} by {way:?}");
        }
    }
    // What prints a configuration names all its fields.
    let printed = format!("{:?}", DispatchConfig::default());
    let inside = printed.trim_start_matches("DispatchConfig { ").trim_end_matches(" }");
    let fields: BTreeSet<&str> =
        inside.split(", ").filter_map(|field| Some(field.split_once(": ")?.0)).collect();
    let tried: BTreeSet<&str> = rows.iter().map(|(field, _, _)| *field).collect();
    assert_eq!(tried, fields, "every field is tried");
    drop(pipeline);
    rig.finish();
}

#[test]
fn the_label_of_a_sequence_is_in_every_error_it_makes() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNT).unwrap()).unwrap();
    let (two, three) = (rig.gpu().zeros::<u32>(2).unwrap(), rig.gpu().zeros::<u32>(3).unwrap());
    let config = DispatchConfig::default();
    let check = |what: &str, error: kiln::Error| assert_eq!(error.label(), Some("audit"), "{what}: {error}");
    let labelled = || {
        let mut sequence = rig.backend.sequence();
        sequence.label("audit");
        sequence
    };
    check("copy", labelled().copy(&two, &three).unwrap_err());
    check("upload", labelled().upload(&two, &[1; 5]).unwrap_err());
    check("step", labelled().step(&pipeline, Bindings::new()).unwrap_err());
    check("record", labelled().record(&pipeline, Bindings::new(), &config).unwrap_err());
    check("until", labelled().until(&two, 5, |_| Ok(())).unwrap_err());
    let mut broken = labelled();
    let error = broken.repeat(2, |turn| turn.step(&pipeline, Bindings::new()).map(drop)).unwrap_err();
    check("repeat", error);
    check("run", broken.run().unwrap_err());
    let mut read = Vec::new();
    let mut sequence = labelled();
    sequence.read(&two, &mut read).unwrap();
    check("build", sequence.build().unwrap_err());
    for profile in [false, true] {
        let mut sequence = labelled();
        sequence.fill(&two, 1).unwrap();
        if profile {
            sequence.profile()
        } else {
            sequence.timeout(Duration::from_secs(1))
        };
        let error = sequence.build().unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(ProgramError::Unsupported { .. })), "{error}");
        check("a time-out or a profile of a graph", error);
    }
    drop((pipeline, two, three));
    rig.finish();
}
