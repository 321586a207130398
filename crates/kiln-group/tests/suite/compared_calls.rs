//! Calls that are compared through the store of a job before they are queued. The ranks are threads over one simulated machine, which knows nothing of that.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction};

use crate::job_rig::{free_port, join};
use crate::rig::Rig;

/// Two ranks that meet in a job, each on a thread with a device of one machine; what each of them returns.
fn ranks<T: Send>(deadline: Duration, part: impl Fn(&DeviceCommunicator) -> T + Sync) -> Vec<T> {
    let (rig, port) = (Rig::new(2, 1), free_port());
    let run = |rank: u32| {
        let gpu = rig.group.runtime(rank as usize).unwrap().clone();
        let part = &part;
        move || {
            let job = join(port, rank, 2);
            let config = DeviceCommunicatorConfig { deadline };
            let communicator = DeviceCommunicator::meet(&gpu, &job, &config).unwrap();
            communicator.compare_calls().unwrap();
            let answer = part(&communicator);
            job.barrier("the end").unwrap();
            drop(communicator);
            drop(Arc::into_inner(job));
            answer
        }
    };
    thread::scope(|threads| {
        let threads: Vec<_> = (0..2).map(|rank| threads.spawn(run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn calls_that_are_alike_are_done() {
    let sums = ranks(Duration::from_secs(20), |rank| {
        let buffer = rank.runtime().upload(&[rank.rank() + 1; 3]).unwrap();
        for _ in 0..5 {
            rank.all_reduce_in_place(&buffer, Reduction::Max).submit().unwrap();
        }
        rank.barrier().submit().unwrap();
        let other = rank.runtime().zeros::<u32>(3).unwrap();
        let peer = 1 - rank.rank();
        rank.send(&buffer, peer).and(rank.recv(&other, peer)).submit().unwrap();
        other.download().unwrap()
    });
    assert_eq!(sums, [[2; 3], [2; 3]]);
}

#[test]
fn a_call_that_differs_is_refused_on_both_ranks_with_both_lines() {
    let told = ranks(Duration::from_secs(20), |rank| {
        let buffer = rank.runtime().upload(&vec![1_u32; 3 + rank.rank() as usize]).unwrap();
        rank.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap_err()
    });
    for (rank, error) in (0_u32..).zip(&told) {
        let GroupError::OtherCollective { call, .. } = error else { panic!("{error}") };
        let (own, other) = &**call;
        assert_eq!((own.rank, other.rank), (rank, 1 - rank), "{error}");
        assert_eq!(own.what, format!("all_reduce of u32 sum of {}", 3 + rank));
        assert_eq!(other.what, format!("all_reduce of u32 sum of {}", 4 - rank));
        assert!(own.place.contains("compared_calls.rs:") && own.place == other.place, "{error}");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named_before_anything_is_queued() {
    let told = ranks(Duration::from_millis(300), |rank| {
        (rank.rank() == 0).then(|| rank.barrier().submit().unwrap_err().to_string())
    });
    let told = told[0].as_ref().unwrap();
    assert!(told.contains("rank 1 did not come to collective 0, barrier"), "{told}");
}

#[test]
fn sends_that_wait_for_each_other_are_named() {
    let told = ranks(Duration::from_secs(20), |rank| {
        let (peer, own) = (1 - rank.rank(), rank.runtime().upload(&[1_u32]).unwrap());
        let other = rank.runtime().zeros::<u32>(1).unwrap();
        rank.send(&own, peer).submit().and_then(|_| rank.recv(&other, peer).submit()).err()
    });
    assert!(told.iter().flatten().any(|error| matches!(error, GroupError::CrossingSends { .. })), "{told:?}");
}

#[test]
fn ranks_without_a_job_are_told_what_to_do_only_on_gpus() {
    let ranks = Rig::new(2, 1).group.communicators(&Default::default()).unwrap();
    ranks[0].compare_calls().unwrap();
    DeviceCommunicator::alone(ranks[0].runtime()).unwrap().compare_calls().unwrap();
}
