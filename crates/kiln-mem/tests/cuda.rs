//! What every resource and every layer obeys, on a CUDA device, where there is one. `KILN_REQUIRE_GPU=1` makes its
//! absence a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "pages/exported.rs"]
mod exported;
#[path = "laws/law.rs"]
mod law;
#[path = "rig/mod.rs"]
mod rig;
#[path = "laws/subject.rs"]
mod subject;

use std::io::Write;
use std::sync::Arc;

use kiln_cuda::CudaDevice;
use kiln_driver::Driver;
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
    let Some(driver) = open("laws") else { return };
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        assert_eq!((subject.make)(&Rig::over(driver.clone())).to_string(), subject.text);
        for law in LAWS {
            let is_excluded = EXCLUDED.iter().chain(subject.exclusions).any(|(name, _)| *name == law.name);
            let run = || (law.check)(&subject.make, Rig::over(driver.clone()));
            if !is_excluded && std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                wrong.push(format!("{} breaks `{}`", subject.name, law.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks_are_reached_through_descriptors_on_cuda() {
    let Some(driver) = open("descriptors of pages") else { return };
    if !driver.info().features.page_export {
        return note_skip("descriptors of pages", "the device cannot export pages");
    }
    exported::block_of_pages(Rig::over(driver.clone()));
    exported::remapped_block(Rig::over(driver));
}

/// The device; none, and a note, where there is none and none is required.
fn open(what: &str) -> Option<Arc<CudaDevice>> {
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    match CudaDevice::open(0) {
        Ok(driver) => Some(driver),
        Err(reason) if required || !reason.is_absence() => panic!("{reason}"),
        Err(reason) => {
            note_skip(what, &reason.to_string());
            None
        }
    }
}

/// A test that looked at nothing is counted as skipped, not as passed.
fn note_skip(what: &str, why: &str) {
    if let Some(path) = std::env::var_os("KILN_SKIP_LOG") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        // In one piece: other tests write there too.
        file.write_all(format!("kiln-mem {what} on CUDA: {why}\n").as_bytes()).unwrap();
    }
}
