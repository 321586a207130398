//! Too few descriptors, processes or memory, no program, and a client that is killed: each is a typed error, and no process is left.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::rig::held::Held;
use crate::rig::{self, Scene};
use kiln_driver::{Driver, PageRequest, StreamRequest};
use kiln_isolate::{
    DeviceSpec, IsolatedDevice, RestartPolicy, TakeoverError, WorkerEntry, WorkerEvent, WorkerStartError,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes a test of this binary a client that is going to be killed.
const CLIENT: &str = "KILN_TEST_CLIENT";
/// Makes a test of this binary a client with few tasks.
const CROWDED: &str = "KILN_TEST_CROWDED";
/// A user id that no account has.
const UNUSED_USER: u32 = 65_000;

#[test]
fn programs_that_are_no_workers_are_typed_errors() {
    let _turn = rig::turn();
    let before = Held::settled();
    let open = |entry| IsolatedDevice::open(rig::config().entry(entry)).unwrap_err();
    // The harness may run tests on the main thread, where the call of the test `worker` counts as the line in main.
    if rustix::thread::gettid() != rustix::process::getpid() {
        assert!(matches!(open(WorkerEntry::Main), WorkerStartError::NoEntry));
    }
    assert!(matches!(open(WorkerEntry::Program("/no/such/program".into())), WorkerStartError::Spawn { .. }));
    assert!(matches!(open(WorkerEntry::Program("/proc/self/status".into())), WorkerStartError::Spawn { .. }));
    assert!(matches!(
        open(WorkerEntry::Program("/bin/true".into())),
        WorkerStartError::Ended { status: Some(_) }
    ));
    assert!(matches!(open(WorkerEntry::Test("no_such_test".into())), WorkerStartError::Ended { .. }));
    let mut unknown = rig::config();
    unknown.device = DeviceSpec::custom("unheard of", []);
    let error = IsolatedDevice::open(unknown).unwrap_err();
    assert!(
        matches!(&error, WorkerStartError::Device { absent: false, .. }) && !error.is_absence(),
        "{error}"
    );
    let mut long = rig::config();
    long.device = DeviceSpec::custom("test", vec![0; 1 << 20]);
    assert!(matches!(IsolatedDevice::open(long).unwrap_err(), WorkerStartError::Argument { bytes: 1048576 }));
    before.assert_restored("at the end");
}

#[test]
fn a_takeover_that_finds_no_program_can_be_tried_again() {
    let _turn = rig::turn();
    let before = Held::settled();
    let script = rig::path("script");
    let place = || {
        let exe = std::env::current_exe().unwrap();
        let (exe, arguments) = (exe.display(), rig::HELPER_ARGUMENTS.join(" "));
        let text = format!("#!/bin/sh\nexec {exe} worker {arguments} > /dev/null\n");
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    place();
    let device = IsolatedDevice::open(rig::config().entry(WorkerEntry::Program(script.clone()))).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 3);
    std::fs::remove_file(&script).unwrap();
    device.kill_worker();
    let error = device.take_over().unwrap_err();
    assert!(matches!(error, TakeoverError::Start(WorkerStartError::Spawn { .. })), "{error}");
    assert!(device.create_stream(StreamRequest::New { priority: 0 }).unwrap_err().is_sticky());
    place();
    assert_eq!(device.take_over().unwrap().generation, 2);
    scene.play(&device, 4);
    drop((scene, device));
    std::fs::remove_file(&script).unwrap();
    before.assert_restored("at the end");
}

/// Runs something with a limit of that many more descriptors.
fn with_descriptors<T>(more: u64, run: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    // The system assigns the lowest free number, so the limit is the number after the last one that may be used.
    let is_free = |number: &u64| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err();
    let current = (0..).filter(is_free).nth(more as usize);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    let answer = run();
    setrlimit(Resource::Nofile, limit).unwrap();
    answer
}

#[test]
fn no_descriptors_are_a_typed_error_and_nothing_is_left() {
    let _turn = rig::turn();
    let (mut refused, mut opened) = (0, 0);
    let before = Held::settled();
    for more in 0..16 {
        match with_descriptors(more, || IsolatedDevice::open(rig::config())) {
            Ok(device) => {
                opened += 1;
                use_up(&device);
            }
            Err(
                WorkerStartError::System { .. }
                | WorkerStartError::Spawn { .. }
                | WorkerStartError::Ended { .. },
            ) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        before.assert_restored(format_args!("{more} descriptors"));
    }
    assert!(refused > 0 && opened > 0, "{refused} refused, {opened} opened");
}

/// A client with a limit on its threads and processes.
#[test]
#[ignore = "helper process"]
fn crowded() {
    let Some(more) = std::env::var(CROWDED).ok().and_then(|text| text.parse::<u64>().ok()) else { return };
    let held = Held::settled();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().count() as u64;
    let limit = getrlimit(Resource::Nproc);
    setrlimit(Resource::Nproc, Rlimit { current: Some(tasks + more), ..limit }).unwrap();
    match IsolatedDevice::open(rig::config()) {
        Ok(device) => Scene::build(&device).play(&device, 7),
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            println!("refused: {error:?}");
        }
    }
    held.assert_restored("at the end");
}

#[test]
fn no_processes_and_threads_are_a_typed_error_and_nothing_is_left() {
    let _turn = rig::turn();
    let mut said = String::new();
    for more in 0..8 {
        let mut client = rig::helper("limits::crowded");
        client.env(CROWDED, more.to_string());
        if rustix::process::geteuid().is_root() {
            // The system does not limit root, so the client runs as a user that has no other processes.
            client.uid(UNUSED_USER + more as u32).gid(UNUSED_USER);
        }
        let output = client.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{more}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        said += &text;
    }
    // Without root the limit is shared with other processes of the user, and no process can be started.
    assert!(said.contains("refused: Thread("), "{said}");
    if rustix::process::geteuid().is_root() {
        assert!(said.contains("refused: Spawn"), "{said}");
        assert!(said.contains("refused: Ended"), "{said}");
    }
}

#[test]
fn more_shared_memory_than_there_is_is_out_of_memory() {
    let _turn = rig::turn();
    let before = Held::settled();
    let device = IsolatedDevice::open(rig::config()).unwrap();
    for bytes in [1 << 62, u64::MAX] {
        let error = device.allocate_host(bytes).unwrap_err();
        assert!(error.is_oom(), "{error}");
    }
    // There may be memory, and no addresses for it.
    let error = with_addresses(64 << 20, || device.allocate_host(1 << 30)).unwrap_err();
    assert!(error.is_oom() && !error.is_sticky(), "{error}");
    let scene = Scene::build(&device);
    scene.play(&device, 4);
    drop((scene, device));
    before.assert_restored("at the end");
}

/// Runs something with a limit of that many more bytes of addresses.
fn with_addresses<T>(more: u64, run: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::As);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix(" kB")).unwrap();
    let current = Some(used.trim().parse::<u64>().unwrap() * 1024 + more);
    setrlimit(Resource::As, Rlimit { current, ..limit }).unwrap();
    let answer = run();
    setrlimit(Resource::As, limit).unwrap();
    answer
}

