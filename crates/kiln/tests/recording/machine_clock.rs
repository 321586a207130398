//! Devices of one simulated machine are on one time axis, whenever their runtimes were made, and their ranks are compared on it; so are devices with the
//! clock of the host.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kiln::group::{DeviceGroup, Reduction};
use kiln::recovery::DeviceSpec;
use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::trace::{ClockAlignment, IdleWhy, JobExplanation, RankLog, TraceEvent, export_perfetto};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Clock;

use crate::Recorded;
use crate::worker_times::isolated;

/// Names what this binary does when it is started as a child.
const ROLE: &str = "KILN_TEST_MACHINE_CLOCK";

/// What a child does, which a test below started.
#[test]
#[ignore = "helper process"]
fn child() {
    match std::env::var(ROLE).as_deref() {
        Ok("later device") => later_device(),
        Ok("ranks on one machine") => ranks_on_one_machine(),
        Ok("later worker") => later_worker(),
        _ => {}
    }
}

/// Runs a child that is recorded; the numbers that it told.
fn run(role: &str, file: &Recorded) -> Vec<u64> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "machine_clock::child", "--nocapture"]).env(ROLE, role);
    let output = command.env("KILN_TRACE", &file.0).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = said.lines().filter_map(|line| line.split_once("told: ")).map(|(_, told)| told.parse());
    numbers.collect::<Result<_, _>>().unwrap()
}

#[allow(clippy::print_stdout, reason = "the test reads it")]
fn tell(number: u64) {
    println!("\ntold: {number}");
}

fn two_devices() -> Machine {
    Machine::new(MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default()))
}

fn runtime(machine: &Machine, device: u32) -> DeviceRuntime {
    DeviceRuntime::from_driver(machine.device(device).unwrap(), RuntimeConfig::default()).unwrap()
}

fn now(machine: &Machine) -> u64 {
    u64::try_from(machine.clock().now().as_nanos()).unwrap()
}

/// The second device is made after work on the first, and is idle later while the program waits for the first again.
fn later_device() {
    let machine = two_devices();
    tell(now(&machine));
    let first = runtime(&machine, 0);
    tell(now(&machine));
    let large = first.zeros::<u32>(1 << 22).unwrap();
    large.fill(1).unwrap();
    tell(u64::from(line!()) + 1);
    first.synchronize().unwrap();
    tell(now(&machine));
    let second = runtime(&machine, 1);
    let small = second.zeros::<u32>(16).unwrap();
    second.synchronize().unwrap();
    tell(now(&machine));
    large.fill(2).unwrap();
    let line = line!() + 1;
    first.synchronize().unwrap();
    tell(now(&machine));
    small.fill(3).unwrap();
    second.synchronize().unwrap();
    tell(line.into());
}

#[test]
fn a_device_that_is_made_later_begins_at_the_time_of_its_machine() {
    let file = Recorded::new();
    let told = run("later device", &file);
    let [before, made, early, later, idle, busy, line] = told[..] else { panic!("{told:?}") };
    assert!(later - made > 10_000 && busy - idle > 5_000, "the first device takes time: {told:?}");
    // The zero of the recording lies between the times before and after the first runtime was made.
    let at = |from: u64, to: u64| from - made..=to - before;
    let (mut submitted, mut ran) = ([u64::MAX, 0], [u64::MAX, 0]);
    file.each(|event| {
        if let TraceEvent::Submission(work) = event
            && work.stamp.stream.device == 1
        {
            let span = work.device.unwrap();
            submitted = [submitted[0].min(work.host.begin_ns), submitted[1].max(work.host.begin_ns)];
            ran = [ran[0].min(span.begin_ns), ran[1].max(span.begin_ns)];
        }
    });
    // The first work of the second device, and its last.
    for (found, times) in [(submitted[0], at(later, idle)), (ran[0], at(later, idle))] {
        assert!(times.contains(&found), "{found} is not in {times:?}: {told:?}");
    }
    for found in [submitted[1], ran[1]] {
        assert!(found >= busy - made, "{found}: {told:?}");
    }
    let explained = file.explained();
    let [_, device] = &*explained.devices else { panic!("{explained}") };
    let waits: Vec<&str> = device
        .idle
        .iter()
        .filter_map(|reason| match &reason.why {
            IdleWhy::HostWait { line: Some(line), .. } => Some(&**line),
            _ => None,
        })
        .collect();
    let is_at = |wait: &str, line: u64| wait.ends_with(&format!("machine_clock.rs:{line}"));
    assert!(waits.first().is_some_and(|wait| is_at(wait, line)), "line {line}: {explained}");
    assert!(
        !waits.iter().any(|wait| is_at(wait, early)),
        "a wait that ended before, line {early}: {explained}"
    );
    assert_eq!(explained.clocks.len(), 1, "{explained}");
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    assert!(!String::from_utf8_lossy(&trace).contains("cannot be compared"));
}

