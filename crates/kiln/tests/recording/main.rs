//! Recordings of runtimes on simulated devices: what is in them, and what is said about them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[macro_use]
#[path = "../../../kiln-cuda/tests/on_fake/machine.rs"]
#[allow(dead_code, reason = "the machines are shared with tests that need more of them")]
mod machine;

#[path = "../skip/mod.rs"]
mod skip;

#[cfg(unix)]
mod closed_files;
mod collectives;
mod costs;
mod counted_allocations;
mod device_times;
mod earlier_work;
mod ends;
mod exits;
mod findings;
mod graphs_on_gpu;
mod launches_on_gpu;
mod lines;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod locked_instruction_counter;
mod locked_instructions;
mod lost_device;
mod machine_clock;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod on_gpu;
#[cfg(unix)]
mod published;
mod ranges;
mod rank_collectives;
mod span_fields;
mod takeover;
mod virtual_time;
mod worker_times;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::error::{ErrorKind, RecordingError};
use kiln::memory::AllocTag;
use kiln::trace::{
    Explainer, Explanation, HostWaitCause, RecordingReader, SubmissionKind, TraceEvent, WaitReason,
    export_perfetto,
};
use kiln::{DeviceRuntime, GpuRef, Stream};

/// A file that goes away with the test.
struct Recorded(PathBuf);

impl Recorded {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("kiln-recording-{}-{number}.kiln", std::process::id())))
    }

    fn reader(&self) -> RecordingReader<BufReader<File>> {
        RecordingReader::new(BufReader::new(File::open(&self.0).unwrap())).unwrap()
    }

    /// Calls something with each event.
    fn each(&self, mut look: impl FnMut(&TraceEvent<'_>)) {
        let mut reader = self.reader();
        while let Some(event) = reader.next_event().unwrap() {
            look(&event);
        }
        assert!(!reader.is_cut());
    }

    fn explained(&self) -> Explanation {
        let mut explainer = Explainer::default();
        self.each(|event| explainer.add(event));
        explainer.finish()
    }
}

impl AsRef<Path> for Recorded {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[track_caller]
fn tagged(gpu: &DeviceRuntime, stream: &Stream, len: usize, tag: &'static str) -> GpuRef<u32> {
    gpu.allocate_tagged(stream, len, AllocTag::new(tag).unwrap()).unwrap()
}

/// One stream writes a block and then another; a second stream reads the first.
fn planted(gpu: &DeviceRuntime) {
    let (producer, consumer) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    let activations = tagged(gpu, &producer, 1 << 10, "activations");
    let unrelated = tagged(gpu, &producer, 1 << 23, "unrelated");
    let copy = tagged(gpu, &consumer, 1 << 10, "copy");
    activations.fill_on(&producer, 7).unwrap();
    unrelated.fill_on(&producer, 1).unwrap();
    copy.copy_from_on(&consumer, &activations).unwrap();
    gpu.synchronize().unwrap();
    assert_eq!(copy.download().unwrap(), [7; 1 << 10]);
}

#[test]
fn a_consumer_that_waits_for_unrelated_work_is_named_with_its_block() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    planted(&gpu);
    drop(gpu);
    let mut waits = Vec::new();
    file.each(|event| {
        if let TraceEvent::StreamWait(wait) = event
            && wait.block.is_some_and(|block| block.tag == "activations")
        {
            waits.push((
                wait.reason,
                wait.covers > wait.writer.number,
                wait.waiter.stream != wait.writer.stream,
            ));
        }
    });
    assert_eq!(waits, [(WaitReason::ReadAfterWrite, true, true)]);
    let explained = file.explained();
    assert!(explained.is_virtual && explained.missing_events == 0, "{explained}");
    let [device] = &*explained.devices else { panic!("{explained}") };
    let stall = device
        .stalls
        .iter()
        .find(|stall| stall.tag == "activations")
        .unwrap_or_else(|| panic!("{explained}"));
    assert_eq!((&*stall.waiter.name, &*stall.writer.name), ("copy", "fill"));
    let line_of = |work: &kiln::trace::WorkName| {
        let (file, line) = work.line.as_ref().unwrap().rsplit_once(':').unwrap();
        assert_eq!(file, file!());
        line.parse::<u32>().unwrap()
    };
    let first = line_of(&stall.writer);
    assert_eq!((line_of(&stall.waiter), stall.block.is_some()), (first + 2, true), "{explained}");
    assert_eq!(stall.unrelated.as_ref().map(line_of), Some(first + 1), "{explained}");
    assert!(stall.unrelated.is_some() && stall.unrelated_ns > 0, "{explained}");
    assert_eq!(
        (device.untimed_submissions, device.memory.iter().map(|tag| tag.left_bytes).sum::<u64>()),
        (0, 0)
    );
}

/// Work of another library, which is prepared and queued by itself.
#[test]
fn work_that_is_prepared_names_the_block_it_waits_for() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let (producer, consumer) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    let weights = tagged(&gpu, &producer, 1 << 10, "weights");
    weights.fill_on(&producer, 7).unwrap();
    gpu.prepare_block_use(&consumer, &[weights.used_as(kiln_driver::Access::Write)])
        .unwrap()
        .finish()
        .unwrap();
    drop((weights, producer, consumer, gpu));
    let mut waits = Vec::new();
    file.each(|event| {
        if let TraceEvent::StreamWait(wait) = event {
            waits.push((wait.reason, wait.block.map(|block| block.tag.to_owned())));
        }
    });
    assert_eq!(waits, [(WaitReason::WriteAfterWrite, Some("weights".to_owned()))]);
}

