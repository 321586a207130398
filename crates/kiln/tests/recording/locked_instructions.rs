//! Locks that a launch takes, recorded and not, and what it costs that it may be recorded.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use kiln::{DeviceRuntime, Ticket};
use kiln_runtime::internal::recording_switch_reads;

use crate::Recorded;
use crate::launches_on_gpu::Scene;
use crate::locked_instruction_counter::{Seen, be_looked_at, counted, marked};
use crate::machine::Machine;
use crate::skip;

/// Set for the child: the file to record to.
const FILE: &str = "KILN_TEST_LOCKS_FILE";
/// Launches between two marks.
const LAUNCHES: u32 = 16;
/// Behind one pair of marks around nothing: pairs without a recording, as many with a lock beside each launch, and as many with a recording.
const ROUNDS: usize = 3;

const NOTHING: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing()
{
    ret;
}
";

/// What the child does.
#[test]
#[ignore = "helper process"]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let scene = Scene::unrecorded();
    let stream = scene.gpu.main_stream().clone();
    let beside = Mutex::new(0);
    let round = |takes_lock: bool| {
        marked(|| {
            for _ in 0..LAUNCHES {
                scene.launch(&stream, 1);
                if takes_lock {
                    *beside.lock().unwrap() += 1;
                }
            }
        });
    };
    let warm = || (0..64).for_each(|_| scene.launch(&stream, 1));
    warm();
    be_looked_at();
    marked(|| {});
    (0..ROUNDS).for_each(|_| round(false));
    (0..ROUNDS).for_each(|_| round(true));
    scene.gpu.trace(file).unwrap();
    warm();
    (0..ROUNDS).for_each(|_| round(false));
}

/// What was seen of the child's rounds; none if it may not be looked at.
fn rounds() -> Option<Vec<Seen>> {
    let file = Recorded::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "locked_instructions::child", "--nocapture", "--test-threads=1"]);
    command.env(FILE, &file.0).stdin(Stdio::null()).stdout(Stdio::null());
    counted(command.spawn().unwrap())
}

/// Functions of this program with their places, in order; none without the program that lists them.
fn functions() -> Option<Vec<(u64, String)>> {
    let mut list = Command::new("nm");
    list.args(["--defined-only", "--demangle", "--numeric-sort"]).arg(std::env::current_exe().unwrap());
    let output = list.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).unwrap();
    let function = |line: &str| {
        let (place, rest) = line.split_once(' ')?;
        let (kind, name) = rest.split_once(' ')?;
        matches!(kind, "t" | "T" | "w" | "W").then_some(())?;
        Some((u64::from_str_radix(place, 16).ok()?, name.to_owned()))
    };
    let functions: Vec<_> = text.lines().filter_map(function).collect();
    // A program may have been stripped of its names.
    (!functions.is_empty()).then_some(functions)
}

/// Functions of the library that records, and of the part of the runtime that does, in which a piece of work was seen.
fn recording_functions<'f>(seen: &Seen, functions: &'f [(u64, String)]) -> BTreeSet<&'f str> {
    let name = |place: &u64| {
        let at = functions.partition_point(|(begin, _)| begin <= place).checked_sub(1)?;
        functions.get(at).map(|(_, name)| &**name)
    };
    let records = |name: &&str| name.contains("kiln_trace") || name.contains("::runtime::recording::");
    seen.places.iter().filter_map(name).filter(records).collect()
}

on_machine! {
    fn a_recorded_launch_takes_no_lock_that_an_unrecorded_one_does_not() on Machine::fake().quiet() => {
        let Some(rounds) = rounds() else {
            return skip::note("a_recorded_launch_takes_no_lock_that_an_unrecorded_one_does_not", "no ptrace");
        };
        // Another thread may have made a lock harder to take once.
        let locks: Vec<u64> = rounds.iter().skip(1).map(|seen| seen.locks).collect();
        let fewest: Vec<u64> = locks.chunks(ROUNDS).map(|locks| *locks.iter().min().unwrap()).collect();
        let [plain, locking, recorded] = fewest[..] else { panic!("{locks:?}") };
        assert!(locking >= plain + u64::from(LAUNCHES), "a lock is counted: {locks:?}");
        assert_eq!(recorded, plain, "{locks:?}");
    }

    fn a_launch_that_is_not_recorded_reads_no_clock_and_enters_nothing_that_records() on Machine::fake().quiet() => {
        let test = "a_launch_that_is_not_recorded_reads_no_clock_and_enters_nothing_that_records";
        let Some(rounds) = rounds() else { return skip::note(test, "no ptrace") };
        let Some(functions) = functions() else { return skip::note(test, "no nm, or no names in the program") };
        let (nothing, rounds) = rounds.split_first().unwrap();
        let (plain, recorded) = (&rounds[..ROUNDS], &rounds[2 * ROUNDS..]);
        for seen in recorded {
            let entered = recording_functions(seen, &functions);
            assert!(seen.clock_reads >= 2 * u64::from(LAUNCHES), "readings are seen: {}", seen.clock_reads);
            assert!(entered.iter().any(|name| name.contains("submit_recorded")), "functions are seen: {entered:#?}");
        }
        for seen in plain {
            assert_eq!((seen.clock_reads, seen.system_calls), (0, nothing.system_calls), "but for those of the marks");
            assert_eq!(recording_functions(seen, &functions), BTreeSet::new());
        }
    }
}

/// A launch asks once whether it is recorded. Other work asks a second time, when its call notes its line. The feature `mutations` counts that.
#[test]
fn a_launch_that_is_not_recorded_asks_once_whether_it_is() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (from, to) = (gpu.upload(&[7_u32; 64]).unwrap(), gpu.zeros::<u32>(64).unwrap());
    let kernel = gpu.load_kernel(&kiln_driver::Image::Ptx(NOTHING), "nothing", None).unwrap();
    let launch = || {
        let mut launch = gpu.launch(&kernel);
        launch.grid(1).block(1);
        // SAFETY: the kernel does nothing.
        unsafe { launch.submit() }.unwrap()
    };
    let asked = |work: &dyn Fn() -> Ticket| {
        let before = recording_switch_reads();
        for _ in 0..10 {
            work();
        }
        recording_switch_reads() - before
    };
    assert_eq!(asked(&launch), 10, "a launch");
    assert_eq!(asked(&|| to.fill(1).unwrap()), 20, "a fill");
    assert_eq!(asked(&|| to.copy_from(&from).unwrap()), 20, "a copy");
    gpu.synchronize().unwrap();
}
