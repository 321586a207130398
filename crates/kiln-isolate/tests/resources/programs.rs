//! Programs that ignore SIGCHLD, wait for all children, handle signals, close their standard streams or remove their executable. Their workers are started,
//! watched and replaced as in any other program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::rig::held::Held;
use crate::rig::{self, Scene};
use kiln_driver::DriverExt;
use kiln_isolate::{IsolatedDevice, LossCause, RestartPolicy, WorkerEntry, WorkerEvent};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};

/// What the client does.
const HABIT: &str = "KILN_TEST_HABIT";
/// A limit that is never reached.
const NEVER: Duration = Duration::from_secs(60);

/// A program that does one of these.
#[test]
#[ignore = "helper process"]
fn client() {
    let Ok(habit) = std::env::var(HABIT) else { return };
    match habit.as_str() {
        "ignores how children end" => {
            signals::ignore_children();
            live();
        }
        "waits for all children" => meanwhile(wait_for_children, live),
        "takes signals" => {
            signals::take();
            meanwhile(signals::send, live);
        }
        "removes its file" => {
            std::fs::remove_file(std::env::current_exe().unwrap()).unwrap();
            std::env::set_current_dir("/").unwrap();
            live();
        }
        _ => live(),
    }
}

/// Runs `act` while another thread repeats `other`.
fn meanwhile(other: impl Fn() + Sync, act: impl FnOnce()) {
    /// Ends the other thread on drop.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                other();
            }
        });
        let _over = Over(&is_over);
        act();
    });
}

fn wait_for_children() {
    if !matches!(rustix::process::wait(WaitOptions::NOHANG), Ok(Some(_))) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Has a worker and a standby killed from outside, recovers, and holds nothing at the end.
fn live() {
    let before = Held::settled();
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let config = rig::config().standby(true);
    let device =
        IsolatedDevice::open(config.observe(move |news| drop(tell.lock().unwrap().send(news.clone()))))
            .unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 3);
    let first = started(&told, false);
    let standby = started(&told, true);
    kill(standby);
    let next = started(&told, true);
    assert_ne!(standby, next);
    kill(first);
    let cause = heard(&told, |news| match news {
        WorkerEvent::Lost { cause } => Some(cause.clone()),
        _ => None,
    });
    assert!(matches!(cause, LossCause::Ended(_)), "{cause}");
    assert!(device.synchronize(scene.stream).unwrap_err().is_sticky());
    rig::recover(&device);
    assert_eq!(scene.download(&device, 0).unwrap(), [3; 64]);
    scene.play(&device, 4);
    // Workers that this program kills.
    for _ in 0..2 {
        device.kill_worker();
        rig::recover(&device);
        scene.play(&device, 5);
    }
    drop((scene, device));
    let after = Held::settled();
    assert_eq!(after, before);
}

fn heard<T>(told: &Receiver<WorkerEvent>, wanted: impl Fn(&WorkerEvent) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(&told.recv_timeout(NEVER).expect("a client that is told")) {
            return found;
        }
    }
}

fn started(told: &Receiver<WorkerEvent>, wanted: bool) -> u32 {
    heard(told, |news| match news {
        WorkerEvent::Started { process, standby } if *standby == wanted => Some(*process),
        _ => None,
    })
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).unwrap();
}

/// Signals that a handler of the program receives, on threads of kiln.
mod signals {
    use std::time::Duration;

    /// SIGUSR1 and SIGCHLD.
    const NUMBER: i32 = 10;
    const CHILD: i32 = 17;
    /// SIG_IGN and SIG_ERR.
    const IGNORED: usize = 1;
    const REFUSED: usize = usize::MAX;

    // SAFETY: both are functions of the C library; a handler is a function of one number, or one of a few small numbers.
    unsafe extern "C" {
        fn signal(number: i32, handler: usize) -> usize;
        safe fn tgkill(group: i32, thread: i32, number: i32) -> i32;
    }

