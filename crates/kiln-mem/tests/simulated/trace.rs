//! What a trace keeps, and what others read of it.

mod pickled;
mod viewer;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::rig::{MIB, Random, Rig, with_rig};
use kiln_driver::Clock;
use kiln_mem::layer::{TraceConfig, Traced};
use kiln_mem::replay::{AllocationLog, LogOptions};
use kiln_mem::trace::{
    RecordedTrace, TraceAction, TraceRecord, read_trace, write_rmm_csv, write_snapshot, write_trace,
};
use kiln_mem::{AllocTag, AllocationRequest, HeapConfig, MemoryResource, MemoryResourceExt, Pages, Stack};
use viewer::View;

fn keeping(records_per_thread: usize) -> TraceConfig {
    TraceConfig { records_per_thread, ..TraceConfig::default() }
}

fn snapshot_of(records: &[TraceRecord]) -> Vec<u8> {
    let mut snapshot = Vec::new();
    write_snapshot(records, &mut snapshot).unwrap();
    snapshot
}

#[test]
fn a_number_of_records_that_no_thread_can_keep_becomes_one_that_it_can() {
    with_rig(|rig, stream| {
        let most = Traced::new(keeping(usize::MAX), rig.heap());
        assert_eq!(most.to_string(), format!("trace({}, heap)", TraceConfig::RECORDS_LIMIT));
        assert_eq!(most.to_string().parse::<Stack>().unwrap().to_string(), most.to_string());
        let least = Traced::new(keeping(0), rig.heap());
        let block = least.allocate(&AllocationRequest::new(1, stream)).unwrap();
        least.free(block).unwrap();
        assert_eq!((least.recorder().records().len(), least.recorder().dropped()), (1, 1));
    });
}

#[test]
fn a_trace_keeps_the_newest_and_counts_what_it_dropped() {
    with_rig(|rig, stream| {
        let config = TraceConfig { records_per_thread: 4, ..TraceConfig::default() };
        let traced = Traced::new(config, rig.heap());
        for bytes in 1..=5 {
            let block = traced.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
            traced.free(block).unwrap();
        }
        let records = traced.recorder().records();
        assert_eq!(records.iter().map(|record| record.bytes).collect::<Vec<_>>(), [4, 4, 5, 5]);
        assert_eq!(traced.recorder().dropped(), 6);
        assert!(traced.allocate(&AllocationRequest::new(1 << 45, stream)).is_err());
        assert_eq!(traced.recorder().records().last().unwrap().action, TraceAction::Fail);
    });
}

#[test]
fn rmms_log_format_is_written_as_rmm_writes_it() {
    with_rig(|rig, stream| {
        let traced = Traced::new(TraceConfig::default(), rig.heap());
        let tag = AllocTag::new("a, b").unwrap();
        let block = traced.allocate(&AllocationRequest::new(1000, stream).tag(tag)).unwrap();
        let address = block.address();
        traced.free(block).unwrap();
        let mut csv = Vec::new();
        write_rmm_csv(&traced.recorder().records(), &mut csv).unwrap();
        let text = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Thread,Time,Action,Pointer,Size,Stream,Tag");
        let fields: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(fields[2..], ["allocate", &address.to_string(), "1000", "0x0", "a  b"]);
        let time: Vec<usize> = fields[1].split([':', '.']).map(str::len).collect();
        assert_eq!(time, [2, 2, 2, 6], "hours, minutes, seconds, microseconds");
        assert!(lines[2].contains(",free,") && lines.len() == 3);
    });
}

#[test]
fn each_thread_has_a_separate_ring() {
    with_rig(|rig, stream| {
        let traced = Traced::new(keeping(4), rig.heap());
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            for (pairs, bytes) in [(1, 100), (50, 200)] {
                let (traced, together) = (&traced, &together);
                scope.spawn(move || {
                    // No thread inherits the ring of the other one.
                    together.wait();
                    for _ in 0..pairs {
                        traced
                            .free(traced.allocate(&AllocationRequest::new(bytes, stream)).unwrap())
                            .unwrap();
                    }
                    together.wait();
                });
            }
        });
        let records = traced.recorder().records();
        let of = |bytes| records.iter().filter(|record| record.bytes == bytes).collect::<Vec<_>>();
        assert_eq!((of(100).len(), of(200).len(), traced.recorder().dropped()), (2, 4, 96));
        assert_ne!(of(100)[0].thread, of(200)[0].thread);
        assert!(records.is_sorted_by_key(|record| record.nanoseconds));
    });
}

