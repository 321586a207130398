//! The line of the program in what is recorded of each call.

use std::panic::Location;

use kiln::DeviceRuntime;
use kiln::program::{Backend, Bindings, Program};
use kiln::trace::{HostWaitCause, TraceEvent, TraceLine};

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
