//! What a log says was done is done again: in its order, by its threads, on its streams.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use crate::rig::{MIB, Random, Rig};
use kiln_driver::call::Call;
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Driver, MemoryRequest, StreamId, WallClock};
use kiln_mem::layer::{TraceConfig, Traced};
use kiln_mem::replay::{
    AllocationLog, LogAction, LogError, LogOptions, LogProblem, ReplayReport, ReplayStack,
    SMALLEST_STEP_BYTES, replay, smallest_memory,
};
use kiln_mem::trace::{RecordedTrace, write_rmm_csv, write_trace};
use kiln_mem::{AllocTag, AllocationRequest, HeapConfig, MemoryResource, MemoryResourceExt, Stack};

const HEADER: &str = "Thread,Time,Action,Pointer,Size,Stream\n";

fn read(text: &str) -> Result<AllocationLog, LogError> {
    AllocationLog::from_csv(text.as_bytes(), LogOptions::default())
}

/// Replays a log on a simulated device of so much memory.
fn replayed(log: &AllocationLog, stack: &str, memory_bytes: u64) -> ReplayReport {
    let rig = Rig::new(3, memory_bytes);
    let stack: Stack = stack.parse().unwrap();
    let stack = ReplayStack::new(rig.driver(), &stack, HeapConfig::default(), log).unwrap();
    let report = replay(log, &stack, &WallClock::new()).unwrap();
    drop(stack);
    rig.finish(&[]);
    report
}

/// A program of several threads and streams, recorded.
fn recorded(seed: u64, steps: usize, max_bytes: u64) -> RecordedTrace {
    let rig = Rig::new(seed, 256 * MIB);
    let streams = [rig.stream(), rig.stream()];
    let tag = AllocTag::new("rows, and columns").unwrap();
    let traced = Arc::new(Traced::new(TraceConfig::default(), rig.heap()));
    let mut random = Random::new(seed);
    let mut live = Vec::new();
    for _ in 0..steps {
        if random.below(5) < 3 || live.is_empty() {
            let bytes = if random.below(20) == 0 { 0 } else { random.size(max_bytes) };
            let stream = streams[random.below(2) as usize];
            live.push(traced.allocate(&AllocationRequest::new(bytes, stream).tag(tag)).unwrap());
        } else {
            let block = live.swap_remove(random.below(live.len() as u64) as usize);
            if random.below(2) == 0 {
                // By a separate thread.
                std::thread::scope(|scope| {
                    scope.spawn(|| traced.free(block).unwrap());
                });
            } else {
                traced.free(block).unwrap();
            }
        }
    }
    let recorded =
        RecordedTrace { records: traced.recorder().records(), dropped: traced.recorder().dropped() };
    live.into_iter().for_each(|block| traced.free(block).unwrap());
    drop(traced);
    rig.finish(&streams);
    recorded
}

#[test]
fn what_was_recorded_is_the_same_in_every_format() {
    let recorded = recorded(1, 400, 64 << 10);
    let direct = AllocationLog::from_recorded(&recorded, LogOptions::default()).unwrap();
    let (mut csv, mut binary) = (Vec::new(), Vec::new());
    write_rmm_csv(&recorded.records, &mut csv).unwrap();
    write_trace(&recorded.records, recorded.dropped, &mut binary).unwrap();
    assert_eq!(AllocationLog::read(&mut csv.as_slice(), LogOptions::default()).as_ref(), Ok(&direct));
    assert_eq!(AllocationLog::read(&mut binary.as_slice(), LogOptions::default()).as_ref(), Ok(&direct));
    assert_eq!(kiln_mem::trace::read_trace(&mut binary.as_slice()).unwrap(), recorded);
    assert!(direct.threads() >= 2, "frees had separate threads");
    assert_eq!(direct.streams(), 2);
    assert_eq!(direct.events().len(), recorded.records.len());
}

#[test]
fn a_replay_makes_the_same_calls() {
    let log = AllocationLog::from_recorded(&recorded(2, 500, MIB), LogOptions::default()).unwrap();
    let frees =
        log.events().iter().filter(|event| matches!(event.action, LogAction::Free { .. })).count() as u64;
    for stack in ["heap", "stats(trace(10, heap))", "chunks", "pool", "direct", "guard(256B, 0B, heap)"] {
        let report = replayed(&log, stack, 512 * MIB);
        assert_eq!((report.allocations, report.frees), (u64::from(log.blocks()), frees), "{stack}");
        assert_eq!((report.refusals, report.failed_in_log), (0, 0), "{stack}");
        assert_eq!(report.peak_live_bytes, log.peak_bytes(), "{stack}");
        assert_eq!(report.live_at_end, u64::from(log.blocks()) - frees, "{stack}");
        assert!(
            report.peak_reserved_bytes >= log.peak_bytes() && report.reserved_over_live() >= 1.0,
            "{stack}"
        );
        assert!(report.call_p50 <= report.call_p99 && !report.time.is_zero(), "{stack}");
    }
}