    extern "C" fn taken(_: i32) {}

    /// Installs a handler, so that the signal interrupts system calls.
    pub(super) fn take() {
        let handler: extern "C" fn(i32) = taken;
        // SAFETY: the handler does nothing, so it may interrupt anything.
        assert_ne!(unsafe { signal(NUMBER, handler as usize) }, REFUSED);
    }

    /// Ignores SIGCHLD, so that the exit status of children is discarded.
    pub(super) fn ignore_children() {
        // SAFETY: nothing is called.
        assert_ne!(unsafe { signal(CHILD, IGNORED) }, REFUSED);
    }

    /// Sends the signal to every thread of kiln.
    pub(super) fn send() {
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let thread = task.file_name().to_string_lossy().parse().unwrap();
            if name.starts_with("kiln ") {
                tgkill(std::process::id() as i32, thread, NUMBER);
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Runs a client from a shell, with a prelude. Killed after a time limit.
fn run(program: &Path, habit: &str, prelude: &str) {
    let line = format!("{prelude} \"$0\" programs::client {}", rig::HELPER_ARGUMENTS.join(" "));
    let mut shell = Command::new("timeout");
    shell.args(["-s", "KILL", "240", "sh", "-c", &line]).arg(program).env(HABIT, habit);
    let Output { status, stdout, stderr } = shell.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "a program that {habit}: {status}\n{stdout}\n{stderr}");
}

#[test]
fn workers_that_other_code_waits_for_are_noticed_and_replaced() {
    let _turn = rig::turn();
    let exe = std::env::current_exe().unwrap();
    run(&exe, "ignores how children end", "exec");
    run(&exe, "waits for all children", "exec");
}

#[test]
fn signals_interrupt_nothing() {
    let _turn = rig::turn();
    run(&std::env::current_exe().unwrap(), "takes signals", "exec");
}

#[test]
fn a_program_without_its_file_or_its_standard_streams_has_workers() {
    let _turn = rig::turn();
    run(&std::env::current_exe().unwrap(), "closes its standard streams", "exec <&- >&- 2>&-");
    let copy = rig::path("copy");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    run(&copy, "removes its file", "exec");
    assert!(!copy.exists());
}

#[test]
fn an_observer_that_panics_costs_no_worker() {
    let _turn = rig::turn();
    let before = Held::settled();
    let config = rig::config().standby(true).observe(|news| panic!("told of {news:?}"));
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 3);
    device.kill_worker();
    rig::recover(&device);
    assert_eq!(scene.download(&device, 0).unwrap(), [3; 64]);
    drop((scene, device));
    before.assert_restored("at the end");
}

/// A standby whose device does not open is killed after the start limit, and another one is started.
#[test]
fn a_standby_that_does_not_start_is_replaced() {
    let _turn = rig::turn();
    let before = Held::settled();
    let (script, count) = (rig::path("slow"), rig::path("starts"));
    let exe = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\nif [ -e {count} ]; then echo >> {count}; exec sleep 300 > /dev/null 2>&1; fi\necho > {count}\n\
         exec {exe} worker {arguments} > /dev/null\n",
        count = count.display(),
        exe = exe.display(),
        arguments = rig::HELPER_ARGUMENTS.join(" "),
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let policy = RestartPolicy { pause: Duration::from_millis(1), ..RestartPolicy::default() };
    let mut config = rig::config().entry(WorkerEntry::Program(script.clone())).standby(true).restarts(policy);
    config.start_limit = Duration::from_secs(2);
    let device = IsolatedDevice::open(config).unwrap();
    let limit = Instant::now() + NEVER;
    while std::fs::read(&count).unwrap().len() < 3 {
        assert!(Instant::now() < limit, "the first standby was not replaced");
        std::thread::sleep(Duration::from_millis(5));
    }
    let scene = Scene::build(&device);
    scene.play(&device, 9);
    drop((scene, device));
    [script, count].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    before.assert_restored("at the end");
}
