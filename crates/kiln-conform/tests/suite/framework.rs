//! The rules about laws: exclusions are needed and name laws, absence counts as it should, children report.

use kiln_conform::{Chapter, LawOutcome, Loss, Subject, all_laws, run_all, run_chapter, run_test};
use kiln_sim::Mode;

use crate::simulated;

fn simulator() -> Subject {
    simulated::subject("the simulator", Mode::Seeded)
}

#[test]
fn names_are_unique_and_belong_to_their_chapter() {
    let mut names: Vec<_> = all_laws().map(|law| law.name).collect();
    let total = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), total);
    for chapter in Chapter::ALL {
        for law in chapter.laws() {
            assert!(law.name.starts_with(&format!("{}.", chapter.name())), "{law:?} in {chapter:?}");
            assert!(!law.says.is_empty() && !law.says.ends_with('.'), "{law:?}");
        }
    }
}

#[test]
fn an_exclusion_that_is_not_needed_is_a_failure() {
    let subject = simulator().exclude("device.healthy", "it was broken once");
    let summary = run_chapter(&subject, Chapter::Device);
    assert!(!summary.holds() && summary.failed() == 1, "{summary}");
    assert!(summary.to_string().contains("drop the exclusion"), "{summary}");
}

#[test]
fn an_exclusion_of_no_law_is_a_failure() {
    let summary = run_chapter(&simulator().exclude("device.wealthy", "a slip"), Chapter::Device);
    assert!(!summary.holds() && summary.to_string().contains("device.wealthy, which is no law"), "{summary}");
}

#[test]
fn an_exclusion_that_is_needed_counts_as_one() {
    let subject = Subject::new("nothing", kiln_conform::Kernels::ptx(), |_| Err("it does not open".into()));
    let summary = run_chapter(&subject.exclude("device.healthy", "it does not open"), Chapter::Device);
    assert_eq!((summary.passed(), summary.excluded()), (0, 1), "{summary}");
    assert_eq!(summary.failed(), Chapter::Device.laws().len() - 1);
    assert!(summary.to_string().contains("expected the driver to open, saw it does not open"), "{summary}");
}

#[test]
fn what_is_absent_is_skipped_unless_it_is_required() {
    let absent = run_all(&Subject::absent("a GPU", "there is none", false));
    assert!(absent.holds() && absent.skipped() == all_laws().count(), "{absent}");
    let required = run_all(&Subject::absent("a GPU", "there is none", true));
    assert!(!required.holds() && required.failed() == all_laws().count(), "{required}");
    assert!(required.to_string().contains("there is none"));
}

#[test]
fn a_child_that_runs_no_such_test_is_a_failure() {
    let subject = simulator().loss(Loss::ChildProcess);
    let summary = run_test(&subject, Chapter::Loss, module_path!(), "no_test_of_this_name");
    assert_eq!(summary.failed(), Chapter::Loss.laws().len(), "{summary}");
    let expected = |outcome: &LawOutcome| match outcome {
        LawOutcome::Failed(report) => report.text.contains("expected the child to run"),
        _ => false,
    };
    assert!(summary.results().iter().all(|result| expected(&result.outcome)), "{summary}");
}

mod in_children {
    use super::simulator;
    use kiln_conform::Loss;

    kiln_conform::laws!(simulator().loss(Loss::ChildProcess));
}
