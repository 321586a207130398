//! Ranks of one process of which one calls `split` and another something else: both are named as the program calls them.

use std::time::Duration;

use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig};
use kiln::sim::FindingKind;

use crate::rig::Rig;

/// No rank waits until this deadline, unless a split is taken for something else.
const UNUSED: Duration = Duration::from_secs(60);

fn ranks(rig: &Rig, deadline: Duration) -> Vec<DeviceCommunicator> {
    rig.group.communicators(&DeviceCommunicatorConfig { deadline }).unwrap()
}

#[test]
fn a_split_that_meets_another_collective_is_named_as_such() {
    let rig = Rig::new(2, 1);
    let ranks = ranks(&rig, UNUSED);
    ranks[0].barrier().submit().unwrap();
    let error = ranks[1].split(Some(0), 0).unwrap_err().to_string();
    let words = "rank 1 and rank 0 differ in the kind of collective 0: split and barrier; let all ranks";
    assert!(error.contains(words) && !error.contains("all_gather"), "{error}");
    let findings = rig.machine.findings();
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.kind, FindingKind::CollectiveMismatch);
    assert!(found.to_string().contains("split and barrier"), "{found}");
    // What rank 0 waits for can still come.
    ranks[1].barrier().submit().unwrap();
    let _ = rig.group.synchronize();
    rig.group.synchronize().unwrap();
}

#[test]
fn a_split_is_no_all_gather_of_the_same_length() {
    let rig = Rig::new(2, 1);
    let ranks = ranks(&rig, UNUSED);
    let gather = |rank: &DeviceCommunicator| {
        let (send, recv) = (rank.runtime().zeros::<u32>(3).unwrap(), rank.runtime().zeros::<u32>(6).unwrap());
        rank.all_gather(&send, &recv).submit().unwrap()
    };
    gather(&ranks[0]);
    let error = ranks[1].split(None, 0).unwrap_err().to_string();
    assert!(error.contains("the kind of collective 0: split and all_gather"), "{error}");
    gather(&ranks[1]);
    let _ = rig.group.synchronize();
    rig.group.synchronize().unwrap();
}

#[test]
fn a_rank_that_waits_in_a_split_is_told_of_the_one_that_does_not_come() {
    let rig = Rig::new(2, 1);
    let ranks = ranks(&rig, Duration::from_millis(150));
    let error = ranks[0].split(Some(0), 0).unwrap_err().to_string();
    let words = "waits in collective 0, split, for rank 1, which has not called it";
    assert!(error.contains(words), "{error}");
    assert_eq!(rig.machine.findings()[0].kind, FindingKind::CollectiveDeadlock);
}
