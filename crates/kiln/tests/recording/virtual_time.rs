//! A recording changes nothing of what it records: virtual time passes as it does without one.

use std::time::Duration;

use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::telemetry::DeviceTimes;
use kiln::trace::TraceEvent;
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::Recorded;

/// Virtual time that a program takes, recorded or not.
fn taken(file: Option<&Recorded>) -> Duration {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let buffer = gpu.zeros::<u32>(64).unwrap();
    gpu.synchronize().unwrap();
    file.into_iter().for_each(|file| gpu.trace(file).unwrap());
    let began = gpu.driver().clock().now();
    for value in 0..50 {
        buffer.fill_on(gpu.main_stream(), value).unwrap();
    }
    gpu.synchronize().unwrap();
    let other = gpu.upload(&[7_u32; 64]).unwrap();
    other.copy_from(&buffer).unwrap().wait().unwrap();
    assert_eq!(other.download().unwrap(), [49; 64]);
    assert_eq!(buffer.download().unwrap(), [49; 64]);
    gpu.driver().clock().now() - began
}

#[test]
fn a_recorded_program_takes_as_much_virtual_time_as_one_that_is_not() {
    let file = Recorded::new();
    assert_eq!(taken(Some(&file)), taken(None));
}

#[test]
fn no_wait_of_the_program_ends_before_the_work_it_waits_for() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let buffer = gpu.zeros::<u32>(1 << 20).unwrap();
    gpu.trace(&file).unwrap();
    buffer.fill(1).unwrap().wait().unwrap();
    buffer.fill(2).unwrap();
    gpu.synchronize().unwrap();
    drop((buffer, gpu));
    let (mut ended, mut waited) = (Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::Submission(work) => ended.push((work.stamp.number, work.device.unwrap().end_ns)),
        TraceEvent::HostWait(wait) => waited.push(wait.span.end_ns),
        _ => {}
    });
    ended.sort_unstable();
    let (ended, waited) = (ended.split_off(ended.len() - 2), waited);
    assert_eq!(waited.len(), 2);
    for ((_, ended), waited) in ended.iter().zip(&waited) {
        assert!(waited >= ended, "a wait until {waited} for work until {ended}");
        assert!(waited - ended < 5_000, "it ends with the work: {waited}, {ended}");
    }
}

#[test]
fn a_simulated_device_has_all_its_times_however_they_are_asked_for() {
    for how in [DeviceTimes::HostOnly, DeviceTimes::Events { every: 4 }] {
        let file = Recorded::new();
        let gpu = DeviceRuntime::simulated(1).unwrap();
        gpu.trace_with(&file, how).unwrap();
        assert_eq!(gpu.trace_times().unwrap().how, DeviceTimes::Events { every: 1 }, "{how}");
        let buffer = gpu.zeros::<u32>(64).unwrap();
        for value in 0..40 {
            buffer.fill(value).unwrap();
        }
        gpu.synchronize().unwrap();
        drop((buffer, gpu));
        let (mut submissions, mut measured) = (0, 0);
        file.each(|event| {
            if let TraceEvent::Submission(submission) = event {
                submissions += 1;
                measured += u32::from(submission.device.is_some());
            }
        });
        assert!(submissions >= 40 && measured == submissions, "{how}: {measured} of {submissions}");
    }
}

#[test]
fn work_ran_in_the_recording_when_it_ran_on_the_machine() {
    let machine = Machine::new(MachineConfig::seeded(1).device(DeviceConfig::default()));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    let (a, b) = (gpu.zeros::<u32>(1 << 18).unwrap(), gpu.zeros::<u32>(1 << 18).unwrap());
    gpu.synchronize().unwrap();
    let file = Recorded::new();
    gpu.trace(&file).unwrap();
    let began = gpu.driver().clock().now();
    // Streams that are idle when the work comes, streams that are busy, and streams that wait for each other.
    for round in 0..20 {
        a.fill_on(&one, round).unwrap();
        if round % 3 == 0 {
            gpu.synchronize().unwrap();
        }
        b.copy_from(&a).unwrap();
        b.fill_on(&two, round).unwrap();
        a.fill_on(&one, round).unwrap().wait().unwrap();
    }
    gpu.synchronize().unwrap();
    drop((a, b, one, two, gpu));
    let ran: Vec<(u64, u64)> = machine
        .timeline()
        .iter()
        .filter(|span| {
            span.start >= began && (span.label.starts_with("fill") || span.label.starts_with("copy"))
        })
        .map(|span| ((span.start - began).as_nanos() as u64, (span.end - began).as_nanos() as u64))
        .collect();
    let mut recorded = Vec::new();
    file.each(|event| {
        if let TraceEvent::Submission(work) = event {
            recorded.push(work.device.map(|time| (time.begin_ns, time.end_ns)).unwrap());
        }
    });
    recorded.sort_unstable();
    let mut ran = ran;
    ran.sort_unstable();
    assert_eq!((ran.len(), recorded.len()), (80, 80));
    // The recording counts from its own beginning.
    let begin = recorded[0].1 - ran[0].1;
    let recorded: Vec<_> = recorded.iter().map(|(from, to)| (from - begin, to - begin)).collect();
    assert_eq!(recorded, ran);
}