#[test]
fn waits_of_the_program_have_their_line() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(3).unwrap();
    gpu.trace(&file).unwrap();
    planted(&gpu);
    drop(gpu);
    let mut waits = Vec::new();
    file.each(|event| {
        if let TraceEvent::HostWait(wait) = event {
            waits.push((wait.cause, wait.line.map(|line| line.file.ends_with("main.rs") && line.line > 60)));
        }
    });
    assert_eq!(waits, [(HostWaitCause::Synchronize, Some(true)), (HostWaitCause::Download, Some(true))]);
}

#[test]
fn submissions_are_in_order_and_have_virtual_times() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(5).unwrap();
    gpu.trace(&file).unwrap();
    planted(&gpu);
    let totals = gpu.flush_trace().unwrap();
    assert!(totals.written > 10 && totals.dropped == 0 && totals.failure.is_none(), "{totals:?}");
    drop(gpu);
    let (mut last, mut kinds) = (std::collections::HashMap::new(), Vec::new());
    file.each(|event| {
        if let TraceEvent::Submission(work) = event {
            let before = last.insert(work.stamp.stream, work.stamp.number).unwrap_or_default();
            assert!(work.stamp.number > before);
            let ran = work.device.unwrap();
            assert!(ran.ns() > 0 && ran.end_ns > work.host.begin_ns, "{work:?}");
            kinds.push((work.kind, work.name.to_owned(), work.bytes));
        }
    });
    kinds.sort_by_key(|(_, name, bytes)| (name.clone(), *bytes));
    let expected = [
        (SubmissionKind::Copy, "copy", 4 << 10),
        (SubmissionKind::Copy, "download", 4 << 10),
        (SubmissionKind::Fill, "fill", 4 << 10),
        (SubmissionKind::Fill, "fill", 4 << 23),
    ];
    assert_eq!(kinds, expected.map(|(kind, name, bytes)| (kind, name.to_owned(), bytes)));
}

#[test]
fn reading_times_takes_no_time_of_a_simulated_device() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let buffer = gpu.zeros::<u32>(64).unwrap();
    gpu.synchronize().unwrap();
    gpu.trace(&file).unwrap();
    for _ in 0..2 {
        for value in 0..50 {
            buffer.fill_on(gpu.main_stream(), value).unwrap();
        }
        gpu.synchronize().unwrap();
    }
    drop((buffer, gpu));
    let (mut waited_until, mut submitted) = (Vec::new(), Vec::new());
    file.each(|event| match event {
        TraceEvent::HostWait(wait) => waited_until.push(wait.span.end_ns),
        TraceEvent::Submission(work) => submitted.push((work.stamp.number, work.host.begin_ns)),
        _ => {}
    });
    submitted.sort_unstable();
    // The program does nothing between the wait and the next fill.
    assert_eq!(submitted[50].1, waited_until[0], "{waited_until:?}");
}

#[test]
fn the_trace_has_an_arrow_for_each_wait() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(9).unwrap();
    gpu.trace(&file).unwrap();
    planted(&gpu);
    drop(gpu);
    let summary = export_perfetto(&mut file.reader(), std::io::sink()).unwrap();
    assert!(summary.arrows >= 1 && summary.submissions == 4, "{summary:?}");
}

#[test]
fn the_same_seed_makes_the_same_recording() {
    let bytes = || {
        let file = Recorded::new();
        let gpu = DeviceRuntime::simulated(11).unwrap();
        gpu.trace(&file).unwrap();
        planted(&gpu);
        drop(gpu);
        let mut events = Vec::new();
        file.each(|event| {
            if let TraceEvent::Submission(work) = event {
                events.push(format!("{work:?}"));
            }
        });
        events.sort();
        events
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_runtime_is_recorded_once_and_where_there_is_room_for_a_file() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let error = gpu.trace("/nonexistent/folder/a.kiln").unwrap_err().to_string();
    assert!(error.contains("/nonexistent/folder/a.kiln") && error.contains("No such file"), "{error}");
    assert!(gpu.flush_trace().is_none(), "nothing is recorded");
    let error = gpu.trace("").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Trace(RecordingError::NoName)), "{error}");
    assert!(error.to_string().contains("the name of the recording is empty; name a file"), "{error}");
    if cfg!(unix) {
        let error = gpu.trace("/dev/null").unwrap_err().to_string();
        assert!(error.contains("/dev/null cannot be written: it is a device"), "{error}");
        assert!(gpu.trace_path().is_none());
    }
    gpu.trace(&file).unwrap();
    assert_eq!(gpu.trace_path().as_deref(), Some(file.as_ref()));
    let error = gpu.trace("another.kiln").unwrap_err().to_string();
    let said = format!("the runtime is recorded already, to {}", file.0.display());
    assert!(error.contains(&said) && !Path::new("another.kiln").exists(), "{error}");
    assert_eq!(gpu.upload(&[1_u32, 2]).unwrap().download().unwrap(), [1, 2], "the program goes on");
}
