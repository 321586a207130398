//! Disks that take no more, and limits on the size of a file: what is missing is counted, with the reason and the time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kiln_trace::{
    DropCause, DroppedRecord, Explainer, HostWaitRecord, ProgramRecorder, RecordingFile, RecordingReader,
    TraceEvent,
};

use crate::recorder::{counted_in, path, start};
use crate::samples::{kernel, span, stamp};

const LIMIT: Duration = Duration::from_secs(20);

/// A disk with so much room.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicUsize>,
    /// What it says when there is no room.
    says: io::ErrorKind,
    /// Whether it takes anything now, or has its writer wait.
    is_open: Arc<(Mutex<bool>, Condvar)>,
}

impl Disk {
    fn new(room: usize) -> Self {
        Self {
            bytes: Arc::default(),
            room: Arc::new(AtomicUsize::new(room)),
            says: io::ErrorKind::StorageFull,
            is_open: Arc::new((Mutex::new(true), Condvar::new())),
        }
    }

    fn saying(self, says: io::ErrorKind) -> Self {
        Self { says, ..self }
    }

    fn room(&self, bytes: usize) {
        self.room.store(bytes, Ordering::SeqCst);
    }

    fn open(&self, is_open: bool) {
        *self.is_open.0.lock().unwrap() = is_open;
        self.is_open.1.notify_all();
    }

