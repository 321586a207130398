//! Runs laws on a subject.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::child_process;
use crate::driver_under_test::{Absent, Loss, Opened, Subject};
use crate::fixture::Rig;
use crate::law::{Chapter, Law, Stop, all_laws, fail};
use crate::skip_log;
use crate::summary::{LawOutcome, LawReport, LawResult, Summary};

/// Runs every law on a subject, those that lose the device included, unless that needs a separate process; for
/// those use [`laws!`](crate::laws).
pub fn run_all(subject: &Subject) -> Summary {
    let chapters = Chapter::ALL.iter().filter(|chapter| {
        **chapter != Chapter::Loss || subject.loss == Loss::FreshDevice || subject.absent.is_some()
    });
    let none = Summary { subject: subject.name.clone(), results: Vec::new(), unknown_exclusions: Vec::new() };
    chapters.map(|chapter| run_chapter(subject, *chapter)).fold(none, Summary::and)
}

/// Runs the laws of one chapter on a subject, in this process.
pub fn run_chapter(subject: &Subject, chapter: Chapter) -> Summary {
    run_laws(subject, chapter.laws(), run_law)
}

/// Runs the laws of one chapter, for a test of that name. Laws that must not lose the device of this process run in
/// a child, which is this test binary asked for this test alone.
///
/// A chapter that is skipped because there is no device leaves a line in the file `KILN_SKIP_LOG` names, if it names one.
/// Chapters of all subjects in a process take turns, because some laws look at what the whole device has free.
pub fn run_test(subject: &Subject, chapter: Chapter, module: &str, test: &str) -> Summary {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Absent { reason, required: false }) = &subject.absent {
        skip_log::note(&child_process::test_path(module, test), reason);
    }
    if let Some(name) = child_process::wanted_law() {
        let laws: Vec<&'static Law> = chapter.laws().iter().filter(|law| law.name == name).collect();
        return run_laws(subject, laws, run_law);
    }
    if chapter == Chapter::Loss && subject.loss == Loss::ChildProcess {
        let path = child_process::test_path(module, test);
        return run_laws(subject, chapter.laws(), |_, law| child_process::run(law, &path));
    }
    run_chapter(subject, chapter)
}

fn run_laws(
    subject: &Subject,
    laws: impl IntoIterator<Item = &'static Law>,
    run: impl Fn(&Subject, &'static Law) -> LawOutcome,
) -> Summary {
    let result = |law: &'static Law| {
        let outcome = match &subject.absent {
            Some(absent) => skip(absent),
            None => excuse(run(subject, law), subject.exclusion(law.name)),
        };
        LawResult { law, outcome }
    };
    let known = |name: &str| all_laws().any(|law| law.name == name);
    Summary {
        subject: subject.name.clone(),
        results: laws.into_iter().map(result).collect(),
        unknown_exclusions: subject
            .exclusions
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !known(name))
            .collect(),
    }
}

fn skip(absent: &Absent) -> LawOutcome {
    if absent.required {
        let text = format!("expected a device, saw that {}", absent.reason);
        return LawOutcome::Failed(LawReport { text, round: 0 });
    }
    LawOutcome::Skipped(absent.reason.clone())
}

fn excuse(outcome: LawOutcome, exclusion: Option<&'static str>) -> LawOutcome {
    match (outcome, exclusion) {
        (LawOutcome::Failed(_), Some(reason)) => LawOutcome::Excluded(reason),
        (LawOutcome::Passed, Some(reason)) => LawOutcome::UnexpectedPass(reason),
        (outcome, _) => outcome,
    }
}

/// Runs a law in all its rounds; the first that stops it counts.
pub(crate) fn run_law(subject: &Subject, law: &'static Law) -> LawOutcome {
    for round in 0..subject.rounds {
        let opened = (subject.open)(round).map_err(|why| fail("the driver to open", why));
        let verdict = opened.and_then(|opened| run_once(subject, law, opened, round));
        match verdict {
            Ok(()) => {}
            Err(Stop::Failed(failure)) => return LawOutcome::Failed(LawReport::of(&failure, round)),
            Err(Stop::Inapplicable(why)) => return LawOutcome::Inapplicable(why),
        }
    }
    LawOutcome::Passed
}

/// Runs a law once, on a driver that was opened for it, gives back what it made, and asks what the driver thinks of it.
///
/// # Errors
/// Where the law fails, or that there is nothing to show.
pub fn run_once(subject: &Subject, law: &Law, opened: Opened, round: u64) -> Result<(), Stop> {
    let Opened { driver, peer, verdict } = opened;
    let rig = Rig::new(subject, round, driver, peer);
    catch_unwind(AssertUnwindSafe(|| (law.run)(&rig))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(fail("no call to panic", text))
    })?;
    if law.loses_device() {
        return Ok(());
    }
    rig.finish()?;
    drop(rig);
    match verdict {
        Some(verdict) => verdict().map_err(|seen| fail("nothing to be found after the law", seen)),
        None => Ok(()),
    }
}