/// One thread allocates where another one freed, which records twice as much.
fn two_threads_in_turn(config: TraceConfig) -> RecordedTrace {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    // Pages give out the lowest address, which is the one that was freed last.
    let pages = Pages::new(rig.driver(), rig.order(), HeapConfig::default()).unwrap();
    let traced = Traced::new(config, pages);
    let (give, given) = channel();
    let (freed, was_freed) = channel();
    std::thread::scope(|scope| {
        let traced = &traced;
        scope.spawn(move || {
            for block in given {
                traced.free(block).unwrap();
                traced.free(traced.allocate(&AllocationRequest::new(MIB, stream)).unwrap()).unwrap();
                freed.send(()).unwrap();
            }
        });
        for at in 0..50 {
            give.send(traced.allocate(&AllocationRequest::new(5000 + at, stream)).unwrap()).unwrap();
            was_freed.recv().unwrap();
        }
        drop(give);
    });
    let recorded =
        RecordedTrace { records: traced.recorder().records(), dropped: traced.recorder().dropped() };
    drop(traced);
    rig.finish(&[stream]);
    recorded
}

#[test]
fn a_trace_with_gaps_is_shown_and_replayed() {
    let recorded = two_threads_in_turn(keeping(60));
    assert_eq!(recorded.dropped, 90);
    let view = View::of(&snapshot_of(&recorded.records));
    assert!(view.live.is_empty(), "the last free is there, and no two blocks lie in the same place");
    let log = AllocationLog::from_recorded(&recorded, LogOptions::default()).unwrap();
    assert_eq!(log.peak_bytes(), MIB, "never two at once");
    let complete = RecordedTrace { dropped: 0, ..recorded };
    assert!(
        AllocationLog::from_recorded(&complete, LogOptions::default()).is_err(),
        "which must not be hidden"
    );
}

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(77)
    }

    fn sleep(&self, _: Duration) {}
}

#[test]
fn records_of_one_nanosecond_are_replayed_in_the_order_they_were_made() {
    let recorded = two_threads_in_turn(TraceConfig { clock: Arc::new(StandingClock), ..keeping(1000) });
    let turn = [
        (0, TraceAction::Allocate),
        (1, TraceAction::Free),
        (1, TraceAction::Allocate),
        (1, TraceAction::Free),
    ];
    let expected: Vec<_> = turn.into_iter().cycle().take(4 * 50).collect();
    let first = recorded.records[0].thread;
    let mut file = Vec::new();
    write_trace(&recorded.records, recorded.dropped, &mut file).unwrap();
    let read = read_trace(&mut file.as_slice()).unwrap();
    let happened = read.records.iter().map(|record| (i32::from(record.thread != first), record.action));
    assert_eq!(happened.collect::<Vec<_>>(), expected);
    let times = read.records.iter().map(|record| record.nanoseconds);
    assert!(times.clone().is_sorted_by(|one, next| one < next) && times.min() == Some(77));
    let log = AllocationLog::read(&mut file.as_slice(), LogOptions::default()).unwrap();
    assert_eq!((log.peak_bytes(), log.orphans()), (MIB, 0), "never two at once");
}

/// What a program did on two streams, with blocks of all sizes and of none, of which some stay.
fn random_program(steps: usize) -> (Vec<TraceRecord>, Vec<(u64, u64, String)>) {
    let rig = Rig::new(4, 64 * MIB);
    let streams = [rig.stream(), rig.stream()];
    let traced = Traced::new(TraceConfig::default(), rig.heap());
    let tags = ["weights", "rows, and \"columns\"", "größe"].map(|name| AllocTag::new(name).unwrap());
    let mut random = Random::new(4);
    let mut blocks = Vec::new();
    for _ in 0..steps {
        if blocks.is_empty() || (random.below(2) == 0 && blocks.len() < 40) {
            let bytes = if random.below(10) == 0 { 0 } else { random.size(256 << 10) };
            let tag = tags[random.below(3) as usize];
            let stream = streams[random.below(2) as usize];
            blocks.push(traced.allocate(&AllocationRequest::new(bytes, stream).tag(tag)).unwrap());
        } else {
            let at = random.below(blocks.len() as u64) as usize;
            traced.free(blocks.swap_remove(at)).unwrap();
        }
    }
    assert!(traced.allocate(&AllocationRequest::new(1 << 45, streams[0])).is_err());
    let records = traced.recorder().records();
    let with_bytes = blocks.iter().filter(|block| !block.is_empty());
    let mut live: Vec<_> =
        with_bytes.map(|block| (block.address().0, block.bytes(), block.tag().name().to_owned())).collect();
    live.sort();
    blocks.into_iter().for_each(|block| traced.free(block).unwrap());
    drop(traced);
    rig.finish(&streams);
    (records, live)
}