#[test]
fn the_smallest_memory_is_enough_and_a_page_less_is_not() {
    for (seed, stack, max_bytes) in [
        (3, "heap", 64 << 10),
        (4, "heap", 6 * MIB),
        (5, "stats(heap)", MIB),
        (6, "chunks", 2 * MIB),
        (7, "pool", MIB),
    ] {
        let log =
            AllocationLog::from_recorded(&recorded(seed, 120, max_bytes), LogOptions::default()).unwrap();
        let generous = replayed(&log, stack, 512 * MIB);
        let mut tried = 0;
        let smallest = smallest_memory(&log, generous.peak_reserved_bytes, |bytes| {
            tried += 1;
            Ok(replayed(&log, stack, bytes).refusals == 0)
        });
        let smallest = smallest.unwrap().unwrap();
        assert!(smallest >= log.peak_bytes() && smallest % SMALLEST_STEP_BYTES == 0, "{stack}");
        assert_eq!(replayed(&log, stack, smallest).refusals, 0, "{stack} with {smallest}");
        assert!(
            replayed(&log, stack, smallest - SMALLEST_STEP_BYTES).refusals > 0,
            "{stack} with a page less"
        );
        assert!(tried <= 10, "{tried} replays for {stack}");
    }
}

#[test]
fn a_stack_that_refuses_by_itself_has_no_smallest_memory() {
    let log = AllocationLog::from_recorded(&recorded(8, 100, MIB), LogOptions::default()).unwrap();
    let answer =
        smallest_memory(
            &log,
            512 * MIB,
            |bytes| Ok(replayed(&log, "limit(1MiB, heap)", bytes).refusals == 0),
        );
    assert_eq!(answer.unwrap(), None);
}

#[test]
fn refused_requests_are_counted_and_their_frees_left_out() {
    let log = read(&format!(
        "{HEADER}1,t,allocate,0x100,1048576,0x0\n1,t,allocate,0x200,9000000,0x0\n1,t,free,0x200,9000000,0x0\n\
         1,t,allocate failure,(nil),77,0x0\n1,t,free,0x100,1048576,0x0\n"
    ))
    .unwrap();
    let report = replayed(&log, "limit(2MiB, heap)", 64 * MIB);
    assert_eq!((report.allocations, report.frees, report.refusals, report.failed_in_log), (1, 1, 1, 1));
}

#[test]
fn calls_of_a_log_are_made_by_as_many_threads_in_its_order() {
    let mut text = HEADER.to_owned();
    for at in 0..300 {
        text += &format!("{},t,allocate,{:#x},4096,{:#x}\n", at % 7, at + 1, at % 3);
        if at >= 5 {
            text += &format!("{},t,free,{:#x},4096,{:#x}\n", at % 5, at - 4, (at - 5) % 3);
        }
    }
    let log = read(&text).unwrap();
    assert_eq!((log.threads(), log.streams()), (7, 3));
    assert_eq!(log.peak_bytes(), 6 * 4096);
    let rig = Rig::unchecked(1, 64 * MIB);
    // The driver's pool is called for each block.
    let driver = Arc::new(Layered::new(rig.driver(), Witness::default()));
    let stack =
        ReplayStack::new(driver.clone(), &"pool".parse().unwrap(), HeapConfig::default(), &log).unwrap();
    let report = replay(&log, &stack, &WallClock::new()).unwrap();
    assert_eq!((report.allocations, report.frees, report.peak_live_bytes), (300, 295, 6 * 4096));
    let seen = driver.layer().0.lock().unwrap().clone();
    let (mut threads, mut streams) = (Vec::new(), Vec::new());
    for (event, (thread, stream, allocates)) in log.events().iter().zip(seen) {
        assert_eq!(matches!(event.action, LogAction::Allocate { .. }), allocates, "in the order of the log");
        assert_eq!(number(&mut threads, thread), event.thread);
        assert_eq!(number(&mut streams, stream), event.stream);
    }
    assert_eq!((threads.len(), streams.len()), (7, 3));
    drop((stack, driver));
    rig.finish(&[]);
}

/// Who called the driver's pool, for which stream, and whether to allocate.
#[derive(Default)]
struct Witness(Mutex<Vec<(ThreadId, StreamId, bool)>>);

impl Layer for Witness {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        let seen = match *call {
            Call::Allocate { request: MemoryRequest::Pool { stream, .. } } => Some((stream, true)),
            Call::Free { stream: Some(stream), .. } => Some((stream, false)),
            _ => None,
        };
        if let Some((stream, allocates)) = seen {
            self.0.lock().unwrap().push((std::thread::current().id(), stream, allocates));
        }
        Ok(())
    }
}

