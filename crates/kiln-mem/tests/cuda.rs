//! What every resource and every decorator obeys, on a CUDA device, where there is one. `KILN_REQUIRE_GPU=1` makes its
//! absence a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "laws/law.rs"]
mod law;
#[path = "rig/mod.rs"]
mod rig;
#[path = "laws/subject.rs"]
mod subject;

use std::io::Write;

use kiln_cuda::CudaDevice;
use law::LAWS;
use rig::Rig;
use subject::SUBJECTS;

/// Laws that are not checked here, and why.
const EXCLUDED: &[(&str, &str)] = &[(
    "exhaustion",
    "the memory of a GPU is shared with other programs; it is exhausted on the simulated device",
)];

#[test]
fn every_subject_obeys_every_law_on_cuda() {
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    let driver = match CudaDevice::open(0) {
        Ok(driver) => driver,
        Err(reason) if required || !reason.is_absence() => panic!("{reason}"),
        Err(reason) => return note_skip(&reason.to_string()),
    };
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        assert_eq!((subject.make)(&Rig::over(driver.clone())).to_string(), subject.text);
        for law in LAWS {
            let is_excluded = EXCLUDED.iter().chain(subject.exclusions).any(|(name, _)| *name == law.name);
            let run = || (law.check)(subject, Rig::over(driver.clone()));
            if !is_excluded && std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                wrong.push(format!("{} breaks `{}`", subject.name, law.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A test that looked at nothing is counted as skipped, not as passed.
fn note_skip(why: &str) {
    if let Some(path) = std::env::var_os("KILN_SKIP_LOG") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "kiln-mem laws on CUDA: {why}").unwrap();
    }
}
