//! Trials on the simulated device, and the same ones on a GPU beside it.
//!
//! The GPU is used by children of the test: what faults takes its context along, and a child that ends early is followed by another one that goes on
//! with the next trial. So one run shows all differences.
//!
//! What an H200 answered is kept as hashes in `recorded.txt`: with `KILN_RECORD=FOLDER` they are written there, as a file for each test, beside the whole
//! answers to those trials that differ. The simulated device is held against the hashes on every machine.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kiln::code_cache::CachePlace;
use kiln::probe::TestGate;
use kiln_driver::DeviceKind;

use super::trial::{Trial, hash};
use crate::stage::{Kind, Stage};

/// The trial that a child begins with.
const CHILD_VARIABLE: &str = "KILN_HOPPER_TRIAL";
/// A child that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(40);
/// Children that are followed by another one.
const MOST_CHILDREN: usize = 40;
/// Bytes of answers that a child keeps.
const MOST_KEPT_BYTES: usize = 3 << 20;
/// What an H200 gave: fingerprint of the trial, hash of the result, name.
static RECORDED: &str = include_str!("recorded.txt");

/// Runs the trials of the test with that name.
pub(crate) fn judge(name: &str, trials: &[Trial]) {
    if let Ok(first) = std::env::var(CHILD_VARIABLE) {
        return compare(name, trials, first.parse().unwrap());
    }
    let mut wrong: Vec<String> = trials.iter().filter_map(|trial| simulated(trial).err()).collect();
    println!("{name}: {} of {} trials are wrong on the simulated device", wrong.len(), trials.len());
    if gpu_is_there(name) {
        wrong.extend(on_gpu(name, trials));
    }
    assert!(wrong.is_empty(), "{name}: {} of {} trials\n{}", wrong.len(), trials.len(), wrong.join("\n"));
}

/// What a trial gives on the simulated device, if its oracle and the recorded answer agree.
fn simulated(trial: &Trial) -> Result<Vec<u8>, String> {
    let stage = Stage::open(Kind::Simulated, 1, &CachePlace::Off);
    let ran = trial.run(stage.runtime());
    let result = ran.map_err(|error| format!("{}: simulated: {}", trial.name, stage.explain(&error)))?;
    if let Some(found) = stage.first_finding() {
        return Err(format!("{}: simulated: {found}", trial.name));
    }
    if let Some(text) = trial.wrong(&result) {
        return Err(format!("simulated, oracle: {text}"));
    }
    let answer = format!("{:016x}", hash(&[&result]));
    match recorded(&fingerprint(trial)) {
        Some(recorded) if recorded == answer => Ok(result),
        Some(_) => Err(format!("{}: the result is not what an H200 gave", trial.name)),
        None => Err(format!(
            "{}: `recorded.txt` has no answer of an H200 to it; run the test on one with KILN_RECORD=FOLDER and add the line",
            trial.name
        )),
    }
}

fn fingerprint(trial: &Trial) -> String {
    format!("{:016x}", trial.fingerprint())
}

/// The hash of the answer to a trial.
fn recorded(fingerprint: &str) -> Option<&'static str> {
    RECORDED.lines().find_map(|line| line.strip_prefix(fingerprint)?.split_whitespace().next())
}

/// What is wrong between trials and recorded answers: a trial with none or with two, and an answer to no trial. Two tests may have the same trial.
pub(crate) fn unmatched(trials: &[Trial]) -> Vec<String> {
    let fingerprints: Vec<String> = trials.iter().map(fingerprint).collect();
    let mut wrong = Vec::new();
    for (trial, fingerprint) in trials.iter().zip(&fingerprints) {
        let answers = RECORDED.lines().filter(|line| line.starts_with(fingerprint.as_str())).count();
        if answers != 1 {
            wrong.push(format!("{}: {answers} answers, not one", trial.name));
        }
    }
    let is_answered =
        |line: &&str| fingerprints.iter().any(|fingerprint| line.starts_with(fingerprint.as_str()));
    wrong.extend(
        RECORDED
            .lines()
            .filter(|line| !is_answered(line))
            .map(|line| format!("no trial has the answer `{line}`")),
    );
    wrong
}

/// Whether there is a GPU of the architecture that the trials are for.
fn gpu_is_there(name: &str) -> bool {
    let gpu = match kiln::probe::gpu_for_test(name).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => gpu,
        TestGate::Ready(_) => {
            println!("skipped: the policy asks for a simulated device");
            return false;
        }
        TestGate::Skipped(absence) => {
            println!("skipped: {absence}");
            return false;
        }
    };
    let capability = gpu.info().capability;
    let fits = (capability.major, capability.minor) == (9, 0);
    if !fits {
        println!(
            "skipped: the GPU is sm_{}{}, the kernels are for sm_90a",
            capability.major, capability.minor
        );
    }
    fits
}

