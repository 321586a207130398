//! Every field of a dispatch's configuration is honoured or refused.

use std::time::Duration;

use kiln::program::{Bindings, Converge, DispatchConfig, Program, ProgramError, Speculation};
use kiln_driver::Dim3;
use kiln_sim::{DeviceConfig, FaultPlan, MachineConfig, PlannedFault};

use crate::rig::{Rig, refusal};

/// Every thread counts itself, and its block where it is the first one.
pub(crate) const COUNT: &str = "
    kernel count(inout threads: u32[1], inout blocks: u32[1]) block(32) {
        atomic_add(threads[0], 1);
        if (thread.x == 0) & (thread.y == 0) { atomic_add(blocks[0], 1); }
    }";

/// Counts every element down to zero, one a step, and says whether it changed one.
pub(crate) const COUNTDOWN: &str = "
    kernel countdown(inout x: u32[], inout changed: u32[1]) block(32) over(x) {
        let left = x[global.x];
        if left > 0 {
            x[global.x] = left - 1;
            atomic_max(changed[0], 1);
        }
    }";

fn config() -> DispatchConfig {
    DispatchConfig::default()
}

/// Threads and blocks that ran.
fn counted(rig: &Rig, config: &DispatchConfig) -> kiln::Result<(u32, u32)> {
    let pipeline = rig.backend.compile(&Program::parse(COUNT).unwrap())?;
    let given = Bindings::new().input("threads", &[0_u32]).input("blocks", &[0_u32]);
    let mut done = pipeline.dispatch_with(given, config)?;
    Ok((done.outputs.take::<u32>("threads")?[0], done.outputs.take::<u32>("blocks")?[0]))
}

#[test]
fn grid_says_how_many_blocks_run() {
    let rig = Rig::simulated();
    let of = |grid: Dim3| DispatchConfig { grid: Some(grid), ..config() };
    assert_eq!(counted(&rig, &of(7.into())).unwrap(), (7 * 32, 7));
    assert_eq!(counted(&rig, &of(Dim3::new(2, 3, 2))).unwrap(), (12 * 32, 12));
    rig.finish();
}

#[test]
fn block_says_how_many_threads_a_block_has() {
    let rig = Rig::simulated();
    let of = |block| DispatchConfig { grid: Some(3.into()), block: Some(block), ..config() };
    assert_eq!(counted(&rig, &of([64, 1, 1])).unwrap(), (3 * 64, 3));
    assert_eq!(counted(&rig, &of([8, 4, 1])).unwrap(), (3 * 32, 3));
    assert_eq!(counted(&rig, &of([32, 1, 1])).unwrap(), (3 * 32, 3));
    rig.finish();
}

#[test]
fn dynamic_shared_elements_say_how_much_shared_memory_there_is() {
    let rig = Rig::simulated();
    let program = Program::build("tell", |k| {
        let (memory, length) = (k.dynamic_shared::<u32>("memory"), k.output::<u64>("length").count(1));
        k.block([1, 1, 1]);
        memory.store(0, 1_u32);
        length.store(0, memory.length());
    });
    let pipeline = rig.backend.compile(&program.unwrap()).unwrap();
    let told = |dynamic_shared_elements| {
        let config = DispatchConfig { grid: Some(1.into()), dynamic_shared_elements, ..config() };
        Ok::<u64, kiln::Error>(pipeline.dispatch_with(Bindings::new(), &config)?.outputs.take("length")?[0])
    };
    assert_eq!(told(Some(77)).unwrap(), 77);
    assert!(matches!(refusal(told(None)), ProgramError::Shared { .. }));
    drop(pipeline);
    rig.finish();
}

#[test]
fn steps_say_how_often_it_runs() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    for steps in [0, 1, 5] {
        let (mut x, before) = ((0..20).collect::<Vec<u32>>(), rig.counts());
        let given = Bindings::new().in_out("x", &mut x).input("changed", &[0_u32]);
        let done = pipeline.dispatch_with(given, &DispatchConfig { steps, ..config() }).unwrap();
        assert_eq!((done.steps, rig.launches_since(&before)), (steps, steps));
        assert_eq!(x, (0..20_u32).map(|value| value.saturating_sub(steps as u32)).collect::<Vec<_>>());
    }
    drop(pipeline);
    rig.finish();
}