    fn told(&self) -> Told {
        Told::of(&self.bytes.lock().unwrap())
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut is_open = self.is_open.0.lock().unwrap();
        while !*is_open {
            is_open = self.is_open.1.wait(is_open).unwrap();
        }
        let mut written = self.bytes.lock().unwrap();
        let taken = bytes.len().min(self.room.load(Ordering::SeqCst).saturating_sub(written.len()));
        if taken == 0 {
            return Err(self.says.into());
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

/// What a file says.
struct Told {
    /// Events but for those that tell of missing ones, and the end.
    events: u64,
    missing: BTreeMap<DropCause, DroppedRecord>,
    has_end: bool,
    text: String,
}

impl Told {
    fn of(bytes: &[u8]) -> Self {
        let mut reader = RecordingReader::new(bytes).unwrap();
        let (mut events, mut missing, mut explainer) = (0, BTreeMap::new(), Explainer::default());
        while let Some(event) = reader.next_event().unwrap() {
            match event {
                TraceEvent::Dropped(dropped) => {
                    let known: &mut DroppedRecord =
                        missing.entry(dropped.cause).or_insert(DroppedRecord { events: 0, ..dropped });
                    known.events += dropped.events;
                }
                TraceEvent::End(_) => {}
                _ => events += 1,
            }
            explainer.add(&event);
        }
        assert!(!reader.is_cut());
        Self { events, missing, has_end: reader.has_end_mark(), text: explainer.finish().to_string() }
    }

    fn missing(&self) -> u64 {
        self.missing.values().map(|dropped| dropped.events).sum()
    }
}

/// Event `number` of a lane, a microsecond after the one before.
fn event(number: u64) -> TraceEvent<'static> {
    let time = number * 1000;
    match number % 3 {
        // An event of no stream, as the last one often is.
        1 => TraceEvent::HostWait(HostWaitRecord { span: span(time - 1, time), ..HostWaitRecord::default() }),
        _ => kernel("k", stamp(0, number), 1, time, span(time, time + 1)),
    }
}

#[test]
fn a_full_disk_drops_events_with_a_count_and_is_written_again_when_it_has_room() {
    let disk = Disk::new(0);
    assert!(ProgramRecorder::into_file(disk.clone(), &[start()]).is_err(), "no room for the first bytes");
    disk.room(1000);
    let recorder = ProgramRecorder::into_file(disk.clone(), &[start()]).unwrap();
    let lane = recorder.lane();
    let push = |numbers: std::ops::RangeInclusive<u64>| {
        numbers
            .for_each(|number| lane.push(kernel("k", stamp(0, number), 1, number, span(number, number + 1))));
        assert!(recorder.flush(LIMIT));
    };
    push(1..=10);
    push(11..=1010);
    let totals = recorder.totals();
    assert_eq!((totals.written, totals.dropped), (11, 1000));
    assert!(totals.failure.is_some_and(|failure| !failure.to_string().is_empty()));
    assert_eq!(counted_in(&disk.bytes.lock().unwrap()), (10, 0), "readable while the disk is full");
    disk.room(1 << 20);
    push(1011..=1020);
    drop(recorder);
    assert_eq!(counted_in(&disk.bytes.lock().unwrap()), (20, 1000));
    // The recording says that it was the disk, and where.
    let told = disk.told();
    let at_byte = told.missing[&DropCause::DiskFull].at_byte;
    assert!((100..1000).contains(&at_byte), "{at_byte}");
    let wanted = format!(
        "1000 events are missing: the disk was full when the file had {at_byte} bytes, 1.0 us after the beginning."
    );
    assert!(told.text.contains(&wanted), "{}", told.text);
}

/// A disk that has no room by the end, either: whatever is left of it, the file says how much is missing, why and since when.
#[test]
fn a_disk_that_stays_full_has_a_file_that_says_what_is_missing() {
    for room in 200..1100 {
        let disk = Disk::new(room);
        let recorder = ProgramRecorder::into_file(disk.clone(), &[start()]).unwrap();
        let lane = recorder.lane();
        let mut refused_ns = None;
        for part in 0..12 {
            (1..=20).for_each(|at| lane.push(event(part * 20 + at)));
            assert!(recorder.flush(LIMIT));
            if recorder.totals().dropped > 0 {
                refused_ns.get_or_insert((part + 1) * 20_000);
            }
        }
        let totals = recorder.totals();
        assert_eq!(totals.written + totals.dropped, 241, "room {room}");
        assert!(recorder.finish(300_000, LIMIT));
        let (told, totals) = (disk.told(), recorder.totals());
        assert_eq!((told.events, told.missing()), (totals.written, totals.dropped), "room {room}");
        assert_eq!(told.events + told.missing(), 241, "room {room}");
        assert!(told.has_end, "room {room}");
        let dropped = told.missing[&DropCause::DiskFull];
        assert_eq!(Some(dropped.time_ns), refused_ns, "room {room}: that of the first that found no room");
        assert!(told.text.contains("the disk was full") && !told.text.contains(", 0 ns"), "{}", told.text);
    }
}

/// Events that came too fast while the disk hung are not those that it refused.
#[test]
fn each_reason_has_its_count() {
    let disk = Disk::new(1 << 20);
    let recorder = ProgramRecorder::into_file(disk.clone(), &[start()]).unwrap();
    let lane = recorder.lane();
    assert!(recorder.flush(LIMIT));
    disk.open(false);
    lane.push(event(1));
    assert!(!recorder.flush(Duration::from_millis(200)), "it hangs in this write");
    // What the lane has room for, and 500 more.
    (2..=8193 + 500).for_each(|number| lane.push(event(number)));
    // The write that hangs ends well, and the next one finds no room.
    disk.room(disk.bytes.lock().unwrap().len() + 200);
    disk.open(true);
    assert!(recorder.flush(LIMIT));
    disk.room(1 << 24);
    lane.push(event(9000));
    drop(recorder);
    let told = disk.told();
    let counts: Vec<_> = told.missing.iter().map(|(cause, dropped)| (*cause, dropped.events)).collect();
    assert_eq!(counts, [(DropCause::TooFast, 500), (DropCause::DiskFull, 8192)]);
    assert_eq!((told.events, told.has_end), (3, true));
    let said = "8692 events are missing: ";
    assert!(told.text.contains(said), "{}", told.text);
}

#[test]
fn the_reason_is_that_of_the_operating_system() {
    for (kind, cause, words) in [
        (io::ErrorKind::StorageFull, DropCause::DiskFull, "the disk was full"),
        (io::ErrorKind::QuotaExceeded, DropCause::QuotaExceeded, "the quota of the disk was used up"),
        (io::ErrorKind::FileTooLarge, DropCause::FileTooLarge, "the file reached the largest size"),
        (io::ErrorKind::Other, DropCause::DiskRefused, "the disk refused them"),
    ] {
        let disk = Disk::new(400).saying(kind);
        let recorder = ProgramRecorder::into_file(disk.clone(), &[start()]).unwrap();
        let lane = recorder.lane();
        (1..=100).for_each(|number| lane.push(event(number)));
        drop(recorder);
        let told = disk.told();
        assert_eq!((told.missing.keys().collect::<Vec<_>>(), told.has_end), (vec![&cause], true));
        assert!(told.text.contains(words), "{}", told.text);
    }
}

/// Says what a child does.
#[cfg(target_os = "linux")]
const ROLE: &str = "KILN_TEST_FILE_LIMIT";

/// A child of this test's binary with a limit on the size of a file, of some KiB.
#[cfg(target_os = "linux")]
fn limited(test: &str, role: &str, path: &std::path::Path) -> std::process::ExitStatus {
    let script = format!("ulimit -f 8; exec \"$0\" full_disk::{test} --exact --test-threads 1 > /dev/null");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    shell.env(ROLE, format!("{role} {}", path.display())).stderr(std::process::Stdio::null());
    shell.status().unwrap()
}

/// What a child does: its recording reaches the limit, and perhaps so does another file.
#[cfg(target_os = "linux")]
fn child(plan: &str) {
    let (role, path) = plan.split_once(' ').unwrap();
    let recorder = ProgramRecorder::create(&PathBuf::from(path), &[start()]).unwrap();
    let lane = recorder.lane();
    for part in 0..10 {
        (1..=200).for_each(|at| lane.push(event(part * 200 + at)));
        assert!(recorder.flush(LIMIT));
    }
    let failure = recorder.totals().failure.unwrap().to_string();
    assert!(failure.contains("File too large"), "{failure}");
    drop(recorder);
    if role == "writes" {
        // The signal is the program's own affair again.
        let _ = std::fs::write(format!("{path}.own"), vec![0; 1 << 20]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_a_file_ends_no_program_and_is_the_reason() {
    if let Ok(plan) = std::env::var(ROLE) {
        return child(&plan);
    }
    let test = "a_limit_on_the_size_of_a_file_ends_no_program_and_is_the_reason";
    let path = path("limit");
    let status = limited(test, "records", &path);
    assert!(status.success(), "{status}");
    let told = Told::of(&std::fs::read(&path).unwrap());
    assert_eq!((told.events + told.missing(), told.has_end), (2001, true));
    let dropped = told.missing[&DropCause::FileTooLarge];
    assert!(dropped.time_ns > 0 && dropped.at_byte > 0, "{dropped:?}");
    // What the program does with the signal is not changed: another write ends it.
    let status = limited(test, "writes", &path);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(25), "{status}");
    std::fs::remove_file(path.with_extension("kiln.own")).unwrap();
    std::fs::remove_file(path).unwrap();
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
    let test = "full_disk::a_recording_that_cannot_begin_leaves_no_empty_file";
    let script = format!("ulimit -f 0; exec \"$0\" {test} --exact --test-threads 1 > /dev/null");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap()).env("KILN_NO_ROOM", &path);
    assert!(shell.stderr(std::process::Stdio::null()).status().unwrap().success());
    assert!(!path.exists(), "it is taken for a recording of nothing");
}
