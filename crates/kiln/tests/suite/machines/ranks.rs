//! Ranks of one process on several devices, with a stand-in for NCCL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::group::{
    CollectiveOverdue, CommunicatorFailed, CommunicatorRankLost, DeviceCommunicator,
    DeviceCommunicatorConfig, DeviceGroup, GroupError, MeetingPoint, Rendezvous, RendezvousConfig,
};

use crate::machine::{Machine, calls};

/// Waits until the stand-in has logged so many calls of a name.
fn wait_for(name: &str, count: usize) {
    let began = Instant::now();
    while calls(name).len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", calls(name));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Two devices, on which a broadcast runs until it is aborted.
fn queue_that_waits() -> Machine {
    let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
    Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_RUNS", "1")
}

/// The worker process.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}

/// A device of the stand-in in a worker.
#[cfg(target_os = "linux")]
fn isolated(ordinal: u32) -> kiln::DeviceRuntime {
    use kiln::recovery::{DeviceSpec, Isolation, Process, WorkerEntry};
    let entry = WorkerEntry::Test("machines::ranks::worker".into());
    let names = ["FAKE_CUDA_DEVICES", "FAKE_CUDA_LOG", "FAKE_NCCL_WAITS"];
    let variables = names.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
    let isolation = Isolation::Process(Process { entry, variables, ..Process::default() });
    let config = kiln::RuntimeConfig { isolation, ..kiln::RuntimeConfig::default() };
    kiln::DeviceRuntime::open(&DeviceSpec::cuda(ordinal), config).unwrap()
}

fn overdue(error: &kiln::Error) -> CollectiveOverdue {
    error.downcast_ref::<CollectiveOverdue>().unwrap_or_else(|| panic!("{error}")).clone()
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

    fn a_rank_that_waits_for_its_first_collective_is_told_of_a_loss() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_WAITS", "ncclCommInitRankConfig")
    } => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
        let mut ranks = group.communicators(&config).unwrap();
        let (lost, left) = (ranks.remove(1), ranks.remove(0));
        let began = Instant::now();
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| left.barrier().submit().unwrap_err());
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waiting.is_finished());
            threads.spawn(move || {
                let _rank = lost;
                std::panic::resume_unwind(Box::new("this rank is to end"));
            }).join().unwrap_err();
            let error = waiting.join().unwrap();
            assert_eq!(error.lost_rank().map(|lost| lost.lost), Some(1), "{error}");
        });
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        wait_for("ncclCommAbort", 2);
        assert_eq!(calls("ncclMisused"), [""; 0]);
    }

    // Its worker is inside of the library then, and answers nothing.
    #[cfg(target_os = "linux")]
    fn a_rank_whose_worker_waits_inside_of_nccl_is_told_of_a_loss_and_keeps_its_worker() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_WAITS", "ncclBroadcast")
    } => {
        let group = DeviceGroup::new([isolated(0), isolated(1)]).unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(60) };
        let mut ranks = group.communicators(&config).unwrap();
        ranks.iter().for_each(|rank| assert!(rank.barrier().submit().is_ok()));
        group.synchronize().unwrap();
        let (lost, left) = (ranks.remove(1), ranks.remove(0));
        let changes = left.runtime().watch().status().changes;
        let (kept, buffer) = (left.runtime().upload(&[7_u32; 64]).unwrap(), left.runtime().upload(&[1_u32; 4]).unwrap());
        let next_buffer = left.runtime().upload(&[1_u32; 4]).unwrap();
        left.runtime().synchronize().unwrap();
        let ticket = left.broadcast(&buffer, 1).submit().unwrap();
        wait_for("ncclBroadcast", 1);
        let began = Instant::now();
        std::thread::scope(|threads| {
            // It asks for a function that was not used before, and has no answer until the worker is free.
            let next = threads.spawn(|| left.all_reduce_in_place(&next_buffer, kiln::group::Reduction::Sum).submit());
            std::thread::sleep(Duration::from_millis(100));
            threads.spawn(move || {
                let _rank = lost;
                std::panic::resume_unwind(Box::new("this rank is to end"));
            }).join().unwrap_err();
            let error = ticket.wait().unwrap_err();
            let told = error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}"));
            assert_eq!(told.lost, 1);
            // It is refused, or it was queued before the rank was told and is not done.
            if let Ok(ticket) = next.join().unwrap() {
                assert!(ticket.wait().is_err());
            }
        });
        let other = left.runtime().upload(&[9_u32; 3]).unwrap();
        assert_eq!((kept.download().unwrap(), other.download().unwrap()), (vec![7; 64], vec![9; 3]));
        assert!(began.elapsed() < Duration::from_secs(15), "long before the deadline: {:?}", began.elapsed());
        assert_eq!(left.runtime().watch().status().changes, changes, "the device was not lost, nor rebuilt");
        assert_eq!(calls("ncclMisused"), [""; 0]);
    }

    fn what_nccl_finds_wrong_ends_unfinished_collectives() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_RUNS", "1")
    } => {
        let group = DeviceGroup::all().unwrap();
        let ranks = group.communicators(&Default::default()).unwrap();
        let buffer = ranks[0].runtime().upload(&[1_u32; 4]).unwrap();
        // It runs until it is aborted.
        let ticket = ranks[0].broadcast(&buffer, 1).submit().unwrap();
        // SAFETY: no other thread of this test writes the environment.
        unsafe { std::env::set_var("FAKE_NCCL_STATE", "6") };
        let began = Instant::now();
        let error = ticket.wait().unwrap_err();
        let failed = error.downcast_ref::<CommunicatorFailed>().unwrap_or_else(|| panic!("{error}"));
        assert!(failed.cause.contains("ncclRemoteError (6)"), "{failed}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        // The device goes on.
        assert_eq!(ranks[0].runtime().upload(&[7_u32]).unwrap().download().unwrap(), [7]);
        let again = ranks[0].barrier().submit().unwrap_err().to_string();
        assert!(again.contains("ncclRemoteError"), "{again}");
    }

    fn a_rank_that_was_dropped_is_told_to_one_that_waits_for_it() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_RUNS", "1")
    } => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
        let mut ranks = group.communicators(&config).unwrap();
        ranks.iter().for_each(|rank| assert!(rank.barrier().submit().is_ok()));
        group.synchronize().unwrap();
        drop(ranks.remove(1));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(ranks[0].lost_rank(), None, "nothing waits for it");
        let buffer = ranks[0].runtime().upload(&[1_u32; 4]).unwrap();
        let error = ranks[0].broadcast(&buffer, 1).submit().unwrap().wait().unwrap_err();
        let lost = error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}"));
        assert_eq!(lost.lost, 1);
        assert!(lost.cause.contains("was dropped after 1 collective, and rank 0 waits in a later one"), "{lost}");
    }

    // Each rank has its place in the job, as processes have. The collective of rank 0 runs until it is aborted.
    fn a_rank_that_has_left_its_job_is_told_to_one_that_waits_for_it() on {
        let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
        Machine::fake().devices(2).with_library("KILN_NCCL", nccl).with("FAKE_NCCL_RUNS", "1")
    } => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
        let meet = |rank: u32| {
            let (point, gpu) = (point.clone(), group.runtime(rank as usize).unwrap().clone());
            move || {
                let job = Arc::new(Rendezvous::join(&RendezvousConfig::new(point, rank, 2)).unwrap());
                let rank = DeviceCommunicator::meet(&gpu, &job, &config).unwrap();
                rank.barrier().submit().unwrap().wait().unwrap();
                (rank, job)
            }
        };
        let (other, one) = (std::thread::spawn(meet(1)), std::thread::spawn(meet(0)));
        let (other, (rank, _job)) = (other.join().unwrap(), one.join().unwrap());
        drop(other);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(rank.lost_rank(), None, "nothing waits for it");
        let buffer = rank.runtime().upload(&[1_u32; 4]).unwrap();
        let ticket = rank.broadcast(&buffer, 1).submit().unwrap();
        let began = Instant::now();
        let error = ticket.wait().unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let lost = error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}"));
        assert_eq!(lost.lost, 1);
        assert!(lost.cause.contains("it has left the job in order after 1 collective, and rank 0 waits in a later one"), "{lost}");
    }

    fn a_rank_that_never_calls_a_collective_is_named_at_the_deadline() on queue_that_waits() => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_millis(400) };
        let ranks = group.communicators(&config).unwrap();
        ranks.iter().for_each(|rank| assert!(rank.barrier().submit().is_ok()));
        group.synchronize().unwrap();
        let (kept, buffer) = (ranks[0].runtime().upload(&[7_u32]).unwrap(), ranks[0].runtime().upload(&[1_u32; 4]).unwrap());
        let began = Instant::now();
        let ticket = ranks[0].broadcast(&buffer, 1).submit().unwrap();
        let line = line!() - 1;
        let told = overdue(&ticket.wait().unwrap_err());
        assert!(began.elapsed() >= config.deadline && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!((&told.missing[..], told.given_up_by, &told.number[..]), (&[1][..], None, "collective 1"), "{told}");
        assert_eq!((told.call.rank, &told.call.what[..]), (0, "broadcast of u32 root 1 of 4"));
        assert!(told.call.place.contains(&format!("ranks.rs:{line}:")), "{told}");
        // Another thread aborts, and the wait above need not see it.
        wait_for("ncclCommAbort", 1);
        assert_eq!(calls("ncclCommAbort").len(), 1, "the rank that has called nothing is left alone");
        // The device goes on, and the communicator says the same from then on.
        assert_eq!(kept.download().unwrap(), [7]);
        let again = ranks[0].barrier().submit().unwrap_err();
        assert_eq!(again.device_error().map(overdue), Some(told));
        // The rank that comes too late is told of it.
        let late = ranks[1].runtime().upload(&[1_u32; 4]).unwrap();
        let told = overdue(&ranks[1].broadcast(&late, 1).submit().unwrap().wait().unwrap_err());
        assert_eq!((&told.missing[..], told.given_up_by), (&[1][..], Some(0)), "{told}");
        assert_eq!(calls("ncclMisused"), [""; 0]);
    }

    fn collectives_that_differ_are_named_at_the_deadline_with_both_lines() on queue_that_waits() => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_millis(400) };
        let ranks = group.communicators(&config).unwrap();
        let buffers: Vec<_> = ranks.iter().zip([4, 5]).map(|(rank, len)| rank.runtime().upload(&vec![1_u32; len]).unwrap()).collect();
        let tickets: Vec<_> = ranks.iter().zip(&buffers).map(|(rank, buffer)| rank.broadcast(buffer, 1).submit().unwrap()).collect();
        let told: Vec<_> = tickets.iter().map(|ticket| overdue(&ticket.wait().unwrap_err())).collect();
        let other = told[0].other_call.as_ref().unwrap_or_else(|| panic!("{}", told[0]));
        assert_eq!((other.rank, &other.what[..]), (1, "broadcast of u32 root 1 of 5"));
        assert!(other.place.contains("ranks.rs:") && told[0].missing.is_empty(), "{}", told[0]);
        assert_eq!((told[1].call.rank, told[1].given_up_by), (1, Some(0)), "{}", told[1]);
    }

    fn a_collective_that_all_ranks_have_called_has_twice_the_deadline() on queue_that_waits() => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_millis(600) };
        let ranks = group.communicators(&config).unwrap();
        let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1_u32; 4]).unwrap()).collect();
        let began = Instant::now();
        let tickets: Vec<_> = ranks.iter().zip(&buffers).map(|(rank, buffer)| rank.broadcast(buffer, 1).submit().unwrap()).collect();
        let told = overdue(&tickets[0].wait().unwrap_err());
        assert!(began.elapsed() >= 2 * config.deadline, "{:?}", began.elapsed());
        assert!(told.missing.is_empty() && told.other_call.is_none(), "{told}");
        assert!(told.to_string().contains("all ranks have called it"), "{told}");
    }

    // Each rank has its place in the job, as processes have: they know of each other through the store alone.
    fn a_rank_of_a_job_that_never_calls_a_collective_is_named() on queue_that_waits() => {
        let group = DeviceGroup::all().unwrap();
        let config = DeviceCommunicatorConfig { deadline: Duration::from_millis(800) };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
        let meet = |rank: u32| {
            let (point, gpu) = (point.clone(), group.runtime(rank as usize).unwrap().clone());
            move || {
                let job = Arc::new(Rendezvous::join(&RendezvousConfig::new(point, rank, 2)).unwrap());
                let rank = DeviceCommunicator::meet(&gpu, &job, &config).unwrap();
                rank.barrier().submit().unwrap().wait().unwrap();
                (rank, job)
            }
        };
        let (other, one) = (std::thread::spawn(meet(1)), std::thread::spawn(meet(0)));
        let ((other, _other_job), (rank, _job)) = (other.join().unwrap(), one.join().unwrap());
        // What the other rank waits in, the first one has not called; and the other way round the next time.
        let buffer = other.runtime().upload(&[1_u32; 4]).unwrap();
        let told = overdue(&other.broadcast(&buffer, 0).submit().unwrap().wait().unwrap_err());
        assert_eq!((&told.missing[..], told.call.rank, told.given_up_by), (&[0][..], 1, None), "{told}");
        assert_eq!(told.number, "collective 1");
        let late = rank.runtime().upload(&[1_u32; 4]).unwrap();
        let told = overdue(&rank.broadcast(&late, 0).submit().unwrap().wait().unwrap_err());
        assert_eq!((&told.missing[..], told.call.rank, told.given_up_by), (&[0][..], 0, Some(1)), "{told}");
        assert_eq!(rank.lost_rank(), None, "no rank is lost");
    }
}
