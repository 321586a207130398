//! Recordings of runtimes that nothing drops: their end is written when the process exits, however it does that and wherever the device is.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kiln::recovery::{Isolation, Process, WorkerEntry};
use kiln::trace::RecordingFailure;
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::Recorded;
use crate::device_times::{CUPTI, fill, fills};
use crate::machine::{Machine, calls};

/// Says which device a child has, and how it ends.
const PLAN: &str = "KILN_TEST_EXIT_PLAN";
/// How long a child may take that must not hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// Fills that are over before the child exits.
const FILLS: u32 = 100;

unsafe extern "C" {
    fn atexit(call: extern "C" fn()) -> i32;
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// Another part of the program that takes its time when the process exits, after the recording was ended.
extern "C" fn slow_exit() {
    std::thread::sleep(Duration::from_millis(200));
}

/// What a child does, which a test below started.
#[test]
#[ignore = "helper process"]
fn child() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let (device, end) = plan.split_once(", ").unwrap();
    // SAFETY: the function takes nothing, and does not unwind.
    assert_eq!(unsafe { atexit(slow_exit) }, 0);
    if device.ends_with("worker") {
        let variables = ["FAKE_CUDA_LOG"];
        let variables = variables.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let entry = WorkerEntry::Test("takeover::worker".into());
        let process = Process { entry, variables: variables.collect(), ..Process::default() };
        let isolation = Isolation::Process(process);
        kiln::probe::set_runtime_config(RuntimeConfig { isolation, ..RuntimeConfig::default() }).unwrap();
    }
    // Nothing drops this runtime, and nothing flushes its recording.
    let gpu = match device {
        "cuda" | "cuda worker" => DeviceRuntime::cuda(0),
        _ => DeviceRuntime::auto(),
    };
    let gpu = gpu.unwrap();
    fill(gpu, FILLS);
    gpu.synchronize().unwrap();
    match end {
        "returns" => {}
        "exits" => std::process::exit(0),
        "exits in a thread" => drop(std::thread::spawn(|| std::process::exit(0)).join()),
        "exits beside a thread that submits" => {
            std::thread::spawn(move || {
                loop {
                    fill(gpu, 10);
                }
            });
            std::thread::sleep(Duration::from_millis(60));
            std::process::exit(0)
        }
        "loses its worker and exits" => {
            gpu.isolated_device().unwrap().kill_worker();
            std::process::exit(0)
        }
        "forks a process that exits" => {
            let began = Instant::now();
            // SAFETY: the new process only exits.
            let process = unsafe { fork() };
            if process == 0 {
                std::process::exit(0);
            }
            // SAFETY: there is such a process, and no status is asked for.
            assert_eq!(unsafe { waitpid(process, std::ptr::null_mut(), 0) }, process);
            assert!(began.elapsed() < Duration::from_secs(3), "it waited for a thread that it does not have");
            fill(gpu, FILLS);
        }
        "forks a process that goes on with the device" => fork_and_go_on(gpu),
        "forks a process that makes a device" => {
            // SAFETY: no other thread of this process holds anything that the new one uses.
            let process = unsafe { fork() };
            if process == 0 {
                let own = DeviceRuntime::simulated(3).unwrap();
                fill(&own, FILLS);
                // Nothing drops this one either.
                std::mem::forget(own);
                std::process::exit(0);
            }
            let mut status = -1;
            // SAFETY: there is such a process, and the status is a place that lives until the call returns.
            assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
            assert_eq!(status, 0);
            fill(gpu, FILLS);
        }
        end => panic!("{end}"),
    }
}

/// A forked process that uses the device of its parent is told that it is not recorded, and does not wait for that.
fn fork_and_go_on(gpu: &DeviceRuntime) {
    // SAFETY: no other thread of this process holds anything that the new one uses.
    let process = unsafe { fork() };
    if process == 0 {
        let began = Instant::now();
        let buffer = gpu.zeros::<u32>(16).unwrap();
        assert_eq!(buffer.download().unwrap(), [0; 16]);
        drop(buffer);
        let failure = gpu.flush_trace().unwrap().failure.unwrap();
        assert_eq!(failure, RecordingFailure::Forked { process: std::os::unix::process::parent_id() });
        assert!(failure.to_string().contains("fork first"), "{failure}");
        assert!(began.elapsed() < Duration::from_secs(4), "it waited for a thread that it does not have");
        std::process::exit(0);
    }
    let mut status = -1;
    // SAFETY: there is such a process, and the status is a place that lives until the call returns.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    assert_eq!(status, 0);
    fill(gpu, FILLS);
}

