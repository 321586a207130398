//! Recordings of a program that runs: lanes, threads, full and slow disks.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kiln_trace::{
    DeviceRecord, ProgramRecorder, RecordingFile, RecordingReader, StartRecord, TraceEvent, interned_name,
};

use crate::samples::{kernel, span, stamp};

/// A path that no other test has.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kiln-trace-{}-{name}.kiln", std::process::id()))
}

fn start() -> TraceEvent<'static> {
    TraceEvent::Start(StartRecord { program: "test", ..StartRecord::default() })
}

/// Submissions, and dropped events, in a file.
fn counted(path: &PathBuf) -> (u64, u64) {
    counted_in(&std::fs::read(path).unwrap())
}

/// The same in the bytes of one.
fn counted_in(bytes: &[u8]) -> (u64, u64) {
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

/// A disk with so much room.
#[derive(Clone, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicUsize>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.bytes.lock().unwrap();
        let taken = bytes.len().min(self.room.load(Ordering::SeqCst).saturating_sub(written.len()));
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        written.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordingFile for Disk {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().truncate(bytes as usize);
        Ok(())
    }
}

#[test]
fn a_full_disk_drops_events_with_a_count_and_is_written_again_when_it_has_room() {
    let disk = Disk::default();
    assert!(ProgramRecorder::into_file(disk.clone(), &[start()]).is_err(), "no room for the first bytes");
    disk.room.store(1000, Ordering::SeqCst);
    let recorder = ProgramRecorder::into_file(disk.clone(), &[start()]).unwrap();
    let lane = recorder.lane();
    let push = |numbers: std::ops::RangeInclusive<u64>| {
        numbers
            .for_each(|number| lane.push(kernel("k", stamp(0, number), 1, number, span(number, number + 1))));
        assert!(recorder.flush(Duration::from_secs(20)));
    };
    push(1..=10);
    push(11..=1010);
    let totals = recorder.totals();
    assert_eq!((totals.written, totals.dropped), (11, 1000));
    assert!(totals.failure.is_some_and(|failure| !failure.is_empty()));
    assert_eq!(counted_in(&disk.bytes.lock().unwrap()), (10, 0), "readable while the disk is full");
    disk.room.store(1 << 20, Ordering::SeqCst);
    push(1011..=1020);
    drop(recorder);
    assert_eq!(counted_in(&disk.bytes.lock().unwrap()), (20, 1000));
    // The recording says that it was the disk, and where.
    let bytes = disk.bytes.lock().unwrap().clone();
    let mut reader = RecordingReader::new(io::Cursor::new(bytes)).unwrap();
    let mut explainer = kiln_trace::Explainer::default();
    let mut at_byte = 0;
    while let Some(event) = reader.next_event().unwrap() {
        if let TraceEvent::Dropped(dropped) = &event {
            assert_eq!(dropped.cause, kiln_trace::DropCause::DiskFull);
            at_byte = dropped.at_byte;
        }
        explainer.add(&event);
    }
    assert!((100..1000).contains(&at_byte), "{at_byte}");
    let said = explainer.finish().to_string();
    let wanted = format!("1000 events are missing: the disk was full when the file had {at_byte} bytes, ");
    assert!(said.contains(&wanted) && said.contains("after the beginning"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_recording_that_cannot_begin_leaves_no_empty_file() {
    // A limit on the size of files is for a whole process.
    if std::env::var_os("KILN_NO_ROOM").is_some() {
        let path = PathBuf::from(std::env::var_os("KILN_NO_ROOM").unwrap());
        assert!(ProgramRecorder::create(&path, &[start()]).is_err());
        return;
    }
    let path = path("no-room");
    let test = "a_recording_that_cannot_begin_leaves_no_empty_file";
    let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {test} --test-threads 1 > /dev/null");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap()).env("KILN_NO_ROOM", &path);
    assert!(shell.stderr(std::process::Stdio::null()).status().unwrap().success());
    assert!(!path.exists(), "it is taken for a recording of nothing");
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
    lane.push(TraceEvent::Device(DeviceRecord { device: 1, name: "another" }));
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