/// The place of a name among those seen so far.
fn number<T: PartialEq>(names: &mut Vec<T>, name: T) -> u32 {
    let known = names.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as u32
}

/// Whether a problem is the one a log has.
type IsRight = fn(&LogProblem) -> bool;

#[test]
fn a_broken_log_is_refused_with_its_line() {
    use LogProblem::{
        Action as BadAction, Field, MissingColumn, MissingField, NoTrace, NotLive, OtherSize, Taken, TooMuch,
    };
    let line = "1,t,allocate,0x100,64,0x0\n";
    let cases: &[(String, u64, IsRight)] = &[
        (String::new(), 1, |problem| matches!(problem, MissingColumn(_))),
        ("Thread,Time,Action,Size,Stream\n".into(), 1, |problem| *problem == MissingColumn("Pointer")),
        (format!("{HEADER}1,t,allocate\n"), 2, |problem| *problem == MissingField("Pointer")),
        (format!("{HEADER}{line}1,t,steal,0x100,64,0x0\n"), 3, |problem| matches!(problem, BadAction(_))),
        (format!("{HEADER}1,t,allocate,0xzz,64,0x0\n"), 2, |problem| {
            matches!(problem, Field { column: "Pointer", .. })
        }),
        (format!("{HEADER}1,t,allocate,0x100,-4,0x0\n"), 2, |problem| {
            matches!(problem, Field { column: "Size", .. })
        }),
        (format!("{HEADER}1,t,allocate,0x100,99999999999999999999,0x0\n"), 2, |problem| {
            matches!(problem, Field { column: "Size", .. })
        }),
        (format!("{HEADER}{line}\n\n{line}"), 5, |problem| *problem == Taken(0x100)),
        (format!("{HEADER}1,t,free,0x100,64,0x0\n"), 2, |problem| *problem == NotLive(0x100)),
        (format!("{HEADER}{line}1,t,free,0x100,65,0x0\n"), 3, |problem| {
            *problem == OtherSize { allocated: 64, freed: 65 }
        }),
        (format!("{HEADER}{line}2,t,allocate,0x200,18446744073709551615,0x0\n"), 3, |problem| {
            *problem == TooMuch
        }),
        (format!("{HEADER}{}", "x".repeat(1 << 17)), 2, |problem| *problem == NoTrace),
    ];
    for (text, line, is_right) in cases {
        let error = read(text).unwrap_err();
        assert_eq!(error.line, *line, "{error}");
        assert!(is_right(&error.problem), "{error}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")));
    }
    let not_text = [HEADER.as_bytes(), b"\xff\xfe,t\n"].concat();
    assert_eq!(AllocationLog::from_csv(not_text.as_slice(), LogOptions::default()).unwrap_err().line, 2);
}

#[test]
fn a_log_that_begins_in_the_middle_is_read_as_partial() {
    let text = format!("{HEADER}1,t,free,0x900,64,0x0\n1,t,allocate,0x100,64,0x0\n1,t,free,0x100,64,0x0\n");
    assert!(read(&text).is_err());
    let log = AllocationLog::from_csv(text.as_bytes(), LogOptions { partial: true }).unwrap();
    assert_eq!((log.events().len(), log.orphans()), (2, 1));
    let mut recorded = recorded(9, 200, 4096);
    recorded.records.drain(..50);
    assert!(AllocationLog::from_recorded(&recorded, LogOptions::default()).is_err());
    recorded.dropped = 50;
    assert!(AllocationLog::from_recorded(&recorded, LogOptions::default()).unwrap().orphans() > 0);
}

#[test]
fn columns_in_another_order_and_windows_line_ends_are_fine() {
    let text = "Stream,Size,Pointer,Action,Tag,Time,Thread\r\n0x1,64,256,allocate,x,t,9\r\n0x1,64,256,free,x,t,9\r\n";
    assert_eq!(read(text).unwrap().events().len(), 2);
}

#[test]
fn a_damaged_trace_file_is_an_error_and_never_a_panic() {
    let recorded = recorded(10, 60, 4096);
    let mut whole = Vec::new();
    write_trace(&recorded.records, 0, &mut whole).unwrap();
    for end in 0..whole.len() {
        let error = AllocationLog::read(&mut &whole[..end], LogOptions::default());
        assert!(error.is_err(), "{end} of {} bytes", whole.len());
    }
    let mut random = Random::new(1);
    for _ in 0..5000 {
        let mut damaged = whole.clone();
        let at = random.below(damaged.len() as u64) as usize;
        damaged[at] = random.below(256) as u8;
        let _ = AllocationLog::read(&mut damaged.as_slice(), LogOptions::default());
    }
    let mut wrong = whole;
    let last = wrong.len() - 6;
    wrong[last] = 9;
    let error = AllocationLog::read(&mut wrong.as_slice(), LogOptions::default()).unwrap_err();
    assert_eq!(
        (error.line, &error.problem),
        (recorded.records.len() as u64, &LogProblem::Action("9".into()))
    );
}

