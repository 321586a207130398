//! The line of the program in what is recorded of each call.

use std::panic::Location;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceGroup, Reduction};
use kiln::program::{Backend, Bindings, Program};
use kiln::sim::{DeviceConfig, Links, Machine, MachineConfig};
use kiln::trace::{HostWaitCause, TraceEvent, TraceLine, WaitReason};

use crate::Recorded;

/// Does something on one line, and notes which that is.
#[track_caller]
fn at<R>(lines: &mut Vec<u32>, work: R) -> R {
    lines.push(Location::caller().line());
    work
}

fn line_of(line: Option<TraceLine<'_>>) -> Option<u32> {
    line.filter(|line| line.file == file!()).map(|line| line.line)
}

#[test]
fn copies_replays_and_waits_of_every_kind_have_the_line_that_asked_for_them() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (stream, buffer) = (gpu.stream().unwrap(), gpu.zeros::<u32>(64).unwrap());
    let mut pinned = gpu.pinned::<u32>(64).unwrap();
    let mut builder = gpu.graph();
    builder.fill(&buffer, 3).unwrap();
    let output = builder.download(&buffer).unwrap();
    let mut graph = builder.build().unwrap();
    gpu.synchronize().unwrap();
    gpu.trace(&file).unwrap();
    let (mut lines, mut waits) = (Vec::new(), Vec::new());
    at(&mut lines, pinned.copy_to(&buffer)).unwrap();
    at(&mut lines, pinned.copy_to_on(&stream, &buffer)).unwrap();
    at(&mut lines, pinned.copy_from(&buffer)).unwrap();
    at(&mut lines, pinned.copy_from_on(&stream, &buffer)).unwrap();
    assert_eq!(at(&mut waits, pinned.read()).unwrap(), [0; 64]);
    at(&mut lines, pinned.copy_to(&buffer)).unwrap();
    at(&mut waits, pinned.write()).unwrap()[0] = 1;
    drop(at(&mut lines, buffer.download_async()).unwrap());
    drop(at(&mut lines, buffer.download_async_on(&stream)).unwrap());
    at(&mut lines, graph.replay()).unwrap();
    at(&mut lines, graph.replay_on(&stream)).unwrap();
    let timed = at(&mut lines, graph.replay_timed()).unwrap();
    at(&mut waits, timed.wait()).unwrap();
    at(&mut lines, graph.replay()).unwrap();
    assert_eq!(at(&mut waits, graph.output(&output)).unwrap(), [3; 64]);
    gpu.flush_trace();
    drop((timed, graph, buffer, pinned, stream, gpu));
    let (mut recorded, mut waited) = (Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::Submission(work) => recorded.push((line_of(work.line), work.name.to_owned())),
        TraceEvent::HostWait(wait) => waited.push((line_of(wait.line), wait.cause)),
        _ => {}
    });
    let mut missing: Vec<u32> = lines.clone();
    for (line, name) in &recorded {
        let at = missing.iter().position(|known| Some(*known) == *line);
        missing.remove(at.unwrap_or_else(|| panic!("{name} has the line {line:?}: {lines:?}, {recorded:?}")));
    }
    assert!(missing.is_empty(), "{missing:?} of {lines:?}: {recorded:?}");
    let causes =
        [HostWaitCause::Download, HostWaitCause::Memory, HostWaitCause::Ticket, HostWaitCause::Download];
    let expected: Vec<_> = waits.into_iter().map(Some).zip(causes).collect();
    assert_eq!(waited, expected);
}

#[test]
fn an_order_that_the_program_asks_for_has_its_line_and_no_other_reason() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let (producer, consumer) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    let (large, small) =
        (gpu.allocate_on::<u32>(&producer, 1 << 20).unwrap(), gpu.allocate_on::<u32>(&consumer, 8).unwrap());
    large.fill_on(&producer, 7).unwrap();
    let mut lines = Vec::new();
    // The consumer uses nothing of the producer's.
    at(&mut lines, consumer.wait_for(&producer.ticket().unwrap())).unwrap();
    // It is in order already, so that this is no wait.
    at(&mut lines, consumer.wait_for(&producer.ticket().unwrap())).unwrap();
    small.fill_on(&consumer, 1).unwrap();
    // A wait of the order itself, behind one that was asked for.
    small.fill_on(&producer, 2).unwrap();
    gpu.synchronize().unwrap();
    drop((large, small, producer, consumer, gpu));
    let mut waits = Vec::new();
    file.each(|event| {
        if let TraceEvent::StreamWait(wait) = event {
            waits.push((wait.reason, line_of(wait.line), wait.block.is_some()));
        }
    });
    waits.sort_by_key(|(_, line, _)| line.is_none());
    let expected = [(WaitReason::Asked, Some(lines[0]), false), (WaitReason::WriteAfterWrite, None, true)];
    assert_eq!(waits, expected);
    let explained = file.explained();
    let [asked] = &*explained.devices[0].asked_stalls else { panic!("{explained}") };
    assert_eq!(asked.line, Some(format!("{}:{}", file!(), lines[0])));
    let text = explained.to_string();
    let said = format!("because the program asked for that at {}:{}\n", file!(), lines[0]);
    assert!(text.contains("  Waits that were the program's own doing:\n") && text.contains(&said), "{text}");
}

