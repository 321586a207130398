//! The command that repeats a recording, and names of files that a shell or a text cannot take as they are.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use kiln::group::RankEnvironment;
use kiln_trace::RepeatCommand;

use crate::folder::Folder;
use crate::outcome::{command, run};

const KILN: &str = env!("CARGO_BIN_EXE_kiln");

/// A folder whose commands see no variable of this process that would be a part of them.
fn in_folder(folder: &Folder, words: &[&OsStr]) -> Command {
    let mut command = command(&[]);
    without_variables(&mut command);
    command.args(words).current_dir(folder.path(""));
    command
}

/// Variables that would be part of a command that repeats.
fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"KILN_") || name == "CUDA_VISIBLE_DEVICES" {
            command.env_remove(name);
        }
    }
}

fn explained(folder: &Folder, file: &str) -> serde_json::Value {
    let outcome = run(in_folder(folder, &["explain".as_ref(), file.as_ref(), "--json".as_ref()]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.json()
}

/// What a shell says to a command.
fn shell(folder: &Folder, script: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("bash");
    without_variables(&mut shell);
    shell.args(["-c", script]).current_dir(folder.path(""));
    let output = shell.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_program_that_records_itself_is_repeated_as_it_was_run() {
    let folder = Folder::new();
    let words = ["demo", "--device", "sim", "--trace", "a b.kiln"];
    assert_eq!(run(in_folder(&folder, &words.map(OsStr::new))).code, Some(0));
    let json = explained(&folder, "a b.kiln");
    let repeat = json["repeat"].as_str().unwrap();
    assert_eq!(repeat, format!("{KILN} demo --device sim --trace 'a b.kiln'"));
    assert_eq!((&json["records_itself"], &json["is_repeat_whole"]), (&true.into(), &true.into()));
    std::fs::remove_file(folder.path("a b.kiln")).unwrap();
    let (code, said) = shell(&folder, repeat);
    assert!(code == Some(0) && PathBuf::from(folder.path("a b.kiln")).is_file(), "{said}");
    let text = run(in_folder(&folder, &["explain", "a b.kiln"].map(OsStr::new))).stdout;
    assert!(text.contains("To repeat it (which records it again): "), "{text}");
    // Who starts such a program to record it is told that it is recorded there, and not where it asks for.
    let outcome = run(in_folder(
        &folder,
        &["trace", "--", KILN, "demo", "--device", "sim", "--trace", "b"].map(OsStr::new),
    ));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(PathBuf::from(folder.path("trace.kiln")).is_file() && !PathBuf::from(folder.path("b")).exists());
    assert!(
        outcome.stderr.contains("recorded already") && outcome.stderr.contains("unset KILN_TRACE"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn words_that_are_no_text_are_repeated_as_they_were() {
    let folder = Folder::new();
    let odd = OsString::from_vec(b"a\xff\n\x1b[2J'b.kiln".to_vec());
    let words = ["demo".as_ref(), "--device".as_ref(), "sim".as_ref(), "--trace".as_ref(), odd.as_os_str()];
    assert_eq!(run(in_folder(&folder, &words)).code, Some(0));
    let outcome = run(in_folder(&folder, &["explain".as_ref(), &odd, "--json".as_ref()]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (repeat, made) = (outcome.json()["repeat"].as_str().unwrap().to_owned(), folder_names(&folder));
    assert!(repeat.ends_with("--trace $'a\\377\\n\\033[2J\\'b.kiln'"), "{repeat}");
    assert_eq!(made, std::slice::from_ref(&odd));
    std::fs::remove_file(PathBuf::from(folder.path("")).join(&odd)).unwrap();
    let (code, said) = shell(&folder, &repeat);
    assert_eq!((code, folder_names(&folder)), (Some(0), made), "{said}");
    let text = run(in_folder(&folder, &["explain".as_ref(), &odd])).stdout;
    assert!(text.contains(&repeat), "what is printed can be copied: {text}");
}

#[test]
fn a_rank_is_not_called_whole_and_has_what_its_launcher_said() {
    let folder = Folder::new();
    let mut rank =
        in_folder(&folder, &["trace", "r.kiln", "--", KILN, "demo", "--device", "sim"].map(OsStr::new));
    rank.env("KILN_RANK", "1").env("KILN_WORLD_SIZE", "2").env("KILN_JOB_TOKEN", "s3cret");
    rank.env("KILN_MEETING_POINT", "127.0.0.1:29500");
    assert_eq!(run(rank).code, Some(0));
    let json = explained(&folder, "r.kiln");
    let repeat = json["repeat"].as_str().unwrap();
    assert!(
        repeat.starts_with("KILN_RANK=1 KILN_WORLD_SIZE=2 KILN_MEETING_POINT=127.0.0.1:29500 kiln trace -- "),
        "{repeat}"
    );
    assert_eq!(json["is_repeat_whole"], false);
    let lacks = json["repeat_lacks"].as_str().unwrap();
    assert!(lacks.contains("one rank of a job") && lacks.contains("KILN_JOB_TOKEN"), "{lacks}");
    assert!(!std::fs::read(folder.path("r.kiln")).unwrap().windows(6).any(|part| part == b"s3cret"));
}

#[test]
fn every_variable_that_says_which_rank_a_process_is_is_kept() {
    for set in [
        &["KILN_RANK", "KILN_WORLD_SIZE"][..],
        &["RANK", "WORLD_SIZE"],
        &["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        &["PMI_RANK", "PMI_SIZE"],
        &["SLURM_PROCID", "SLURM_NPROCS"],
        &["JOB_COMPLETION_INDEX", "WORLD_SIZE"],
    ] {
        // What is asked for, with rank 0 of 3.
        let asked = std::cell::RefCell::new(BTreeSet::new());
        let value = |name: &str| match set.iter().position(|known| *known == name) {
            Some(0) => Some("0".to_owned()),
            Some(_) => Some("3".to_owned()),
            None => None,
        };
        let ranks = RankEnvironment::parse(|name| {
            asked.borrow_mut().insert(name.to_owned());
            value(name)
        });
        assert_eq!(ranks.unwrap().unwrap().size, 3, "{set:?}");
        // Variables of launchers that come before this one are asked for, and not set.
        let own = |name: &str| {
            let launcher = set[0].split('_').next().unwrap();
            name.starts_with(launcher)
                || name.starts_with("MASTER")
                || name.contains("MEETING")
                || name.starts_with("WORLD")
        };
        for name in asked.into_inner().into_iter().filter(|name| own(name)) {
            let find =
                |wanted: &str| if wanted == name { Some("x".into()) } else { value(wanted).map(Into::into) };
            let command = RepeatCommand::of(["./train".into()], find);
            assert!(command.alone().contains(&format!("{name}=")), "{name} is not in {}", command.alone());
            assert!(!command.is_whole(), "{}", command.alone());
        }
    }
}

#[test]
fn more_words_than_are_kept_are_not_called_too_long() {
    let folder = Folder::new();
    let script = format!("exec {KILN} demo --device sim");
    let mut words = vec!["trace", "m.kiln", "--", "sh", "-c", &script];
    words.extend(["x"; 300]);
    let words: Vec<&OsStr> = words.into_iter().map(OsStr::new).collect();
    // The shell has many words, and the program that is recorded few.
    assert_eq!(run(in_folder(&folder, &words)).code, Some(0));
    assert_eq!(explained(&folder, "m.kiln")["is_repeat_whole"], true);
    let many = RepeatCommand::of((0..300).map(|number| number.to_string().into()), |_| None);
    assert_eq!(many.lacks().to_string(), "the words behind the first 256 are not in the recording");
}

#[test]
fn the_advised_command_works_in_a_shell() {
    for name in ["it's mine.kiln", "-a.kiln", "a\tb;c.kiln"] {
        let folder = Folder::new();
        let file = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
        let mut program =
            in_folder(&folder, &["trace", &file, "--", KILN, "demo", "--device", "sim"].map(OsStr::new));
        let output = program.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let advised = said.split('`').nth(1).unwrap_or_else(|| panic!("{said}")).to_owned();
        let (code, why) = shell(&folder, &advised.replacen("kiln", KILN, 1));
        assert_eq!(code, Some(0), "{advised}: {why}");
    }
}

#[test]
fn names_that_are_no_text_work_for_every_recording() {
    let folder = Folder::new();
    let name = |text: &[u8]| OsString::from_vec(text.to_vec());
    let (one, out) = (name(b"a\xff.kiln"), name(b"a\xff.pftrace"));
    let demo = [KILN, "demo", "--device", "sim"].map(OsStr::new);
    let traced =
        [&["trace".as_ref(), &*one, "--perfetto".as_ref(), &*out, "--".as_ref()][..], &demo].concat();
    assert_eq!(run(in_folder(&folder, &traced)).code, Some(0));
    assert_eq!(folder_names(&folder), [one.clone(), out.clone()]);
    assert_eq!(run(in_folder(&folder, &["explain".as_ref(), &one])).code, Some(0));
    let again = ["trace".as_ref(), &*one, "--perfetto".as_ref(), &*out];
    assert_eq!(run(in_folder(&folder, &again)).code, Some(0));
    // With a number for each process, and read again by the pattern.
    let (many, outs) = (name(b"b\xff-%p.kiln"), name(b"b\xff-%p.pftrace"));
    let traced =
        [&["trace".as_ref(), &*many, "--perfetto".as_ref(), &*outs, "--".as_ref()][..], &demo].concat();
    assert_eq!(run(in_folder(&folder, &traced)).code, Some(0));
    let made = folder_names(&folder);
    assert_eq!(
        made.iter()
            .filter(|name| name.as_bytes().starts_with(b"b\xff-") && !name.as_bytes().contains(&b'%'))
            .count(),
        2,
        "{made:?}"
    );
    assert_eq!(run(in_folder(&folder, &["explain".as_ref(), &many])).code, Some(0));
    // By the variable alone.
    let mut program = in_folder(&folder, &demo[1..]);
    program.env("KILN_TRACE", name(b"c\xfe-%p.kiln"));
    let mut child = program.stdout(std::process::Stdio::null()).spawn().unwrap();
    let wanted = name(format!("c\u{1}-{}.kiln", child.id()).as_bytes()).into_vec();
    assert!(child.wait().unwrap().success());
    let wanted: Vec<u8> = wanted.iter().map(|byte| if *byte == 1 { 0xfe } else { *byte }).collect();
    assert!(folder_names(&folder).contains(&OsString::from_vec(wanted)), "{:?}", folder_names(&folder));
}

/// The names of all files in a folder.
fn folder_names(folder: &Folder) -> Vec<OsString> {
    let entries = std::fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