/// A child with a plan.
fn start(plan: &str, times: &str, file: &Recorded) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "exits::child", "--nocapture", "--test-threads=1"]);
    command.env(PLAN, plan).env("KILN_TRACE", &file.0).env("KILN_TRACE_TIMES", times);
    if !plan.starts_with("cuda") {
        command.env("KILN_POLICY", "simulate");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A child with a device in a worker process.
pub(crate) fn recorded_worker(times: &str, file: &Recorded) -> Child {
    start("worker, returns", times, file)
}

/// A child ends well and in time, and its recording is whole; the fills that have a time.
#[track_caller]
fn ends_well(plan: &str, times: &str) -> usize {
    ends_well_into(plan, times, &Recorded::new())
}

#[track_caller]
fn ends_well_into(plan: &str, times: &str, file: &Recorded) -> usize {
    let mut child = start(plan, times, file);
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{plan} with times by {times}: it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert!(status.success(), "{plan} with times by {times}: {status}\n{said}");
    is_whole(&format!("{plan} with times by {times}"), file)
}

/// A recording has its end and all fills; those that have a time.
#[track_caller]
fn is_whole(plan: &str, file: &Recorded) -> usize {
    let mut reader = file.reader();
    while reader.next_event().unwrap().is_some() {}
    assert!(!reader.is_cut() && reader.has_end_mark(), "{plan}: no end");
    let explained = file.explained();
    assert!(explained.is_whole, "{plan}: {explained}");
    let fills = fills(file);
    assert!(fills.len() >= FILLS as usize, "{plan}: {} fills", fills.len());
    fills.iter().filter(|fill| fill.2.is_some()).count()
}

#[test]
fn a_simulated_device_that_lasts_is_recorded_to_the_end_however_the_process_exits() {
    for end in [
        "returns",
        "exits",
        "exits in a thread",
        "forks a process that exits",
        "forks a process that goes on with the device",
    ] {
        assert!(ends_well(&format!("auto, {end}"), "host") >= FILLS as usize);
    }
}

#[test]
fn a_forked_process_records_its_own_device_to_the_end_and_leaves_that_of_its_parent_alone() {
    let folder = std::env::temp_dir().join(format!("kiln-forked-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let plan = "auto, forks a process that makes a device";
    let file = Recorded(folder.join("run.kiln"));
    ends_well_into(plan, "host", &file);
    let others: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let others: Vec<_> = others.into_iter().filter(|path| *path != file.0).collect();
    let [other] = &others[..] else { panic!("{others:?}") };
    is_whole(plan, &Recorded(other.clone()));
    drop(file);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_thread_that_submits_while_the_process_exits_does_not_take_the_end_away() {
    for _ in 0..5 {
        ends_well("auto, exits beside a thread that submits", "host");
    }
}

#[test]
fn a_device_in_a_worker_that_lasts_is_recorded_to_the_end() {
    for end in [
        "returns",
        "exits",
        "exits in a thread",
        "exits beside a thread that submits",
        "loses its worker and exits",
    ] {
        ends_well(&format!("worker, {end}"), "host");
    }
}

on_machine! {
    fn a_gpu_that_lasts_is_recorded_to_the_end() on Machine::fake() => {
        for end in ["returns", "exits", "exits in a thread", "exits beside a thread that submits"] {
            ends_well(&format!("cuda, {end}"), "host");
            assert!(ends_well(&format!("cuda, {end}"), "events") >= FILLS as usize);
        }
    }

    fn cupti_tells_all_times_of_a_gpu_that_lasts() on Machine::fake().with_library("KILN_CUPTI", CUPTI) => {
        for end in ["returns", "exits", "exits in a thread", "exits beside a thread that submits"] {
            assert!(ends_well(&format!("cuda, {end}"), "cupti") >= FILLS as usize);
        }
        assert_eq!(calls("subscribe").len(), 4);
    }

    fn cupti_in_a_worker_tells_all_times_of_a_gpu_that_lasts() on Machine::fake().with_library("KILN_CUPTI", CUPTI) => {
        for end in ["returns", "exits", "exits beside a thread that submits"] {
            assert!(ends_well(&format!("cuda worker, {end}"), "cupti") >= FILLS as usize);
            assert!(ends_well(&format!("cuda worker, {end}"), "events") >= FILLS as usize);
        }
        ends_well("cuda worker, loses its worker and exits", "cupti");
        ends_well("cuda worker, loses its worker and exits", "events");
    }
}