#[test]
fn every_download_is_told_as_one() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (stream, buffer) = (gpu.stream().unwrap(), gpu.zeros::<u32>(64).unwrap());
    gpu.synchronize().unwrap();
    gpu.trace(&file).unwrap();
    let (mut lines, mut into) = (Vec::new(), [0; 64]);
    at(&mut lines, buffer.download()).unwrap();
    at(&mut lines, buffer.download_into(&mut into)).unwrap();
    at(&mut lines, buffer.download_into_on(&stream, &mut into)).unwrap();
    drop((buffer, stream, gpu));
    let mut waited = Vec::new();
    file.each(|event| {
        if let TraceEvent::HostWait(wait) = event {
            waited.push((line_of(wait.line), wait.cause));
        }
    });
    let expected: Vec<_> = lines.into_iter().map(|line| (Some(line), HostWaitCause::Download)).collect();
    assert_eq!(waited, expected);
}

#[test]
fn programs_and_sequences_have_their_kernels_and_the_line_that_asked_for_them() {
    const AXPBY: &str = "kernel axpby(in x: f32[], inout y: f32[like x], a: f32, b: f32) block(128) over(y) {
        let i: u64 = global.x;
        y[i] = fma(a, x[i], b * y[i]);
    }";
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let backend = Backend::over(gpu.clone());
    let [axpby, scale] = [AXPBY.to_owned(), AXPBY.replace("axpby", "scale")]
        .map(|text| backend.compile(&Program::parse(&text).unwrap()).unwrap());
    let host = vec![1.0_f32; 100];
    let (x, y) = (gpu.upload(&host).unwrap(), gpu.upload(&host).unwrap());
    gpu.synchronize().unwrap();
    gpu.trace(&file).unwrap();
    let scalars = || Bindings::new().scalar("a", 2.0_f32).scalar("b", 1.0_f32);
    let (mut lines, mut result, mut out) = (Vec::new(), host.clone(), Vec::new());
    at(&mut lines, axpby.dispatch(scalars().input("x", &host).in_out("y", &mut result))).unwrap();
    let mut sequence = backend.sequence();
    for pipeline in [&scale, &axpby, &scale] {
        sequence.step(pipeline, scalars().resident("x", &x).resident("y", &y)).unwrap();
    }
    sequence.read(&y, &mut out).unwrap();
    at(&mut lines, sequence.run()).unwrap();
    assert_eq!((result[0], out[0]), (3.0, 7.0));
    drop((x, y, axpby, scale, backend, gpu));
    let (mut recorded, mut waited) = (Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::Submission(work) => recorded.push((line_of(work.line), work.name.to_owned())),
        TraceEvent::HostWait(wait) => waited.push(line_of(wait.line)),
        _ => {}
    });
    let names = ["axpby", "scale, axpby"].map(str::to_owned);
    let lines: Vec<_> = lines.into_iter().map(Some).collect();
    assert_eq!(recorded, lines.iter().copied().zip(names).collect::<Vec<_>>());
    waited.dedup();
    assert_eq!(waited, lines);
}

/// Two devices with or without links between them, recorded to two files from here on.
fn recorded_group(links: bool) -> ([Recorded; 2], DeviceGroup) {
    let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    let machine = Machine::new(if links { config } else { config.links(Links::none()) });
    let devices = [machine.device(0).unwrap(), machine.device(1).unwrap()];
    let group = DeviceGroup::over(devices, &Default::default()).unwrap();
    let files = [Recorded::new(), Recorded::new()];
    for (file, runtime) in files.iter().zip(group.runtimes()) {
        runtime.trace(file).unwrap();
    }
    (files, group)
}

/// Every submission, wait and allocation of a file has a line of this one.
fn all_of_this_file(file: &Recorded) -> usize {
    let mut count = 0;
    file.each(|event| {
        let line = match event {
            TraceEvent::Submission(work) => work.line,
            TraceEvent::HostWait(wait) => wait.line,
            TraceEvent::Allocation(block) => block.line,
            _ => return,
        };
        count += 1;
        assert!(line.is_none_or(|line| line.file == file!()), "{event:?}");
    });
    count
}

#[test]
fn calls_of_a_group_have_the_line_that_asked_for_them() {
    for links in [true, false] {
        let (files, group) = recorded_group(links);
        let [one, other] = [0, 1].map(|index| group.runtime(index).unwrap());
        assert_eq!(group.peers().access(0, 1).unwrap().is_direct(), links);
        let (x, y) = (one.upload(&[3_u32; 64]).unwrap(), other.zeros::<u32>(64).unwrap());
        group.copy(&x, &y).unwrap().wait().unwrap();
        assert!(group.copy(&y, &x).unwrap().wait_within(Duration::from_secs(9)).unwrap());
        let shards = group.upload(&[7_u32; 64]).unwrap();
        group.scatter(&x, &shards).unwrap().wait().unwrap();
        group.gather(&shards, &y).unwrap().wait().unwrap();
        shards.upload(&[5; 64]).unwrap().wait().unwrap();
        assert_eq!(shards.download().unwrap(), [5; 64]);
        group.allocate_by_weight::<u32>(64, &[1, 3]).unwrap();
        let ranks = group.communicators(&Default::default()).unwrap();
        for (rank, buffer) in ranks.iter().zip([&x, &y]) {
            rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
        }
        let alone = DeviceCommunicator::alone(one).unwrap();
        alone.all_reduce_in_place(&x, Reduction::Sum).submit().unwrap();
        one.zeros::<u32>(64).unwrap().fill(1).unwrap();
        other.zeros::<u32>(64).unwrap().fill(1).unwrap();
        group.synchronize().unwrap();
        drop((x, y, shards, alone, ranks, group));
        for file in &files {
            assert!(all_of_this_file(file) > 10);
        }
    }
}
