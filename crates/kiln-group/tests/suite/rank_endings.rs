//! Ranks that end in a bad moment or are asked for twice, and what the others are told.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kiln::driver::Code;
use kiln::group::{
    DeviceCommunicator, GroupError, MeetingPoint, RebuiltCommunicator, Reduction, Rendezvous,
    RendezvousConfig, RendezvousError,
};
use kiln::sim::{FaultPlan, Links, PlannedFault};

use crate::job_rig::free_port;
use crate::rank_scenes::{await_loss, lose, within};
use crate::rig::Rig;

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(20);
    config
}

#[test]
fn a_rank_that_panics_just_after_another_loss_is_lost() {
    for seed in 0..50 {
        let rig = Rig::new(3, seed);
        let mut ranks = rig.group.communicators(&within(Duration::from_secs(2))).unwrap();
        let (last, second, first) = (ranks.remove(2), ranks.remove(1), ranks.remove(0));
        let second = thread::spawn(move || {
            // It ends while it is being told.
            while second.lost_rank().is_none() {
                std::hint::spin_loop();
            }
            std::panic::resume_unwind(Box::new("this rank is to end"));
        });
        lose(last);
        assert!(second.join().is_err());
        await_loss(&first);
        let rebuilt = first.rebuild().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(rebuilt.former_ranks, [0], "seed {seed}");
    }
}

#[test]
fn a_rank_that_returns_at_the_loss_of_its_device_is_lost() {
    for call in 40..80 {
        let fault = PlannedFault::LostAtCall { call, code: Code::ECC_UNCORRECTABLE };
        let machine = crate::rig::machine(2, 1, Links::all(), FaultPlan::none().on(1, fault));
        let Ok(rig) = Rig::try_over(machine) else { continue };
        let Ok(mut ranks) = rig.group.communicators(&within(Duration::from_secs(20))) else { continue };
        let work = |rank: DeviceCommunicator| {
            move || -> Result<(), GroupError> {
                let failed = |source| GroupError::Rank { rank: rank.rank(), source };
                for _ in 0..60 {
                    let buffer = rank.runtime().upload(&[1_u64]).map_err(failed)?;
                    // A download may be told instead that the buffer was not written.
                    rank.all_reduce_in_place(&buffer, Reduction::Sum).submit()?.wait().map_err(failed)?;
                }
                Ok(())
            }
        };
        let (other, first) = (ranks.remove(1), ranks.remove(0));
        let threads = [thread::spawn(work(first)), thread::spawn(work(other))];
        let [first, other] = threads.map(|thread| thread.join().unwrap());
        let other = other.unwrap_err();
        assert!(other.is_lost(), "call {call}: {other}");
        let told = first.unwrap_err();
        let lost = told.lost_rank().unwrap_or_else(|| panic!("call {call}: {told}"));
        assert_eq!(lost.lost, 1, "call {call}: {told}");
        assert!(!lost.cause.contains("panicked") && !lost.cause.contains("dropped"), "call {call}: {told}");
    }
}

#[test]
fn the_second_meeting_of_a_job_is_a_second_communicator_on_every_rank() {
    let rig = Rig::new(2, 1);
    let port = free_port();
    let threads = [0, 1].map(|rank: u32| {
        let gpu = rig.group.runtime(rank as usize).unwrap().clone();
        thread::spawn(move || {
            let job = Arc::new(Rendezvous::join(&config(port, rank, 2)).unwrap());
            let meet = || DeviceCommunicator::meet(&gpu, &job, &within(Duration::from_secs(20)));
            let first = meet().unwrap();
            if rank == 0 {
                // The other one comes to the second meeting before its id is made.
                thread::sleep(Duration::from_millis(300));
            }
            let second = meet().unwrap_or_else(|error| panic!("rank {rank}: {error}"));
            assert!(first.id() != second.id());
            for (communicator, factor) in [(&second, 1), (&first, 100)] {
                let buffer = gpu.upload(&[(rank + 1) * factor; 3]).unwrap();
                communicator.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
                assert_eq!(buffer.download().unwrap(), [3 * factor; 3]);
            }
            job.barrier("end").unwrap();
            second.id()
        })
    });
    let ids = threads.map(|thread| thread.join().unwrap());
    assert_eq!(ids[0], ids[1]);
}