/// Two ranks of one machine, of which the second is made later. First they come at once; then the second has work before.
fn ranks_on_one_machine() {
    let machine = two_devices();
    let first = runtime(&machine, 0);
    let began = now(&machine);
    first.zeros::<u32>(1 << 22).unwrap().fill(1).unwrap();
    first.synchronize().unwrap();
    tell(now(&machine) - began);
    let second = runtime(&machine, 1);
    let group = DeviceGroup::new([first, second]).unwrap();
    let ranks = group.communicators(&Default::default()).unwrap();
    let buffers = [0, 1].map(|rank| group.runtime(rank).unwrap().upload(&[1.0_f32; 100]).unwrap());
    let large = group.runtime(1).unwrap().zeros::<u32>(1 << 22).unwrap();
    group.synchronize().unwrap();
    for is_late in [false, true] {
        for (rank, buffer) in ranks.iter().zip(&buffers) {
            if is_late && rank.rank() == 1 {
                large.fill_on(group.runtime(1).unwrap().main_stream(), 1).unwrap();
            }
            rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
        }
        group.synchronize().unwrap();
    }
}

#[test]
fn ranks_on_one_machine_are_compared_by_its_clock() {
    let file = Recorded::new();
    let told = run("ranks on one machine", &file);
    let mut log = RankLog::default();
    file.each(|event| log.add(event));
    let job = JobExplanation::of(&[&log]);
    assert_eq!(job.clocks, ClockAlignment::OneRecording, "{job}");
    let late = |number: u64| {
        let call = job.collectives.iter().find(|call| (&*call.name, call.number) == ("all_reduce", number));
        let call = call.unwrap_or_else(|| panic!("{job}"));
        (call.parts.last().unwrap().rank, call.late_ns())
    };
    assert!(late(1).1 < told[0] / 10, "they come at once, and not {} after each other: {job}", told[0]);
    assert!(late(2).0 == 1 && late(2).1 > told[0] / 4, "{told:?}: {job}");
}

/// How long the program does something else before it makes the second device.
const PAUSE: Duration = Duration::from_millis(300);

/// Two devices in worker processes, whose drivers count from different moments.
fn later_worker() {
    let began = Instant::now();
    let _first = isolated(&DeviceSpec::simulated(1));
    std::thread::sleep(PAUSE);
    let second = isolated(&DeviceSpec::simulated(2));
    second.upload(&[1_u32, 2, 3]).unwrap();
    second.synchronize().unwrap();
    tell(u64::try_from(began.elapsed().as_nanos()).unwrap());
}

#[test]
fn a_device_with_the_clock_of_the_host_begins_when_it_is_made() {
    let file = Recorded::new();
    let told = run("later worker", &file);
    let mut submitted = Vec::new();
    file.each(|event| {
        if let TraceEvent::Submission(work) = event {
            submitted.push((work.stamp.stream.device, work.host.begin_ns));
        }
    });
    let times = u64::try_from(PAUSE.as_nanos()).unwrap()..=told[0];
    assert!(!submitted.is_empty(), "{told:?}");
    for (device, begin_ns) in submitted {
        assert!(device == 1 && times.contains(&begin_ns), "device {device} at {begin_ns}, not in {times:?}");
    }
}
