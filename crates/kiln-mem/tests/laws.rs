//! What every resource and every decorator obeys, alone and stacked.

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

use law::LAWS;
use subject::SUBJECTS;

/// Memory of the simulated device; the law of exhaustion counts on it.
const MEMORY: u64 = 64 * rig::MIB;

/// Runs every law for every subject, except where an exclusion with a reason says otherwise; an excluded law that holds
/// is reported, so that exclusions do not outlive their reasons.
#[test]
fn every_subject_obeys_every_law() {
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        for law in LAWS {
            let excluded = subject.exclusions.iter().find(|(name, _)| *name == law.name);
            let run = std::panic::catch_unwind(|| (law.check)(subject, rig::Rig::new(7, MEMORY)));
            match (run, excluded) {
                (Err(_), None) => wrong.push(format!("{} breaks `{}`", subject.name, law.name)),
                (Ok(()), Some((_, why))) => {
                    wrong.push(format!("{} obeys `{}` although: {why}", subject.name, law.name));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_stack_prints_itself() {
    for subject in SUBJECTS {
        // A simulated device gives addresses out only once.
        let rig = rig::Rig::new(1, 1 << 30);
        assert_eq!((subject.make)(&rig).to_string(), subject.text, "{}", subject.name);
    }
}
