//! What a worker process exposes: no socket that another process can connect to, no named file, a small environment.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::rig::{self, Scene};
use kiln_isolate::{IsolatedDevice, IsolationSupport, WorkerEvent};

/// Makes a test of this binary a client whose worker is looked at.
const CLIENT: &str = "KILN_TEST_CLIENT";
/// In the client's environment, and not to be passed to the worker.
const SECRET: &str = "SOME_TOKEN";
/// To be passed to the worker.
const NAMED: &str = "SOME_SETTING";

/// What the descriptors of a process are, with the sockets among them by number.
fn descriptors(process: u32) -> Vec<(std::path::PathBuf, String)> {
    let folder = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let read = |entry: std::fs::DirEntry| {
        Some((entry.path(), std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
    };
    folder.flatten().filter_map(read).collect()
}

/// Sockets of the whole machine that a process can connect to, by inode.
fn listening() -> BTreeSet<String> {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let unix = read("/proc/net/unix");
    // Number, references, protocol, flags, type, state, inode and perhaps a path; the flag says that it listens.
    let unix = unix.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_open = fields.get(3) == Some(&"00010000") || fields.len() > 7;
        is_open.then(|| fields.get(6).map(|inode| (*inode).to_owned())).flatten()
    });
    let internet = ["tcp", "tcp6", "udp", "udp6"].map(|kind| read(&format!("/proc/net/{kind}")));
    let internet = internet
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| line.split_whitespace().nth(9).map(str::to_owned));
    unix.chain(internet.collect::<Vec<_>>()).collect()
}

/// Opens a device with a standby, looks at both workers, and prints the names in their environment.
#[test]
#[ignore = "helper process"]
fn client() {
    if std::env::var_os(CLIENT).is_none() {
        return;
    }
    let before: BTreeSet<String> =
        descriptors(std::process::id()).into_iter().map(|(_, target)| target).collect();
    let (tell, told) = mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let mut config = rig::config().standby(true).observe(move |news| {
        if let WorkerEvent::Started { process, .. } = news {
            tell.lock().unwrap().send(*process).unwrap();
        }
    });
    config.inherited_variables = vec![NAMED.into()];
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 3);
    let workers = [0, 1].map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap());
    let listening = listening();
    for process in [std::process::id(), workers[0], workers[1]] {
        for (path, target) in descriptors(process) {
            if before.contains(&target) {
                // What was open before is the program's own: its standard streams.
                continue;
            }
            let socket = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            match socket {
                Some(inode) => assert!(!listening.contains(inode), "{process}: {target}"),
                None if target.contains("memfd:") => {
                    let mode = std::fs::metadata(path).unwrap().permissions().mode();
                    assert_eq!(mode & 0o077, 0, "{process}: {target} is the owner's alone");
                }
                // Nothing else has a name that another process could open.
                None => {
                    let is_nameless = target.starts_with("anon_inode:")
                        || target.starts_with("pipe:")
                        || target == "/dev/null"
                        || target.starts_with("/proc/");
                    assert!(is_nameless, "{process}: {target}");
                }
            }
        }
    }
    let environment = std::fs::read(format!("/proc/{}/environ", workers[1])).unwrap();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let pairs: Vec<(&str, &str)> = text.split('\0').filter_map(|pair| pair.split_once('=')).collect();
    let names: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
    println!("names: {}", names.join(" "));
    // What kiln adds: the variable that makes it a worker, and the client's process id. No descriptor number.
    let added: BTreeSet<(&str, &str)> =
        pairs.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    let client = std::process::id().to_string();
    assert_eq!(added, BTreeSet::from([("KILN_WORKER", "1"), ("KILN_WORKER_PARENT", client.as_str())]));
    assert_nothing_is_inherited();
}

/// Other processes that the program starts inherit neither the sockets nor the memory of its workers.
fn assert_nothing_is_inherited() {
    let mut other = Command::new("ls");
    let output = other.args(["-l", "/proc/self/fd"]).stdin(Stdio::null()).output().unwrap();
    let held = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && held.contains("/dev/null"), "{held}");
    assert!(!held.contains("socket:") && !held.contains("memfd:") && !held.contains("anon_inode:"), "{held}");
}

#[test]
fn a_worker_gets_what_it_needs_and_shows_nothing() {
    let output = rig::helper("security::client")
        .env(CLIENT, "1")
        .env(SECRET, "do not tell")
        .env(NAMED, "told")
        .env("CUDA_MODULE_LOADING", "LAZY")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let names = said.lines().find_map(|line| line.split_once("names: ")).unwrap().1;
    let names: BTreeSet<&str> = names.split(' ').collect();
    assert!(names.contains(NAMED) && names.contains("CUDA_MODULE_LOADING"), "{names:?}");
    assert!(!names.contains(SECRET));
    let is_known = |name: &&&str| {
        ["HOME", "LD_LIBRARY_PATH", "PATH", "RUST_BACKTRACE", "TMPDIR", NAMED].contains(*name)
            || ["CUDA_", "KILN_", "NVIDIA_", "NCCL_", "LLVM_PROFILE"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    let strangers: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

#[test]
fn this_machine_can_isolate_and_says_so() {
    let readiness = IsolationSupport::of_this_machine();
    assert!(readiness.is_ready(), "{readiness:?}");
    assert!(readiness.descriptors_open.is_some_and(|open| open > 0));
    let mut crowded = readiness;
    crowded.descriptor_limit = crowded.descriptors_open;
    assert_eq!(crowded.descriptors_left(), Some(0));
    assert!(!crowded.is_ready());
}