/// Rebuilds on all these ranks at once.
fn rebuild(
    ranks: &[DeviceCommunicator],
    how: fn(&DeviceCommunicator) -> Result<RebuiltCommunicator, GroupError>,
) -> Vec<Result<RebuiltCommunicator, GroupError>> {
    thread::scope(|threads| {
        let threads: Vec<_> = ranks.iter().map(|rank| threads.spawn(move || how(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_communicator_is_rebuilt_once() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&within(Duration::from_secs(20))).unwrap();
    lose(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    let rebuilt: Vec<_> =
        rebuild(&ranks, DeviceCommunicator::rebuild).into_iter().map(Result::unwrap).collect();
    let began = Instant::now();
    for how in [DeviceCommunicator::rebuild, DeviceCommunicator::rebuild_replaced] {
        for again in rebuild(&ranks, how) {
            let refused = again.unwrap_err().to_string();
            assert!(refused.contains("was rebuilt already"), "{refused}");
        }
    }
    let refused = ranks[0].vacancy(1).unwrap_err().to_string();
    assert!(refused.contains("was rebuilt already"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let buffers: Vec<_> = rebuilt
        .iter()
        .map(|rebuilt| {
            let buffer = rebuilt.communicator.runtime().upload(&[4_u32]).unwrap();
            rebuilt.communicator.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
            buffer
        })
        .collect();
    buffers.iter().for_each(|buffer| assert_eq!(buffer.download().unwrap(), [8]));
}

#[test]
fn a_place_that_is_filled_is_refused_at_once() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&within(Duration::from_secs(20))).unwrap();
    lose(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    let vacancy = ranks[0].vacancy(1).unwrap();
    let spare = rig.group.runtime(1).unwrap();
    let _replaced = thread::scope(|threads| {
        let replacement = threads.spawn(|| vacancy.take(spare).unwrap());
        let rebuilt = rebuild(&ranks, DeviceCommunicator::rebuild_replaced);
        (replacement.join().unwrap(), rebuilt.into_iter().map(Result::unwrap).collect::<Vec<_>>())
    });
    let began = Instant::now();
    let refused = vacancy.take(spare).unwrap_err().to_string();
    assert!(refused.contains("a replacement came before"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn nothing_is_recorded_after_a_loss_or_into_the_graph_of_another_runtime() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&within(Duration::from_secs(20))).unwrap();
    let buffer = ranks[0].runtime().upload(&[1_u32; 4]).unwrap();
    let mut other = ranks[1].runtime().graph();
    let refused = ranks[0].broadcast(&buffer, 0).record(&mut other).unwrap_err().to_string();
    assert!(refused.contains("the graph belongs to another runtime"), "{refused}");
    assert!(!refused.contains("kernel") && !refused.contains("buffer"), "{refused}");
    lose(ranks.remove(2));
    await_loss(&ranks[0]);
    let mut graph = ranks[0].runtime().graph();
    let refused = ranks[0].broadcast(&buffer, 0).record(&mut graph).unwrap_err();
    assert_eq!(refused.lost_rank().map(|lost| lost.lost), Some(2), "{refused}");
}

#[test]
fn ranks_that_have_joined_are_not_named_as_missing() {
    let port = free_port();
    let join = |rank: u32, limit: u64| {
        thread::spawn(move || {
            let mut config = config(port, rank, 4);
            config.timeout = Duration::from_millis(limit);
            Rendezvous::join(&config).unwrap_err()
        })
    };
    // Rank 0 gives up first, and its store stays for the other one.
    let (first, other) = (join(0, 600), join(2, 1200));
    for told in [first.join().unwrap(), other.join().unwrap()] {
        let RendezvousError::MissingRanks { missing, .. } = &told else { panic!("{told}") };
        assert!(missing.ends_with(&[1, 3]) || missing.ends_with(&[3]), "{told}");
        assert!(!missing.contains(&0), "{told}");
    }
}

#[test]
fn a_rank_whose_wait_has_ended_waits_nowhere() {
    let port = free_port();
    let join = |rank: u32| {
        thread::spawn(move || {
            let mut config = config(port, rank, 2);
            config.timeout = Duration::from_millis(600);
            Rendezvous::join(&config).unwrap()
        })
    };
    let [first, other] = [join(0), join(1)].map(|thread| thread.join().unwrap());
    assert!(matches!(first.barrier("first").unwrap_err(), RendezvousError::NotThere { rank: 1, .. }));
    let told = other.barrier("third").unwrap_err();
    assert!(matches!(told, RendezvousError::NotThere { rank: 0, .. }), "{told}");
}

#[test]
fn ranks_that_were_dropped_hold_no_device_any_more() {
    // Many groups at once, so that the thread that looks for lost ranks is often at one that ends.
    let ends = |thread: u64| {
        for seed in 0..100 {
            let rig = Rig::new(2, thread * 100 + seed);
            let ranks = rig.group.communicators(&within(Duration::from_secs(2))).unwrap();
            for rank in &ranks {
                rank.barrier().submit().unwrap();
            }
            drop(ranks);
            rig.finish();
        }
    };
    thread::scope(|scope| (0..8).for_each(|thread| drop(scope.spawn(move || ends(thread)))));
}

#[test]
fn a_download_that_waits_for_another_one_is_told_of_the_loss_as_well() {
    for seed in 0..5 {
        let rig = Rig::new(2, seed);
        let mut ranks = rig.group.communicators(&within(Duration::from_secs(20))).unwrap();
        let (second, first) = (ranks.remove(1), ranks.remove(0));
        let gpu = first.runtime().clone();
        let from = gpu.upload(&[1.0_f32; 64]).unwrap();
        let sums: Vec<_> = (0..4).map(|_| gpu.allocate::<f32>(64).unwrap()).collect();
        for sum in &sums {
            first.all_reduce(&from, sum, Reduction::Sum).submit().unwrap();
        }
        thread::scope(|scope| {
            let downloads: Vec<_> = sums.iter().map(|sum| scope.spawn(move || sum.download())).collect();
            thread::sleep(Duration::from_millis(100));
            lose(second);
            for download in downloads {
                let found = download.join().unwrap();
                assert!(found.is_err(), "seed {seed}: {found:?}");
            }
        });
        drop((from, sums, first, gpu));
        drop(rig);
    }
}
