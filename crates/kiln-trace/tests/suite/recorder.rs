//! Recordings of a program that runs: lanes, threads, full and slow disks.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kiln_trace::{DeviceRecord, ProgramRecorder, RecordingReader, StartRecord, TraceEvent, interned_name};

use crate::samples::{kernel, span, stamp};

/// A path that no other test has.
pub(crate) fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kiln-trace-{}-{name}.kiln", std::process::id()))
}

pub(crate) fn start() -> TraceEvent<'static> {
    TraceEvent::Start(StartRecord { program: "test", ..StartRecord::default() })
}

/// Submissions, and dropped events, in a file.
fn counted(path: &PathBuf) -> (u64, u64) {
    counted_in(&std::fs::read(path).unwrap())
}

/// The same in the bytes of one.
pub(crate) fn counted_in(bytes: &[u8]) -> (u64, u64) {
    let mut reader = RecordingReader::new(bytes).unwrap();
    let (mut events, mut dropped) = (0, 0);
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            TraceEvent::Submission(_) => events += 1,
            TraceEvent::Dropped(record) => dropped += record.events,
            _ => {}
        }
    }
    (events, dropped)
}

#[test]
fn events_of_many_threads_are_written_or_counted_as_dropped() {
    let path = path("threads");
    let recorder = ProgramRecorder::create(&path, &[start()]).unwrap();
    std::thread::scope(|scope| {
        for stream in 0..4 {
            let lane = recorder.lane();
            scope.spawn(move || {
                for number in 1..=50_000 {
                    lane.push(kernel("k", stamp(stream, number), 1, number, span(number, number + 1)));
                }
            });
        }
    });
    drop(recorder);
    let (events, dropped) = counted(&path);
    assert_eq!(events + dropped, 200_000);
    assert!(events >= 4 * 8192, "{events} written");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_was_pushed_is_in_the_file_after_a_flush_though_the_program_goes_on() {
    let path = path("flush");
    let recorder = ProgramRecorder::create(&path, &[start()]).unwrap();
    let lane = recorder.lane();
    lane.push(kernel("k", stamp(0, 1), 1, 1, span(1, 2)));
    assert!(recorder.flush(Duration::from_secs(20)));
    assert_eq!(counted(&path), (1, 0));
    lane.push(kernel("k", stamp(0, 2), 1, 2, span(2, 3)));
    let began = Instant::now();
    while counted(&path).0 < 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "it is written without being asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(recorder.totals().written, 3);
    drop(recorder);
    lane.push(kernel("k", stamp(0, 3), 1, 3, span(3, 4)));
    std::fs::remove_file(path).unwrap();
}

#[cfg(unix)]
#[test]
fn a_disk_that_hangs_never_stops_the_program() {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    // A pipe that no one reads takes 64 KiB and then hangs, as a disk that is gone does.
    let (mut reader, writer) = io::pipe().unwrap();
    let recorder = ProgramRecorder::into_file(File::from(OwnedFd::from(writer)), &[start()]).unwrap();
    let lane = recorder.lane();
    let began = Instant::now();
    for number in 1..=100_000 {
        lane.push(kernel("k", stamp(0, number), 1, number, span(number, number + 1)));
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!recorder.flush(Duration::from_millis(100)), "it hangs");
    // Now the pipe is read, and the end comes with a count of what was dropped.
    let read = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    drop(recorder);
    drop(lane);
    let bytes = read.join().unwrap();
    let (events, dropped) = counted_in(&bytes);
    assert_eq!(events + dropped, 100_000);
    assert!(dropped > 0);
}

#[test]
fn a_name_is_kept_once() {
    let (first, second) = (interned_name("gemm"), interned_name(&String::from("gemm")));
    assert!(std::ptr::eq(first, second));
}

#[test]
fn a_file_has_one_writer_at_a_time() {
    let path = path("one-writer");
    let first = ProgramRecorder::create(&path, &[start()]).unwrap();
    first.lane().push(kernel("k", stamp(0, 1), 1, 1, span(1, 2)));
    let refused = ProgramRecorder::create(&path, &[start()]).map(drop).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
    assert!(first.finish(5, Duration::from_secs(20)));
    assert_eq!(counted(&path), (1, 0), "the second changed nothing");
    let second = ProgramRecorder::create(&path, &[start()]).unwrap();
    drop((first, second));
    assert_eq!(counted(&path), (0, 0), "a file that is not written is overwritten");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_end_is_marked_once_for_each_time_it_was_reached() {
    let path = path("end");
    let ends = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let mut reader = RecordingReader::new(&bytes[..]).unwrap();
        let mut ends = 0;
        while let Some(event) = reader.next_event().unwrap() {
            ends += u32::from(matches!(event, TraceEvent::End(_)));
        }
        (ends, reader.has_end_mark())
    };
    let recorder = ProgramRecorder::create(&path, &[start()]).unwrap();
    let lane = recorder.lane();
    assert!(recorder.flush(Duration::from_secs(20)));
    assert_eq!(ends(&path), (0, false));
    assert!(recorder.mark_end(7, Duration::from_secs(20)));
    assert_eq!(ends(&path), (1, true));
    lane.push(TraceEvent::Device(DeviceRecord { device: 1, name: "another", ..DeviceRecord::default() }));
    assert!(recorder.flush(Duration::from_secs(20)));
    assert_eq!(ends(&path), (1, false), "a device that began is not ended");
    drop(recorder);
    assert_eq!(ends(&path), (2, true));
    std::fs::remove_file(path).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_does_not_hang() {
    let pipe = path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (tell, told) = std::sync::mpsc::channel();
    let place = pipe.clone();
    std::thread::spawn(move || tell.send(ProgramRecorder::create(&place, &[start()]).map(|_| ())));
    let begun = told.recv_timeout(Duration::from_secs(20)).expect("it hangs");
    assert!(begun.is_err_and(|error| error.to_string().contains("it is a pipe")));
    std::fs::remove_file(pipe).unwrap();
}

/// The file behind an open one is not emptied.
#[cfg(target_os = "linux")]
#[test]
fn an_open_file_by_its_number_is_refused() {
    use std::os::fd::AsRawFd;
    let path = path("by-number");
    std::fs::write(&path, "what was there").unwrap();
    let open = std::fs::File::options().append(true).open(&path).unwrap();
    for name in [format!("/proc/self/fd/{}", open.as_raw_fd()), format!("/dev/fd/{}", open.as_raw_fd())] {
        let begun = ProgramRecorder::create(name.as_ref(), &[start()]).map(drop);
        assert!(begun.is_err_and(|error| error.to_string().contains("it is an open file of a process")));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "what was there");
    std::fs::remove_file(path).unwrap();
}

/// A process that was forked has the lock of a recording until it runs another program.
#[test]
#[cfg(unix)]
fn a_lock_that_a_child_has_for_a_moment_is_waited_for_and_one_that_stays_is_told() {
    let path = path("child-lock");
    let locked = std::fs::File::create(&path).unwrap();
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut child = std::process::Command::new("sleep").arg("0.05").stdin(locked).spawn().unwrap();
    drop(ProgramRecorder::create(&path, &[start()]).unwrap());
    child.wait().unwrap();
    let held = ProgramRecorder::create(&path, &[start()]).unwrap();
    let began = Instant::now();
    let error = ProgramRecorder::create(&path, &[start()]).err();
    assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::ResourceBusy));
    assert!(began.elapsed() < Duration::from_secs(20), "not for ever");
    drop(held);
    std::fs::remove_file(path).unwrap();
}