/// Makes objects with descriptors until there are none, and one more when there are some again.
fn use_up(device: &IsolatedDevice) {
    let bytes = device.info().limits.page_granularity_bytes;
    let mut held = Vec::new();
    with_descriptors(8, || {
        let error = loop {
            match device.allocate_host(64) {
                Ok(block) => held.push(block),
                Err(error) => break error,
            }
        };
        assert!(!error.is_sticky(), "{error}");
        // The descriptor of pages comes from the worker and cannot be received, which counts as a violation.
        let _ = device.create_pages(PageRequest { bytes, exportable: true });
    });
    if device.cause().is_some() {
        rig::recover(device);
    }
    let scene = Scene::build(device);
    scene.play(device, 5);
}

/// A client that takes over again and again, until it is killed.
#[test]
#[ignore = "helper process"]
fn client() {
    if std::env::var_os(CLIENT).is_none() {
        return;
    }
    let policy = RestartPolicy { limit: u32::MAX, pause: Duration::ZERO, ..RestartPolicy::default() };
    let config = rig::config().standby(true).restarts(policy).observe(|news| {
        if let WorkerEvent::Started { process, .. } = news {
            let mut out = std::io::stdout().lock();
            writeln!(out, "worker {process}").unwrap();
            out.flush().unwrap();
        }
    });
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    loop {
        scene.play(&device, 6);
        device.kill_worker();
        rig::recover(&device);
    }
}

fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state stands behind the name, which is in parentheses; a zombie waits for its parent only.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[test]
fn workers_end_with_a_client_that_is_killed_while_it_takes_over() {
    let _turn = rig::turn();
    for lines in [1, 2, 3, 5, 8, 13] {
        let mut client =
            rig::helper("limits::client").env(CLIENT, "1").stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(client.stdout.take().unwrap()).lines();
        let workers: Vec<String> = said
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("worker ").map(|(_, process)| process.trim().to_owned()))
            .take(lines)
            .collect();
        assert_eq!(workers.len(), lines);
        client.kill().unwrap();
        client.wait().unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        while let Some(left) = workers.iter().find(|process| is_running(process)) {
            assert!(Instant::now() < limit, "worker {left} outlived its client");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