/// Where the GPU differs; children run the trials.
fn on_gpu(name: &str, trials: &[Trial]) -> Vec<String> {
    let (mut next, mut wrong, mut answers) = (0, Vec::<String>::new(), String::new());
    let folder = std::env::temp_dir();
    for child in 0..MOST_CHILDREN {
        let file = folder.join(format!("kiln-hopper-{}-{name}-{child}", std::process::id()));
        let end = run_child(name, next, &file);
        let said = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        let mut last = next;
        let mut is_done = false;
        for line in said.lines() {
            match line.split_once(' ') {
                Some(("|trial", number)) => last = number.parse().unwrap_or(last),
                Some(("|differs", text)) => wrong.push(format!("GPU: {text}")),
                Some(("|more", text)) => {
                    if let Some(last) = wrong.last_mut() {
                        let _ = write!(last, "\n{text}");
                    }
                }
                Some(("|answer", text)) => {
                    let _ = writeln!(answers, "{text}");
                }
                Some(("|end", _)) => is_done = true,
                _ => {}
            }
        }
        if is_done {
            break;
        }
        let trial = trials.get(last).map_or("", |trial| &trial.name);
        let words: String =
            said.lines().filter(|line| !line.starts_with('|')).map(|l| format!("\n    {l}")).collect();
        wrong.push(format!("GPU: {trial}: the child {end}{words}"));
        next = last + 1;
        if next >= trials.len() {
            break;
        }
    }
    let count = answers.lines().count();
    println!("{name}: the GPU answered {count} of {} trials", trials.len());
    if let Some(folder) = std::env::var_os("KILN_RECORD") {
        std::fs::write(answer_file(&folder, name, "txt"), answers).unwrap();
    }
    wrong
}

/// Starts this test again for the trials from `first` on; how that ended.
fn run_child(name: &str, first: usize, file: &PathBuf) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD_VARIABLE, first.to_string());
    let output = File::create(file).unwrap();
    child.stdin(Stdio::null()).stderr(output.try_clone().unwrap()).stdout(output);
    let mut child = child.spawn().unwrap();
    let (mut bytes, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return format!("ended with {status}");
        }
        let now = std::fs::metadata(file).map_or(0, |file| file.len());
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        }
        if since.elapsed() > SILENCE {
            let _ = child.kill();
            let _ = child.wait();
            return format!("said nothing for {} seconds", SILENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answer_file(folder: &OsStr, name: &str, end: &str) -> PathBuf {
    Path::new(folder).join(format!("h200-{}.{end}", name.replace("::", "-")))
}

/// Keeps the answer to a trial that differs, where answers are recorded: its number and length, 4 bytes each, and then itself.
fn keep(name: &str, at: usize, answer: &[u8], bytes_left: &mut usize) {
    let Some(folder) = std::env::var_os("KILN_RECORD").filter(|_| answer.len() <= *bytes_left) else {
        return;
    };
    *bytes_left -= answer.len();
    let mut file =
        OpenOptions::new().create(true).append(true).open(answer_file(&folder, name, "bin")).unwrap();
    let head = [at as u32, answer.len() as u32].map(u32::to_le_bytes).concat();
    file.write_all(&[&head[..], answer].concat()).unwrap();
}

/// What a child does: trials from one on, on both devices.
fn compare(name: &str, trials: &[Trial], first: usize) {
    let gpu = Stage::open(Kind::Cuda, 0, &CachePlace::Off);
    let mut bytes_left = MOST_KEPT_BYTES;
    // Behind the name of the test, which has no end of its line yet.
    println!();
    for (at, trial) in trials.iter().enumerate().skip(first) {
        println!("|trial {at}");
        let there = match trial.run(gpu.runtime()) {
            Ok(there) => there,
            Err(error) => {
                let text = format!("{}: {error:#}", trial.name).replace('\n', "\n|more ");
                println!("|differs {text}");
                // A fault takes the context along: another child goes on.
                if error.is_sticky() && at + 1 < trials.len() {
                    std::process::exit(1);
                }
                continue;
            }
        };
        println!("|answer {:016x} {:016x} {}", trial.fingerprint(), hash(&[&there]), trial.name);
        let stage = Stage::open(Kind::Simulated, 1, &CachePlace::Off);
        let text = match trial.run(stage.runtime()) {
            Ok(here) => trial.differences(["here", "GPU"], &here, &there),
            Err(error) => Some(format!("{}: simulated: {error:#}", trial.name)),
        };
        // The oracle judges both.
        let text = text.map(|text| match trial.wrong(&there) {
            Some(_) => format!("{text}\n    the GPU is not inside of the oracle's limits either"),
            None => text,
        });
        if let Some(text) = text {
            keep(name, at, &there, &mut bytes_left);
            println!("|differs {}", text.replace('\n', "\n|more "));
        }
    }
    println!("|end .");
}