#[test]
fn a_log_cut_anywhere_says_where_or_ends_sooner() {
    let recorded = recorded(11, 40, 4096);
    let mut csv = Vec::new();
    write_rmm_csv(&recorded.records, &mut csv).unwrap();
    let whole = AllocationLog::read(&mut csv.as_slice(), LogOptions::default()).unwrap();
    let mut refused = 0;
    for end in 0..csv.len() {
        let cut = &csv[..end];
        let line = 1 + cut.iter().filter(|byte| **byte == b'\n').count();
        match AllocationLog::read(&mut &*cut, LogOptions::default()) {
            Err(error) => {
                refused += 1;
                assert_eq!(error.line, line as u64, "{end}: {error}");
            }
            Ok(log) => {
                let calls = log.events();
                assert!(calls.len() + 2 >= line && calls.len() < line, "{end}");
                let actions =
                    |log: &AllocationLog| log.events().iter().map(|event| event.action).collect::<Vec<_>>();
                assert_eq!(actions(&log), actions(&whole)[..calls.len()], "{end}");
            }
        }
    }
    assert!(refused > csv.len() / 2, "{refused} of {}", csv.len());
}

#[test]
fn quotes_that_other_tools_put_around_fields_are_read() {
    let quoted = "\u{feff}\"Thread\",Time,\"Action\",Pointer,\"Size\",Stream,\"Tag\"\r\n\
                  \"7\",\"0:0,5\", \"allocate\" ,0x100,\"64\",\"0x0\",\"a \"\"b\"\", c\"\r\n\
                  7,0,free,\"0x100\",64,0x0,\r\n";
    let plain = "7,0,allocate,0x100,64,0x0\n7,0,free,0x100,64,0x0\n";
    assert_eq!(read(quoted).unwrap(), read(&format!("{HEADER}{plain}")).unwrap());
    for line in
        ["7,0,\"allocate,0x100,64,0x0", "7,0,\"allocate\"s,0x100,64,0x0", "7,0,allocate,0x100,64,\"\"\"0x0"]
    {
        let error = read(&format!("{HEADER}{line}\n")).unwrap_err();
        assert!(matches!(error, LogError { line: 2, problem: LogProblem::Quote(_) }), "{line}: {error}");
    }
    let tag = AllocTag::new("\"quoted\" tag").unwrap();
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let traced = Traced::new(TraceConfig::default(), rig.heap());
    traced.free(traced.allocate(&AllocationRequest::new(64, stream).tag(tag)).unwrap()).unwrap();
    let mut csv = Vec::new();
    write_rmm_csv(&traced.recorder().records(), &mut csv).unwrap();
    assert_eq!(
        read(&String::from_utf8(csv).unwrap()).unwrap().events().len(),
        2,
        "our own tags are read back"
    );
    drop(traced);
    rig.finish(&[stream]);
}

#[test]
fn the_smallest_memory_is_looked_for_among_all_that_can_be_counted() {
    let met = |bytes: u64| Ok(bytes >= 5 * MIB);
    assert_eq!(smallest_memory(&AllocationLog::default(), u64::MAX, met).unwrap(), Some(6 * MIB));
    assert_eq!(smallest_memory(&AllocationLog::default(), u64::MAX, |_| Ok(false)).unwrap(), None);
}

#[test]
fn what_is_wrong_before_the_first_line_is_said_without_one() {
    let error = AllocationLog::read(&mut &b"kilntrc1"[..], LogOptions::default()).unwrap_err();
    assert_eq!(error, LogError { line: 0, problem: LogProblem::Truncated });
    assert_eq!(error.to_string(), "it ends in the middle");
}

/// Also where what is handed out lies across several that were freed unseen.
#[test]
fn blocks_whose_addresses_are_handed_out_again_were_freed_where_calls_may_be_missing() {
    let text = format!(
        "{HEADER}1,t,allocate,0x1000,4096,0x0\n1,t,allocate,0x2000,4096,0x0\n1,t,allocate,0x4000,4096,0x0\n\
         1,t,allocate,0x1800,4096,0x0\n1,t,free,0x1800,4096,0x0\n1,t,free,0x4000,4096,0x0\n"
    );
    let log = AllocationLog::from_csv(text.as_bytes(), LogOptions { partial: true }).unwrap();
    let freed = log.events().iter().filter(|event| matches!(event.action, LogAction::Free { .. })).count();
    assert_eq!((log.blocks(), freed, log.orphans()), (4, 4, 0));
    assert_eq!(log.peak_bytes(), 3 * 4096);
}