#[test]
fn steps_beyond_count_run_in_batches_and_not_out_of_memory() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let mut x = vec![7_000_u32, 3, 6_001];
    let given = Bindings::new().in_out("x", &mut x).input("changed", &[0_u32]);
    let before = rig.counts();
    let done = pipeline.dispatch_with(given, &DispatchConfig { steps: 6_000, ..config() }).unwrap();
    assert_eq!((done.steps, rig.launches_since(&before)), (6_000, 6_000));
    assert_eq!(x, [1_000, 0, 1]);
    drop(pipeline);
    rig.finish();
}

fn until(flag: &str, limit: u64) -> DispatchConfig {
    DispatchConfig { converge: Some(Converge { flag: flag.into(), limit }), ..config() }
}

#[test]
fn converge_runs_it_until_its_flag_stays_zero() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let run = |x: &mut Vec<u32>, config: &DispatchConfig| {
        pipeline.dispatch_with(Bindings::new().in_out("x", x).input("changed", &[9_u32]), config)
    };
    let start: Vec<u32> = (0..20).collect();
    for block in [None, Some([64, 1, 1])] {
        let mut x = start.clone();
        let done = run(&mut x, &DispatchConfig { block, ..until("changed", 1000) }).unwrap();
        assert!((20..40).contains(&done.steps), "{}", done.steps);
        assert_eq!(x, [0; 20]);
    }
    let mut x = vec![0_u32; 4];
    assert_eq!(run(&mut x, &until("changed", 1)).unwrap().steps, 1);

    for limit in [0, 1, 6] {
        let mut x = start.clone();
        let expected = ProgramError::NotConverged { program: "countdown".into(), steps: limit };
        assert_eq!(refusal(run(&mut x, &until("changed", limit))), expected);
        assert_eq!(x, start, "what did not converge does not come back");
    }
    let mut x = start.clone();
    assert!(matches!(refusal(run(&mut x, &until("gone", 6))), ProgramError::Unknown { .. }));
    assert!(matches!(refusal(run(&mut x, &until("x", 6))), ProgramError::Unsupported { .. }));
    let both = DispatchConfig { steps: 2, ..until("changed", 6) };
    assert!(matches!(refusal(run(&mut x, &both)), ProgramError::Unsupported { .. }));
    drop(pipeline);
    rig.finish();
}

#[test]
fn cooperative_keeps_all_blocks_resident_or_refuses() {
    let rig = Rig::simulated();
    let of = |grid: u32| DispatchConfig { grid: Some(grid.into()), cooperative: true, ..config() };
    assert_eq!(counted(&rig, &of(100)).unwrap(), (3200, 100));
    let limits = &rig.gpu().info().limits;
    let limit = u64::from(limits.multiprocessors * limits.max_blocks_per_multiprocessor);
    let before = rig.counts();
    let refused = refusal(counted(&rig, &of(limit as u32 + 1)));
    let program = "count".to_owned();
    assert_eq!(refused, ProgramError::CooperativeResidencyExceeded { program, blocks: limit + 1, limit });
    assert_eq!(rig.launches_since(&before), 0);
    rig.finish();

    let without = Rig::of(MachineConfig::seeded(1).device(DeviceConfig::small()));
    assert!(matches!(refusal(counted(&without, &of(1))), ProgramError::Unsupported { .. }));
    without.finish();
}

