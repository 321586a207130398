//! Work over several devices.

use std::sync::Arc;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use kiln::error::ErrorKind;
use kiln::probe::{Decline, PartOutcome, Policy, Prober, gather};
use kiln_sim::DeviceConfig;

use super::scripted::{Scripted, fault, no_driver, out_of_memory, prober};

fn three() -> (Arc<Scripted>, Prober) {
    let cuda = Scripted::cuda([DeviceConfig::default(), DeviceConfig::small(), DeviceConfig::default()]);
    let prober = prober(&cuda);
    (cuda, prober)
}

#[test]
fn the_parts_cover_the_work_by_weight() {
    let (cuda, prober) = three();
    let shares = prober.balanced_partition(1000).unwrap();
    assert_eq!(shares.iter().map(|share| share.ordinal).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((shares[0].range.start, shares[2].range.end), (0, 1000));
    assert!(shares.windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
    let counts: Vec<u64> = shares.iter().map(|share| share.range.end - share.range.start).collect();
    assert!(counts[1] < counts[0] && counts[0].abs_diff(counts[2]) <= 1);
    assert!(cuda.opened().is_empty());
}

#[test]
fn each_part_runs_on_its_device_and_the_results_come_in_order() {
    let (_, prober) = three();
    let parts = prober.scatter(100, |runtime, range| PartOutcome::Done((runtime.ordinal(), range)));
    let parts = parts.done().unwrap();
    for part in &parts {
        assert!(matches!(&part.outcome, PartOutcome::Done((ordinal, range))
            if *ordinal == part.share.ordinal && *range == part.share.range));
    }
    let results = gather(parts).done().unwrap();
    assert_eq!(results.iter().map(|(ordinal, _)| *ordinal).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_device_without_a_part_is_left_alone() {
    let (cuda, prober) = three();
    let parts = prober.scatter(1, |_, range| PartOutcome::Done(range)).done().unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(cuda.opened().len(), 1);
    assert!(prober.scatter(0, |_, range| PartOutcome::Done(range)).done().unwrap().is_empty());
}

#[test]
fn workers_stay() {
    let (_, prober) = three();
    let threads = || -> Vec<ThreadId> {
        gather(prober.scatter(300, |_, _| PartOutcome::Done(thread::current().id())).done().unwrap())
            .done()
            .unwrap()
    };
    let first = threads();
    assert_eq!(first, threads());
    assert!(!first.contains(&thread::current().id()));
}

#[test]
fn declined_and_failed_are_different_answers() {
    let (_, prober) = three();
    let outcome = |decline_on: u32, fail_on: u32| {
        let parts = prober.scatter(300, move |runtime, _| match runtime.ordinal() {
            ordinal if ordinal == fail_on => PartOutcome::Failed(out_of_memory().into()),
            ordinal if ordinal == decline_on => PartOutcome::declined("too small"),
            _ => PartOutcome::Done(()),
        });
        gather(parts.done().unwrap())
    };
    assert!(matches!(outcome(9, 9), PartOutcome::Done(results) if results.len() == 3));
    assert!(matches!(outcome(0, 9), PartOutcome::Declined(Decline::ByJob(reason)) if reason == "too small"));
    assert!(matches!(outcome(0, 2), PartOutcome::Failed(error) if error.is_oom()));
}

#[test]
fn without_a_device_the_work_is_declined_and_with_a_broken_one_it_fails() {
    let absent = prober(&Scripted::absent()).scatter(10, |_, _| PartOutcome::Done(()));
    assert!(matches!(absent, PartOutcome::Declined(Decline::NoDevice(reason)) if reason == no_driver()));

    let off = prober(&Scripted::one_device());
    off.set_policy(Policy::Off).unwrap();
    assert!(matches!(
        off.scatter(10, |_, _| PartOutcome::Done(())),
        PartOutcome::Declined(Decline::NoDevice(_))
    ));

    let cuda = Scripted::one_device();
    cuda.will_list(Err(fault().into()));
    assert!(matches!(prober(&cuda).scatter(10, |_, _| PartOutcome::Done(())), PartOutcome::Failed(_)));
}

#[test]
fn a_device_that_does_not_open_fails_its_part_only() {
    let (cuda, prober) = three();
    cuda.will_fail_to_open(fault());
    let parts = prober.scatter(300, |_, _| PartOutcome::Done(())).done().unwrap();
    let failed = parts.iter().filter(|part| matches!(part.outcome, PartOutcome::Failed(_))).count();
    let done = parts.iter().filter(|part| matches!(part.outcome, PartOutcome::Done(()))).count();
    assert_eq!((failed, done), (1, 2));
}

#[test]
fn a_panic_is_the_error_of_its_part_and_the_worker_lives_on() {
    let (_, prober) = three();
    let parts = prober.scatter(300, |runtime, _| {
        assert_ne!(runtime.ordinal(), 1, "planned");
        PartOutcome::Done(())
    });
    let parts = parts.done().unwrap();
    assert!(matches!(&parts[1].outcome, PartOutcome::Failed(error)
        if matches!(error.kind(), ErrorKind::JobPanicked { message } if message.contains("planned"))));
    assert!(matches!((&parts[0].outcome, &parts[2].outcome), (PartOutcome::Done(()), PartOutcome::Done(()))));
    assert_eq!(
        gather(prober.scatter(300, |_, _| PartOutcome::Done(1)).done().unwrap()).done().unwrap(),
        [1, 1, 1]
    );
}

#[test]
fn a_job_may_scatter_again() {
    let (_, prober) = three();
    let prober = Arc::new(prober);
    let inner = Arc::clone(&prober);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let parts = prober.scatter(3, move |_, range| {
        let log = Arc::clone(&log);
        gather(
            inner
                .scatter(6, move |runtime, range| {
                    log.lock().unwrap().push(runtime.ordinal());
                    PartOutcome::Done(range.end - range.start)
                })
                .done()
                .unwrap(),
        )
        .done()
        .map_or_else(
            || PartOutcome::declined("inner"),
            |counts| PartOutcome::Done((range, counts.iter().sum::<u64>())),
        )
    });
    let totals = gather(parts.done().unwrap()).done().unwrap();
    assert!(totals.iter().all(|(_, total)| *total == 6));
    assert!(!seen.lock().unwrap().is_empty());
}
