//! `kiln top`: programs that publish, that are gone, and entries that are something else.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};

/// An entry as a program writes it.
fn entry(process: u32, program: &str) -> String {
    format!(
        r#"{{"format":1,"process":{process},"started":0,"program":"{program}","command":"KILN_SIM_SEED=7 ./{program} --steps 10 --token ...","command_lacks":"values that look like secrets are not shown","updated_ms":0,"runtimes":[{{"kind":"cuda",
        "ordinal":0,"name":"H200","uuid":"GPU-1","state":"ready","faults":1,"limit_bytes":2097152,"live_bytes":1048576,
        "peak_bytes":1048576,"held_bytes":2097152,"streams":2,"submissions":7,"submissions_per_second":3.5,
        "tags":[{{"tag":"weights","bytes":1048576}}]}}]}}"#
    )
}

/// The command with its own place for entries.
fn top(folder: &Folder, words: &[&str]) -> Command {
    let mut command = command(&[&["top"], words].concat());
    command.env("XDG_RUNTIME_DIR", folder.path(""));
    command
}

fn done(folder: &Folder, words: &[&str]) -> Outcome {
    let outcome = run(top(folder, words));
    assert_eq!(outcome.code, Some(0), "{words:?}: {}", outcome.stderr);
    outcome
}

/// A folder with an entry of this process, which lives.
fn published() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("kiln")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path("kiln"), PermissionsExt::from_mode(0o700)).unwrap();
    }
    let own = std::process::id();
    std::fs::write(folder.path(&format!("kiln/{own}.json")), entry(own, "train")).unwrap();
    folder
}

