//! Ranks of one process on several devices, with a stand-in for NCCL.

use std::time::{Duration, Instant};

use kiln::group::{DeviceGroup, GroupError};

use crate::machine::{Machine, calls};

/// Waits until the stand-in has logged so many calls of a name.
fn wait_for(name: &str, count: usize) {
    let began = Instant::now();
    while calls(name).len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", calls(name));
        std::thread::sleep(Duration::from_millis(5));
    }
}

on_machine! {
    // No abort returns before all ranks are aborted: one after the other, each would be given up.
    fn all_ranks_of_a_process_are_aborted_at_once() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(4).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_ABORTS", "4")
    } => {
        let group = DeviceGroup::all().unwrap();
        let mut ranks = group.communicators(&Default::default()).unwrap();
        let lost = ranks.remove(2);
        std::thread::spawn(move || {
            let _rank = lost;
            std::panic::resume_unwind(Box::new("this rank is to end"));
        }).join().unwrap_err();
        wait_for("ncclCommAborted", 4);
        let began: Vec<u64> = calls("ncclCommAbort").iter().map(|time| time.parse().unwrap()).collect();
        assert_eq!(began.len(), 4);
        let apart = began.iter().max().unwrap() - began.iter().min().unwrap();
        assert!(apart < 2_000, "an abort is given up after two seconds: {began:?}");
        for rank in &ranks {
            assert_eq!(rank.lost_rank().map(|lost| lost.rank), Some(2));
            let error = rank.barrier().submit().unwrap_err();
            assert!(matches!(&error, GroupError::Rank { .. }) && error.lost_rank().is_some(), "{error}");
        }
    }
}
