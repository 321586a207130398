//! Lost devices in recordings: a fault, the steps of a takeover, and the words about them.

use std::time::Duration;

use kiln::recovery::{DeviceSpec, Isolation, Phase, Process, Status, WorkerEntry};
use kiln::trace::{TakeoverPhase, TraceEvent, export_perfetto};
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::Recorded;

/// The worker process.
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}

#[test]
fn a_killed_worker_is_a_fault_and_a_takeover() {
    let file = Recorded::new();
    let process = Process { entry: WorkerEntry::Test("takeover::worker".into()), ..Process::default() };
    let config = RuntimeConfig { isolation: Isolation::Process(process), ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap();
    gpu.trace(&file).unwrap();
    let kept = gpu.upload(&[1_u32, 2, 3]).unwrap();
    gpu.synchronize().unwrap();
    let process = gpu.isolated_device().unwrap().worker_process();
    let first = process.id();
    gpu.isolated_device().unwrap().kill_worker();
    let ready = |status: &Status| status.generation.0 > 0 && status.phase() == Phase::Ready;
    assert!(ready(&gpu.watch().wait_until(ready, Some(Duration::from_secs(60)))));
    assert_eq!(kept.download().unwrap(), [1, 2, 3]);
    let second = process.id();
    drop(kept);
    drop(gpu);
    let (mut steps, mut faults, mut workers) = (Vec::new(), Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::Worker(worker) => workers.push((worker.process, worker.name.to_owned(), worker.time_ns)),
        TraceEvent::Takeover(step) => steps.push((step.phase, step.span)),
        TraceEvent::Fault(fault) => faults.push(fault.message.to_owned()),
        _ => {}
    });
    assert_eq!(faults.len(), 1, "the loss, and not every call that was told: {faults:?}");
    assert_eq!((steps[0].0, steps.len() >= 2), (TakeoverPhase::Lost, true), "{steps:?}");
    assert!(
        steps.iter().any(|(phase, span)| *phase == TakeoverPhase::Rebuilding && span.ns() > 0),
        "{steps:?}"
    );
    for pair in steps.windows(2) {
        assert!(pair[0].1.end_ns <= pair[1].1.begin_ns, "one after the other: {steps:?}");
    }
    // Both processes that had the device, each from when it had it.
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let [(one, name, began), (other, _, later)] = &workers[..] else { panic!("two workers: {workers:?}") };
    assert_eq!((*one, *other, &**name), (first, second, program));
    assert!(first != second && first != std::process::id(), "{workers:?}");
    let (lost, ready) = (steps[0].1.begin_ns, steps.last().unwrap().1.end_ns);
    assert!(*began < lost && *later == ready, "{workers:?} {steps:?}");
    let explained = file.explained();
    assert!(!explained.is_virtual && explained.is_whole, "{explained}");
    let text = explained.to_string();
    assert!(text.contains("The device was lost and brought back once, "), "{text}");
    assert!(!text.contains("virtual") && text.contains("when they ran was not measured"), "{text}");
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    for word in ["takeover", "rebuilding", "faults", faults[0].as_str(), program] {
        assert!(trace.windows(word.len()).any(|bytes| bytes == word.as_bytes()), "{word}");
    }
}

/// Writes where no memory is.
const FAR: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry far(.param .u64 y) {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    st.global.u32 [%rd1+1099511627776], 1;
    ret;
}
";

#[test]
fn a_fault_is_recorded_once_also_where_a_later_call_tells_of_it() {
    let file = Recorded::new();
    let process = Process { entry: WorkerEntry::Test("takeover::worker".into()), ..Process::default() };
    let config = RuntimeConfig { isolation: Isolation::Process(process), ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap();
    gpu.trace(&file).unwrap();
    let y = gpu.zeros::<u32>(1).unwrap();
    let kernel = gpu.kernel(FAR, "far").unwrap();
    // SAFETY: the simulator checks every access; the fault is what this is about.
    let ticket = unsafe { gpu.launch(&kernel).grid(1).block(1).write(&y).submit().unwrap() };
    ticket.wait().unwrap_err();
    let ready = |status: &Status| status.generation.0 > 0 && status.phase() == Phase::Ready;
    gpu.watch().wait_until(ready, Some(Duration::from_secs(60)));
    // Either may tell of the fault again.
    let _ = gpu.synchronize();
    let _ = y.download();
    let report = gpu.post_mortems()[0].to_string();
    drop((y, gpu));
    let (mut faults, mut lines) = (Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::Fault(fault) => faults.push(fault.message.to_owned()),
        TraceEvent::PostMortem(line) => lines.push(line.line.to_owned()),
        _ => {}
    });
    assert_eq!(faults.len(), 1, "{faults:#?}");
    // The report of the takeover is in the recording, word by word, and is told with the command that repeats the run.
    assert_eq!(lines, report.lines().collect::<Vec<_>>());
    assert!(lines[0].starts_with("worker lost: ") && report.contains("launch far"), "{report}");
    let explained = file.explained();
    assert_eq!(explained.post_mortems[0].lines, lines);
    let text = explained.to_string();
    let (_, told) = text.split_once("\nPost-mortem of device 0:\n").unwrap_or_else(|| panic!("{text}"));
    assert!(told.contains(&format!("  {}\n", lines[1])), "{text}");
    let repeat = explained.repeat_line().unwrap();
    assert!(told.contains(&repeat) && repeat.contains("recording"), "{repeat}");
}