#[test]
fn timeout_is_an_error_and_leaves_what_is_written_in_doubt() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let gpu = rig.gpu();
    let (x, mut changed) = (gpu.upload(&[3_u32; 50]).unwrap(), vec![0_u32]);
    let long = DispatchConfig { timeout: Some(Duration::from_secs(1)), ..config() };
    pipeline.dispatch_with(Bindings::new().resident("x", &x).in_out("changed", &mut changed), &long).unwrap();
    assert_eq!((x.is_trusted(), &changed[..]), (true, &[1][..]));

    let limit = Duration::from_nanos(1);
    let short = DispatchConfig { timeout: Some(limit), label: Some("relax".into()), ..config() };
    changed[0] = 5;
    let given = Bindings::new().resident("x", &x).in_out("changed", &mut changed);
    let error = pipeline.dispatch_with(given, &short).unwrap_err();
    assert_eq!(error.label(), Some("relax"));
    assert_eq!(refusal::<()>(Err(error)), ProgramError::TimedOut { program: "countdown".into(), limit });
    assert_eq!(changed, [5], "vectors of the host are as they were");
    assert!(!x.is_trusted(), "it may still be written");

    assert_eq!(
        x.view(1..3).unwrap().download().unwrap(),
        [1, 1],
        "it was not stopped, and a caller that reads it waits for it"
    );
    x.view(1..3).unwrap().fill(0).unwrap();
    assert!(!x.is_trusted(), "some of it is as it was");
    x.fill(7).unwrap();
    assert!(x.is_trusted());
    drop((x, pipeline));
    rig.finish();
}

#[test]
fn timeout_holds_for_all_turns_together() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let config = DispatchConfig { timeout: Some(Duration::from_micros(500)), ..until("changed", u64::MAX) };
    let mut x = vec![u32::MAX; 4];
    let refused = refusal(
        pipeline.dispatch_with(Bindings::new().in_out("x", &mut x).input("changed", &[0_u32]), &config),
    );
    assert!(matches!(refused, ProgramError::TimedOut { .. }), "{refused}");
    assert_eq!(x, [u32::MAX; 4]);
    drop(pipeline);
    rig.finish();
}

#[test]
fn timeout_ends_the_wait_for_a_program_that_hangs() {
    let faults = FaultPlan::none().on(0, PlannedFault::Hang { launch: 1 });
    let rig = Rig::of(MachineConfig::seeded(1).faults(faults));
    let limit = Duration::from_millis(5);
    let config = DispatchConfig { grid: Some(1.into()), timeout: Some(limit), ..config() };
    assert_eq!(refusal(counted(&rig, &config)), ProgramError::TimedOut { program: "count".into(), limit });
}

#[test]
fn label_is_in_every_error() {
    let rig = Rig::simulated();
    let labelled = |more: DispatchConfig| {
        let config = DispatchConfig { label: Some("audit".into()), ..more };
        let error = counted(&rig, &config).unwrap_err();
        assert_eq!(error.label(), Some("audit"), "{error}");
        assert!(error.to_string().starts_with("audit backend: "), "{error}");
    };
    labelled(config());
    labelled(DispatchConfig { block: Some([4096, 1, 1]), grid: Some(1.into()), ..config() });
    labelled(DispatchConfig { timeout: Some(Duration::ZERO), grid: Some(1.into()), ..config() });
    labelled(DispatchConfig {
        timeout: Some(Duration::ZERO),
        grid: Some(1.into()),
        profile: true,
        ..config()
    });
    labelled(until("gone", 3));
    rig.finish();
}

#[test]
fn profile_says_how_long_the_device_took() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let time = |config: &DispatchConfig| {
        let mut x = vec![300_u32; 10];
        let given = Bindings::new().in_out("x", &mut x).input("changed", &[0_u32]);
        pipeline.dispatch_with(given, config).unwrap().timing
    };
    assert_eq!(time(&config()), None, "not asked for");
    let profiled = |config| time(&DispatchConfig { profile: true, ..config }).unwrap();
    let (once, often, loops) = (
        profiled(config()),
        profiled(DispatchConfig { steps: 100, ..config() }),
        profiled(until("changed", 1000)),
    );
    for timing in [once, often, loops] {
        assert!(timing.device > Duration::ZERO && timing.wall >= timing.device, "{timing:?}");
        assert!(timing.wait > Duration::ZERO && timing.wall >= timing.enqueue + timing.wait, "{timing:?}");
    }
    assert!(once.device < often.device && often.device < loops.device);
    drop(pipeline);
    rig.finish();
}

#[test]
fn speculation_is_refused_where_it_must_be() {
    let rig = Rig::simulated();
    let config = DispatchConfig { speculation: Speculation::Force, grid: Some(1.into()), ..config() };
    let before = rig.counts();
    assert!(matches!(refusal(counted(&rig, &config)), ProgramError::Unsupported { what: "speculation", .. }));
    assert_eq!(rig.launches_since(&before), 0);
    rig.finish();
}