#[test]
fn the_viewer_sees_what_is_live_and_what_happened() {
    // More than are appended to a list at once.
    let (records, live) = random_program(3000);
    let view = View::of(&snapshot_of(&records));
    assert!(live.len() > 10);
    assert_eq!(view.live, live);
    let count = |action| records.iter().filter(|record| record.action == action && record.bytes > 0).count();
    let (allocated, freed) = (count(TraceAction::Allocate), count(TraceAction::Free));
    assert_eq!((view.allocations, view.frees, view.refusals), (allocated, freed, 1));
    assert_eq!(snapshot_of(&records), snapshot_of(&records), "the same records give the same bytes");
    assert!(View::of(&snapshot_of(&[])).live.is_empty());
}

#[test]
fn records_that_make_no_sense_are_still_written() {
    let (mut records, _) = random_program(20);
    for (at, record) in records.iter_mut().enumerate() {
        (record.address.0, record.bytes) = (u64::MAX - at as u64, u64::MAX >> (at % 3));
    }
    pickled::Pickled::read(&snapshot_of(&records));
    write_rmm_csv(&records, &mut Vec::new()).unwrap();
}

/// Runs a program in Python on some input; none where there is no Python.
fn python(program: &str, input: &[u8]) -> Option<String> {
    let mut command = Command::new("python3");
    command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut python = command.spawn().ok()?;
    python.stdin.take().unwrap().write_all(input).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Reads a snapshot as PyTorch's tools do, and says what is live.
const READ_SNAPSHOT: &str = "
import pickle, sys
snapshot = pickle.load(sys.stdin.buffer)
for block in (b for s in snapshot['segments'] for b in s['blocks'] if b['state'] == 'active_allocated'):
    print(block['address'], block['size'], block['frames'][0]['name'])
";

/// Reads a log as a table, and says what is live.
const READ_LOG: &str = "
import csv, sys, datetime
live = {}
for row in csv.DictReader(line.decode() for line in sys.stdin.buffer):
    datetime.datetime.strptime(row['Time'], '%H:%M:%S.%f')
    int(row['Thread']), int(row['Stream'], 16)
    pointer, size = int(row['Pointer'], 16), int(row['Size'])
    if row['Action'] == 'allocate' and size: live[pointer] = size, row['Tag']
    elif row['Action'] == 'free' and size: assert live.pop(pointer)[0] == size
    else: assert row['Action'] == 'allocate failure' or size == 0, row
for pointer in sorted(live): print(pointer, *live[pointer])
";

#[test]
fn python_reads_the_same() {
    let (records, live) = random_program(1500);
    let text = |name: fn(&str) -> String| -> String {
        live.iter().map(|(address, bytes, tag)| format!("{address} {bytes} {}\n", name(tag))).collect()
    };
    let mut csv = Vec::new();
    write_rmm_csv(&records, &mut csv).unwrap();
    if let Some(said) = python(READ_SNAPSHOT, &snapshot_of(&records)) {
        assert_eq!(said, text(str::to_owned));
        assert_eq!(python(READ_LOG, &csv).unwrap(), text(|tag| tag.replace(',', " ")));
    }
}

/// A block that lies where others were says that they are gone, though their ends were not recorded.
#[test]
fn a_snapshot_of_a_trace_with_gaps_shows_no_two_blocks_in_one_place() {
    let record = |nanoseconds, start: u64| TraceRecord {
        nanoseconds,
        address: kiln_driver::DeviceAddress(start),
        bytes: 4096,
        stream: kiln_mem::StreamKey::default(),
        thread: 0,
        tag: AllocTag::default(),
        action: TraceAction::Allocate,
    };
    let records = [record(1, 0x1000), record(2, 0x2000), record(3, 0x4000), record(4, 0x1800)];
    let view = View::of(&snapshot_of(&records));
    let live: Vec<(u64, u64)> = view.live.iter().map(|(start, bytes, _)| (*start, *bytes)).collect();
    assert_eq!(live, [(0x1800, 4096), (0x4000, 4096)]);
}

/// A trace is input from outside: a stream that no order can have is named, and nothing is allocated for it.
#[test]
fn a_trace_with_an_impossible_stream_is_refused() {
    let record = TraceRecord {
        nanoseconds: 1,
        address: kiln_driver::DeviceAddress(256),
        bytes: 8,
        stream: kiln_mem::StreamKey::default(),
        thread: 0,
        tag: AllocTag::default(),
        action: TraceAction::Allocate,
    };
    let mut file = Vec::new();
    write_trace(&[record], 0, &mut file).unwrap();
    let stream = file.len() - 40 + 24;
    for number in [64_u32, u32::MAX] {
        file[stream..stream + 4].copy_from_slice(&number.to_le_bytes());
        let error = read_trace(&mut file.as_slice()).unwrap_err();
        assert_eq!(error.line, 1);
        assert!(error.to_string().contains(&format!("{number} is no stream key")), "{error}");
    }
}
