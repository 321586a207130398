//! Programs with habits of their own: they ignore how children end, wait for all of them, take signals, close their standard streams or
//! remove the file they were started from. Their workers are started, noticed and replaced all the same.

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
use kiln_isolate::{Cause, Entry, IsolatedDevice, News, RestartPolicy};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};

/// Names the habit of the client.
const HABIT: &str = "KILN_TEST_HABIT";
/// How long anything may take before it counts as never.
const NEVER: Duration = Duration::from_secs(60);

/// A program with one of the habits.
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

/// Does something while another thread does something else again and again.
fn meanwhile(other: impl Fn() + Sync, act: impl FnOnce()) {
    /// Ends the other thread, however the first one ends.
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

/// Loses a worker and a standby to somebody else, and goes on; holds nothing at the end.
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
        News::Lost { cause } => Some(cause.clone()),
        _ => None,
    });
    assert!(matches!(cause, Cause::Ended(_)), "{cause}");
    assert!(device.synchronize(scene.stream).unwrap_err().is_sticky());
    rig::recover(&device);
    assert_eq!(scene.download(&device, 0).unwrap(), [3; 64]);
    scene.play(&device, 4);
    // One that faults, and one that is ended by this program, which end behind a takeover.
    for _ in 0..2 {
        device.kill_worker();
        rig::recover(&device);
        scene.play(&device, 5);
    }
    drop((scene, device));
    let after = Held::settled();
    assert_eq!(after, before);
}

fn heard<T>(told: &Receiver<News>, wanted: impl Fn(&News) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(&told.recv_timeout(NEVER).expect("a client that is told")) {
            return found;
        }
    }
}

fn started(told: &Receiver<News>, wanted: bool) -> u32 {
    heard(told, |news| match news {
        News::Started { process, standby } if *standby == wanted => Some(*process),
        _ => None,
    })
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).unwrap();
}

/// Signals that a handler of the program takes, on threads of this crate.
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

    /// From here on the program takes the signal, and what a thread was waiting for is interrupted.
    pub(super) fn take() {
        let handler: extern "C" fn(i32) = taken;
        // SAFETY: the handler does nothing, so it may interrupt anything.
        assert_ne!(unsafe { signal(NUMBER, handler as usize) }, REFUSED);
    }

    /// From here on the system tells nobody how children ended.
    pub(super) fn ignore_children() {
        // SAFETY: nothing is called.
        assert_ne!(unsafe { signal(CHILD, IGNORED) }, REFUSED);
    }

    /// Sends it to every thread that looks after workers.
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

/// Runs a client by way of a shell, which does something first. Ended if it takes for ever.
fn run(program: &Path, habit: &str, prelude: &str) {
    let line = format!("{prelude} \"$0\" programs::client {}", rig::HELPER_ARGUMENTS.join(" "));
    let mut shell = Command::new("timeout");
    shell.args(["-s", "KILL", "240", "sh", "-c", &line]).arg(program).env(HABIT, habit);
    let Output { status, stdout, stderr } = shell.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "a program that {habit}: {status}\n{stdout}\n{stderr}");
}

#[test]
fn children_that_others_wait_for_are_noticed_and_replaced() {
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
    let copy = rig::trap("copy");
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

/// A standby whose device does not open is not waited for until it is needed: it is ended, and another one is tried.
#[test]
fn a_standby_that_does_not_start_is_replaced() {
    let _turn = rig::turn();
    let before = Held::settled();
    let (script, count) = (rig::trap("slow"), rig::trap("starts"));
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
    let mut config = rig::config().entry(Entry::Program(script.clone())).standby(true).restarts(policy);
    config.start_limit = Duration::from_secs(2);
    let device = IsolatedDevice::open(config).unwrap();
    let limit = Instant::now() + NEVER;
    while std::fs::read(&count).unwrap().len() < 3 {
        assert!(Instant::now() < limit, "the first standby is still waited for");
        std::thread::sleep(Duration::from_millis(5));
    }
    let scene = Scene::build(&device);
    scene.play(&device, 9);
    drop((scene, device));
    [script, count].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    before.assert_restored("at the end");
}