#[test]
fn a_program_is_shown_with_memory_tags_and_rates() {
    let folder = published();
    let text = done(&folder, &["--once"]).stdout;
    for said in [
        &*format!("train (process {})", std::process::id()),
        "cuda 0 (H200): ready, 2 streams, 4 submissions/s, 7 so far",
        "  KILN_SIM_SEED=7 ./train --steps 10 --token ...\n    (values that look like secrets are not shown)\n",
        "lost 1 time",
        "1 MiB of 2 MiB in use",
        "weights",
        "it has not published for more than 5 s",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(done(&folder, &[]).stdout, text, "a pipe gets it once");
    let json = done(&folder, &["--json"]).json();
    let program = &json["programs"][0];
    assert_eq!((&program["program"], &program["is_silent"]), (&"train".into(), &true.into()));
    assert_eq!(program["runtimes"][0]["tags"][0]["bytes"], 1 << 20);
    let has_figures = !json["gpus"].as_array().unwrap().is_empty();
    assert!(has_figures || json["gpus_absent"].is_string() || json["gpus"].is_array(), "{json}");
}

#[test]
fn without_programs_it_says_how_to_publish() {
    let folder = Folder::new();
    let text = done(&folder, &["--once"]).stdout;
    assert!(text.contains("start one with KILN_TOP=1") && text.contains(&folder.path("kiln")), "{text}");
    assert_eq!(done(&folder, &["--json"]).json()["programs"], serde_json::json!([]));
}

#[test]
fn a_process_that_is_not_seen_is_told_with_the_reason() {
    let folder = published();
    let own = std::process::id().to_string();
    let text = done(&folder, &["--once", &own]).stdout;
    assert!(text.contains("train (process "), "{text}");
    let refused = |words: &[&str], said: &[&str]| {
        for words in [words, &[words, &["--json"]].concat()] {
            let outcome = run(top(&folder, words));
            let told = format!("{}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.code, Some(2), "{words:?}: {told}");
            assert!(said.iter().all(|said| told.contains(said)), "{words:?}: {told}");
        }
    };
    let mut ended = Command::new("true").spawn().unwrap();
    let gone = ended.id().to_string();
    ended.wait().unwrap();
    refused(&["--once", &gone], &["there is no process", "it has ended, or the number is wrong", "--once"]);
    refused(&["--once", &own, &gone], &["there is no process", "train"]);
    refused(
        &["--once", &gone, "4294967295"],
        &[&format!("there is no process {gone}"), "there is no process 4294967295"],
    );
    refused(&["--once", "4294967295"], &["there is no process 4294967295"]);
    // It lives, and publishes nothing.
    let mut silent = Command::new("sleep").arg("600").spawn().unwrap();
    let other = silent.id().to_string();
    refused(&["--once", &other], &["publishes nothing in ", "KILN_TOP=1", "XDG_RUNTIME_DIR"]);
    std::fs::write(folder.path(&format!("kiln/{other}.json")), "{}").unwrap();
    refused(&["--once", &other], &[&format!("kiln/{other}.json"), "not what a kiln program writes"]);
    let error = &run(top(&folder, &["--json", &other])).json()["not_seen"][0];
    assert_eq!(error["next_step"], "remove it", "{error}");
    assert!(!error["why"].as_str().unwrap().contains("remove it"), "{error}");
    let newer = entry(silent.id(), "newer").replace("\"format\":1", "\"format\":9");
    std::fs::write(folder.path(&format!("kiln/{other}.json")), newer).unwrap();
    refused(&["--once", &other], &["version 9", "use the kiln of that program"]);
    let json = run(top(&folder, &["--json", &other])).json();
    assert_eq!(json["not_seen"][0]["next_step"], "use the kiln of that program", "{json}");
    let json = run(top(&folder, &["--json", &gone, "4294967295"])).json();
    let not_seen: Vec<String> =
        json["not_seen"].as_array().unwrap().iter().map(|one| one["process"].to_string()).collect();
    assert_eq!(not_seen, [gone, "4294967295".to_owned()], "none of several is seen: {json}");
    silent.kill().unwrap();
    // Ended, and its exit code was not asked for yet.
    let stat = format!("/proc/{other}/stat");
    while cfg!(target_os = "linux") && !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    refused(&["--once", &other], &["there is no process"]);
    silent.wait().unwrap();
    for words in [&["--once", "-1"][..], &["--once", "1x"], &["--once", "train"]] {
        assert_eq!(run(top(&folder, words)).code, Some(2), "{words:?}");
    }
}

#[test]
fn of_several_processes_those_that_are_seen_are_shown() {
    let folder = published();
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let (own, second) = (std::process::id(), other.id());
    std::fs::write(folder.path(&format!("kiln/{second}.json")), entry(second, "serve")).unwrap();
    let (one, two) = (own.to_string(), second.to_string());
    let both = format!("{one},{two}");
    let repeated = format!("{two},{two}");
    for words in [&["--once", &*one, &*two][..], &["--once", &both], &["--once", &one, &repeated]] {
        let text = done(&folder, words).stdout;
        for head in [format!("train (process {own})"), format!("serve (process {second})")] {
            assert_eq!(text.matches(&head).count(), 1, "{words:?}: {text}");
        }
    }
    let text = done(&folder, &["--once", &two]).stdout;
    assert!(text.contains("serve (process ") && !text.contains("train (process "), "{text}");
    // One of them is not there: the other is shown, and a script learns of it.
    let outcome = run(top(&folder, &["--json", &one, "4294967295"]));
    let json = outcome.json();
    assert_eq!((outcome.code, json["programs"].as_array().unwrap().len()), (Some(2), 1), "{json}");
    assert_eq!(json["not_seen"][0]["process"], 4_294_967_295_u64, "{json}");
    assert!(json["not_seen"][0]["why"].as_str().unwrap().contains("there is no process"), "{json}");
    assert_eq!(done(&folder, &["--json", &one]).json()["not_seen"], serde_json::json!([]));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn tags_and_names_stay_in_their_lines() {
    let folder = published();
    let own = std::process::id();
    let entry = entry(own, "train").replace("weights", r"w\n\u001b[2J\u009b1m\r\tx");
    std::fs::write(folder.path(&format!("kiln/{own}.json")), entry).unwrap();
    let text = done(&folder, &["--once"]).stdout;
    assert!(text.contains(r"w\n\x1b[2J\x9b1m\r\tx"), "{text}");
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
}

#[cfg(unix)]
#[test]
fn a_folder_in_which_nothing_is_published_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    std::fs::create_dir(folder.path("kiln")).unwrap();
    for (mode, is_wrong) in [(0o755, true), (0o700, false)] {
        std::fs::set_permissions(folder.path("kiln"), PermissionsExt::from_mode(mode)).unwrap();
        let outcome = run(top(&folder, &["--once"]));
        assert_eq!(outcome.code, Some(if is_wrong { 2 } else { 0 }), "{}", outcome.stderr);
        for text in [&outcome.stdout, &outcome.stderr] {
            assert_eq!(text.contains("set its mode to 0700"), is_wrong, "{text}");
        }
        let json = run(top(&folder, &["--json"]));
        assert_eq!(json.code, outcome.code);
        assert_eq!(json.json()["folder_wrong"].is_string(), is_wrong);
    }
}

#[test]
fn a_runtime_folder_that_is_not_there_is_told() {
    let mut command = command(&["top", "--once"]);
    command.env("XDG_RUNTIME_DIR", "/no/such");
    let outcome = run(command);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("/no/such is no folder; have XDG_RUNTIME_DIR name"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn the_command_of_a_program_is_never_broken() {
    let folder = published();
    let mut narrow = top(&folder, &["--once"]);
    narrow.env("COLUMNS", "40");
    let text = run(narrow).stdout;
    assert!(text.lines().any(|line| line == "  KILN_SIM_SEED=7 ./train --steps 10 --token ..."), "{text}");
}

#[test]
fn what_a_dead_program_left_is_removed_and_other_files_stay() {
    let folder = published();
    let mut ended = Command::new("true").spawn().unwrap();
    let gone = ended.id();
    ended.wait().unwrap();
    let left = folder.path(&format!("kiln/{gone}.json"));
    std::fs::write(&left, entry(gone, "gone")).unwrap();
    std::fs::write(folder.path("kiln/notes.txt"), "mine").unwrap();
    let text = done(&folder, &["--once"]).stdout;
    assert!(!text.contains("gone") && text.contains("train"), "{text}");
    assert!(!std::path::Path::new(&left).exists());
    assert!(std::path::Path::new(&folder.path("kiln/notes.txt")).exists());
}

#[test]
fn entries_that_are_something_else_are_counted() {
    let own = std::process::id();
    let whole = entry(own, "train");
    let path = |folder: &Folder| folder.path(&format!("kiln/{own}.json"));
    let mut bad: Vec<Vec<u8>> =
        (0..whole.len()).step_by(7).map(|cut| whole.as_bytes()[..cut].to_vec()).collect();
    bad.push(vec![b'['; 200_000]);
    bad.push(vec![0xff; 100]);
    bad.push(vec![b' '; 1 << 20]);
    bad.push(entry(own + 1, "of another").into_bytes());
    bad.push(whole.replace("\"format\":1", "\"format\":9").into_bytes());
    // All but a few, so that the test is quick.
    for bytes in bad.iter().step_by(5).chain(bad.iter().rev().take(5)) {
        let folder = published();
        std::fs::write(path(&folder), bytes).unwrap();
        let outcome = done(&folder, &["--json"]).json();
        assert_eq!((&outcome["unreadable"], outcome["programs"].as_array().unwrap().len()), (&1.into(), 0));
        let entry = &outcome["unreadable_entries"][0];
        assert!(entry["file"].as_str().unwrap().contains(&format!("kiln/{own}.json")), "{entry}");
        let text = done(&folder, &["--once"]).stdout;
        assert!(
            text.contains(" could not be read: ") && text.contains(entry["why"].as_str().unwrap()),
            "{text}"
        );
    }
    let folder = published();
    std::fs::write(path(&folder), entry(own, "\\u001b[31mred\\nline")).unwrap();
    let text = done(&folder, &["--once"]).stdout;
    assert!(text.contains(r"\x1b[31mred\nline") && !text.contains('\x1b'), "{text}");
}

#[test]
fn a_reader_that_leaves_and_wrong_words_are_no_panic() {
    let folder = published();
    let mut child = top(&folder, &["--once"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    for words in [&["--every", "0"][..], &["--every", "NaN"], &["--every", "x"], &["file"]] {
        assert_eq!(run(top(&folder, words)).code, Some(2), "{words:?}");
    }
    std::fs::remove_dir_all(folder.path("kiln")).unwrap();
    std::fs::write(folder.path("kiln"), "no folder").unwrap();
    let outcome = run(top(&folder, &["--once"]));
    assert!(outcome.code == Some(2) && outcome.stderr.contains("Not a directory"), "{}", outcome.stderr);
}

#[cfg(unix)]
#[test]
fn a_wrong_value_of_the_variable_is_told() {
    for (value, code) in [("yes", 2), ("2", 2), ("off", 0), ("", 0)] {
        let mut command = command(&["demo", "--device", "sim"]);
        command.env("KILN_TOP", value);
        let outcome = run(command);
        assert_eq!(outcome.code, Some(code), "{value}: {}", outcome.stderr);
        let is_told = outcome.stderr.contains("KILN_TOP=`") && outcome.stderr.contains("1 or on");
        assert_eq!(is_told, code == 2, "{value}: {}", outcome.stderr);
    }
}

/// Both ends of a terminal of a size: the one that a user sees, and the one for a program.
#[cfg(target_os = "linux")]
fn terminal(columns: u16, rows: u16) -> (std::fs::File, std::fs::File) {
    use std::os::fd::AsRawFd;
    let open = |path: &str| std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let user = open("/dev/ptmx");
    let (unlock, mut number): (libc::c_int, libc::c_int) = (0, 0);
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the requests take pointers to these types, which live until the calls return.
    let answers = unsafe {
        [
            libc::ioctl(user.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock),
            libc::ioctl(user.as_raw_fd(), libc::TIOCGPTN, &raw mut number),
            libc::ioctl(user.as_raw_fd(), libc::TIOCSWINSZ, &raw const size),
        ]
    };
    assert_eq!(answers, [0; 3]);
    (user, open(&format!("/dev/pts/{number}")))
}

/// Reads what a terminal shows; false at its end, which is an error there.
#[cfg(target_os = "linux")]
fn read_more(user: &mut std::fs::File, shown: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    let read = user.read(&mut bytes).unwrap_or(0);
    shown.extend_from_slice(&bytes[..read]);
    read > 0
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_drawn_on_and_given_back() {
    use std::io::Write;
    for (columns, rows, keys) in [(100, 30, &b"q"[..]), (1, 1, b"\x03"), (12, 3, b"j\x1b")] {
        let folder = published();
        let (mut user, program) = terminal(columns, rows);
        let mut command = top(&folder, &["--every", "0.1"]);
        command
            .env_remove("COLUMNS")
            .stdin(program.try_clone().unwrap())
            .stdout(program)
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command held both ends that were given to it.
        drop(command);
        let mut shown = Vec::new();
        let has = |shown: &[u8], what: &[u8]| shown.windows(what.len()).any(|bytes| bytes == what);
        // Drawn at least twice.
        while shown.windows(3).filter(|bytes| bytes == b"\x1b[H").count() < 2 {
            assert!(read_more(&mut user, &mut shown), "it ended: {:?}", String::from_utf8_lossy(&shown));
        }
        assert!(has(&shown, b"\x1b[?1049h"));
        assert!(columns < 100 || has(&shown, b"train (process "), "{:?}", String::from_utf8_lossy(&shown));
        for key in keys.chunks(1) {
            user.write_all(key).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        while !has(&shown, b"\x1b[?1049l") {
            assert!(read_more(&mut user, &mut shown), "it ended without giving the terminal back");
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// The command on a terminal, drawn once, and both ends of the terminal.
#[cfg(target_os = "linux")]
fn on_terminal(folder: &Folder) -> (std::process::Child, std::fs::File, std::fs::File) {
    let (mut user, program) = terminal(100, 30);
    let mut command = top(folder, &["--every", "60"]);
    let ends = (program.try_clone().unwrap(), program.try_clone().unwrap());
    command.env_remove("COLUMNS").stdin(ends.0).stdout(ends.1).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("train (process ") {
        assert!(read_more(&mut user, &mut shown), "it ended: {:?}", String::from_utf8_lossy(&shown));
    }
    (child, user, program)
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_gives_the_terminal_back() {
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::termios::{LocalModes, tcgetattr};
    use std::os::unix::process::ExitStatusExt;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        if crate::ignored_signals::is_ignored(signal) {
            continue;
        }
        let folder = published();
        let (mut child, mut user, program) = on_terminal(&folder);
        assert!(!tcgetattr(&program).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{ended:?}");
        let modes = tcgetattr(&program).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{signal:?} leaves it raw");
        drop(program);
        let mut shown = Vec::new();
        while read_more(&mut user, &mut shown) {}
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(shown.contains("\x1b[?1049l") && shown.contains("\x1b[?25h"), "{shown:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn keys_that_come_together_all_count() {
    use std::io::Write;
    let folder = published();
    let (mut child, mut user, _program) = on_terminal(&folder);
    // Two lines down, one up, and the end, in one piece.
    user.write_all(b"jj\x1b[Akjq").unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        let is_late = std::time::Instant::now() > deadline;
        if is_late {
            child.kill().unwrap();
        }
        assert!(!is_late, "the last of several keys is lost");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
