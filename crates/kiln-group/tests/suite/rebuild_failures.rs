//! Ranks and replacements that cannot rebuild: they are named, and the others keep their devices.

use std::thread;
use std::time::{Duration, Instant};

use kiln::driver::Code;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, DeviceGroup, GroupError, RebuiltCommunicator, Reduction,
};
use kiln::sim::{FaultPlan, Links, PlannedFault};
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::rank_scenes::await_loss;
use crate::rig::{Rig, machine};

type Rebuilt = Result<RebuiltCommunicator, GroupError>;

const DEADLINE: Duration = Duration::from_secs(20);

/// So many ranks and as many devices that are left over. Ranks of `failing` lose their devices at their first launch.
fn with_spares(
    ranks: u32,
    failing: &[u32],
    deadline: Duration,
) -> (Rig, Vec<DeviceCommunicator>, Vec<DeviceRuntime>) {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let faults = failing.iter().fold(FaultPlan::none(), |plan, rank| plan.on(*rank, fault.clone()));
    let machine = machine(2 * ranks, 1, Links::all(), faults);
    let runtime = |ordinal| {
        DeviceRuntime::from_driver(machine.device(ordinal).unwrap(), RuntimeConfig::default()).unwrap()
    };
    let spares = (ranks..2 * ranks).map(runtime).collect();
    let group = DeviceGroup::new((0..ranks).map(runtime)).unwrap();
    let communicators = group.communicators(&DeviceCommunicatorConfig { deadline }).unwrap();
    (Rig { machine, group }, communicators, spares)
}

/// Ends the thread of a rank that holds it.
fn end_thread(rank: impl Send + 'static) {
    let lost = thread::spawn(move || {
        let _rank = rank;
        std::panic::resume_unwind(Box::new("this rank is to end"));
    });
    assert!(lost.join().is_err());
}

/// Has the device of a rank fail, as planned for its first launch.
fn lose_device(rank: &DeviceCommunicator) {
    let lost = rank
        .barrier()
        .submit()
        .and_then(|ticket| ticket.wait().map_err(|source| GroupError::Rank { rank: rank.rank(), source }));
    let error = lost.unwrap_err();
    assert!(error.is_lost(), "{error}");
}

/// An all-reduce of ones by all these ranks at once, and what becomes of it on each.
fn sums(ranks: &[&DeviceCommunicator]) -> Vec<Result<u32, GroupError>> {
    thread::scope(|threads| {
        let sum = |rank: &DeviceCommunicator| {
            let failed = |source| GroupError::Rank { rank: rank.rank(), source };
            let buffer = rank.runtime().upload(&[1_u32]).map_err(failed)?;
            rank.all_reduce_in_place(&buffer, Reduction::Sum).submit()?.wait().map_err(failed)?;
            buffer.download().map(|sum| sum[0]).map_err(failed)
        };
        let threads: Vec<_> = ranks.iter().map(|rank| threads.spawn(move || sum(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn at_once(ranks: &[&DeviceCommunicator], how: fn(&DeviceCommunicator) -> Rebuilt) -> Vec<Rebuilt> {
    thread::scope(|threads| {
        let threads: Vec<_> = ranks.iter().map(|rank| threads.spawn(move || how(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// These are rebuilt, without any rank that is lost, and work.
fn assert_work(rebuilt: Vec<Rebuilt>, former_ranks: &[u32]) {
    let rebuilt: Vec<_> = rebuilt.into_iter().map(Result::unwrap).collect();
    rebuilt.iter().for_each(|rebuilt| assert_eq!(rebuilt.former_ranks, former_ranks));
    let ranks: Vec<_> = rebuilt.iter().map(|rebuilt| &rebuilt.communicator).collect();
    for sum in sums(&ranks) {
        assert_eq!(sum.unwrap(), former_ranks.len() as u32);
    }
}

#[test]
fn a_rank_whose_device_is_lost_does_not_rebuild() {
    let (rig, mut ranks, _spares) = with_spares(4, &[2], DEADLINE);
    // The device is lost with work of another communicator.
    let apart = rig.group.communicators(&DeviceCommunicatorConfig { deadline: DEADLINE }).unwrap();
    let third = ranks.remove(2);
    end_thread(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    await_loss(&third);
    let (first, last) = (&ranks[0], &ranks[1]);
    lose_device(&apart[2]);
    thread::scope(|threads| {
        let refused = threads.spawn(|| third.rebuild().unwrap_err());
        let early = threads.spawn(|| (first.rebuild().unwrap(), Instant::now()));
        thread::sleep(Duration::from_millis(300));
        let called = Instant::now();
        let last = last.rebuild().unwrap();
        let (first, returned) = early.join().unwrap();
        assert!(returned >= called, "it did not wait for the last rank");
        let refused = refused.join().unwrap();
        assert!(refused.is_lost() && refused.to_string().starts_with("rank 2: "), "{refused}");
        assert_work(vec![Ok(first), Ok(last)], &[0, 3]);
    });
}

#[test]
fn a_lost_rank_is_told_of_the_loss_of_its_device() {
    let (_rig, ranks, _spares) = with_spares(3, &[1], DEADLINE);
    lose_device(&ranks[1]);
    for how in [DeviceCommunicator::rebuild, DeviceCommunicator::rebuild_replaced] {
        let refused = how(&ranks[1]).unwrap_err();
        assert!(refused.is_lost() && refused.to_string().starts_with("rank 1: "), "{refused}");
    }
    await_loss(&ranks[0]);
    let refused = ranks[1].rebuild().unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    assert_work(at_once(&[&ranks[0], &ranks[2]], DeviceCommunicator::rebuild), &[0, 2]);
}

/// Goes on until no rank is lost, without those that are. The ranks that are left then, by their first numbers.
fn go_on(mut rebuilt: RebuiltCommunicator) -> Result<Vec<u32>, GroupError> {
    let mut left = rebuilt.former_ranks;
    loop {
        let rank = rebuilt.communicator;
        for _ in 0..10 {
            match sums(&[&rank]).remove(0) {
                Ok(sum) => assert_eq!(sum, left.len() as u32),
                Err(error) if error.lost_rank().is_some() => break,
                Err(error) => return Err(error),
            }
        }
        if rank.lost_rank().is_none() {
            return Ok(left);
        }
        rebuilt = rank.rebuild()?;
        left = rebuilt.former_ranks.iter().map(|former| left[*former as usize]).collect();
    }
}

#[test]
fn a_device_that_is_lost_at_any_call_of_a_rebuild_leaves_the_others_theirs() {
    // The first of the ranks that are left makes the id of the new communicator.
    for (victim, call) in (5..40).flat_map(|call| [(0, call), (2, call)]) {
        let fault = PlannedFault::LostAtCall { call, code: Code::ECC_UNCORRECTABLE };
        let machine = machine(4, 1, Links::all(), FaultPlan::none().on(victim, fault));
        let Ok(rig) = Rig::try_over(machine) else { continue };
        let config = DeviceCommunicatorConfig { deadline: DEADLINE };
        let Ok(mut ranks) = rig.group.communicators(&config) else { continue };
        let began = Instant::now();
        end_thread(ranks.remove(1));
        let survive = |rank: DeviceCommunicator| {
            thread::spawn(move || {
                await_loss(&rank);
                go_on(rank.rebuild()?)
            })
        };
        let threads: Vec<_> = ranks.into_iter().map(survive).collect();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let case = format!("rank {victim}, call {call}");
        let is_victim = |(rank, _): &(u32, _)| *rank == victim;
        let (failing, others): (Vec<_>, Vec<_>) = [0, 2, 3].into_iter().zip(ends).partition(is_victim);
        let left: Vec<u32> = match &failing[0].1 {
            Ok(_) => vec![0, 2, 3],
            Err(error) => {
                assert!(error.is_lost(), "{case}: {error}");
                others.iter().map(|(rank, _)| *rank).collect()
            }
        };
        for (rank, end) in others {
            assert_eq!(end.unwrap_or_else(|error| panic!("{case}: rank {rank}: {error}")), left, "{case}");
        }
        assert!(began.elapsed() < DEADLINE / 2, "{case}: {:?}", began.elapsed());
    }
}

#[test]
fn a_device_that_is_lost_at_any_call_of_a_rebuild_leaves_a_replacement_its_device() {
    for (victim, call) in (5..30).flat_map(|call| [(0, call), (2, call)]) {
        let fault = PlannedFault::LostAtCall { call, code: Code::ECC_UNCORRECTABLE };
        let machine = machine(6, 1, Links::all(), FaultPlan::none().on(victim, fault));
        let runtime =
            |ordinal| DeviceRuntime::from_driver(machine.device(ordinal).unwrap(), RuntimeConfig::default());
        let Ok(gpus) = (0..6).map(runtime).collect::<Result<Vec<_>, _>>() else { continue };
        let group = DeviceGroup::new(gpus[..4].iter().cloned()).unwrap();
        let Ok(mut ranks) = group.communicators(&DeviceCommunicatorConfig { deadline: DEADLINE }) else {
            continue;
        };
        let began = Instant::now();
        end_thread(ranks.remove(1));
        let keeper = ranks[2].clone();
        await_loss(&keeper);
        let take = |rank: u32, gpu: &DeviceRuntime| {
            let (vacancy, gpu) = (keeper.vacancy(rank), gpu.clone());
            thread::spawn(move || go_on(vacancy?.take(&gpu)?))
        };
        let replacement = take(1, &gpus[4]);
        let survive = |rank: DeviceCommunicator| {
            thread::spawn(move || {
                await_loss(&rank);
                go_on(rank.rebuild_replaced()?)
            })
        };
        let threads: Vec<_> = ranks.into_iter().map(survive).collect();
        // If the ranks begin again, the second lost rank is replaced, too.
        let is_over = || threads.iter().all(thread::JoinHandle::is_finished) && replacement.is_finished();
        let mut second = None;
        while !is_over() {
            if second.is_none() && keeper.vacancy(victim).is_ok() {
                second = Some(take(victim, &gpus[5]));
            }
            thread::sleep(Duration::from_millis(1));
        }
        let case = format!("rank {victim}, call {call}");
        let mut ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let failing = ends.remove(if victim == 0 { 0 } else { 1 }).unwrap_err();
        assert!(failing.is_lost(), "{case}: {failing}");
        ends.push(replacement.join().unwrap());
        let left = match second.map(|second| second.join().unwrap()) {
            Some(Ok(left)) => left,
            _ => [0, 1, 2, 3].into_iter().filter(|rank| *rank != victim).collect(),
        };
        for end in ends {
            assert_eq!(end.unwrap_or_else(|error| panic!("{case}: {error}")), left, "{case}");
        }
        assert!(began.elapsed() < DEADLINE / 2, "{case}: {:?}", began.elapsed());
    }
}

#[test]
fn a_replacement_with_a_lost_device_or_that_of_a_rank_is_refused_before_the_others_hear_of_it() {
    let (_rig, ranks, spares) = with_spares(3, &[1], DEADLINE);
    lose_device(&ranks[1]);
    await_loss(&ranks[0]);
    await_loss(&ranks[2]);
    let vacancy = ranks[0].vacancy(1).unwrap();
    let rebuilt = thread::scope(|threads| {
        let left = [&ranks[0], &ranks[2]];
        let others = threads.spawn(move || at_once(&left, DeviceCommunicator::rebuild_replaced));
        let refused = vacancy.take(ranks[1].runtime()).unwrap_err();
        assert!(refused.is_lost() && refused.to_string().starts_with("rank 1: "), "{refused}");
        for owner in [0, 2] {
            let refused = vacancy.take(ranks[owner].runtime()).unwrap_err().to_string();
            assert!(refused.contains(&format!("is that of rank {owner}; give")), "{refused}");
        }
        let replacement = threads.spawn(|| vacancy.take(&spares[0]));
        let mut rebuilt = others.join().unwrap();
        rebuilt.push(replacement.join().unwrap());
        rebuilt
    });
    assert_work(rebuilt, &[0, 1, 2]);
}

#[test]
fn one_device_does_not_replace_two_ranks() {
    let (_rig, mut ranks, spares) = with_spares(3, &[], DEADLINE);
    let (last, second, first) = (ranks.remove(2), ranks.remove(1), ranks.remove(0));
    end_thread(last);
    end_thread(second);
    while first.vacancy(1).is_err() || first.vacancy(2).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    let rebuilt = thread::scope(|threads| {
        let taken = threads.spawn(|| first.vacancy(1).unwrap().take(&spares[0]));
        thread::sleep(Duration::from_millis(200));
        let (other, fresh) = (first.vacancy(2).unwrap(), &spares[1]);
        let refused = other.take(&spares[0]).unwrap_err().to_string();
        assert!(refused.contains("is that of rank 1; give"), "{refused}");
        let other = threads.spawn(move || other.take(fresh));
        vec![first.rebuild_replaced(), taken.join().unwrap(), other.join().unwrap()]
    });
    assert_work(rebuilt, &[0, 1, 2]);
}

#[test]
fn a_replacement_that_ends_as_soon_as_it_has_its_place_is_lost_for_the_others() {
    // The others have come to the new communicator before it ends, or not.
    for pause in [0; 60].into_iter().chain([1, 20]) {
        let (_rig, mut ranks, mut spares) = with_spares(3, &[], DEADLINE);
        end_thread(ranks.remove(1));
        ranks.iter().for_each(await_loss);
        let began = Instant::now();
        let vacancy = ranks[0].vacancy(1).unwrap();
        let spare = spares.remove(0);
        let replacement = thread::spawn(move || {
            let _rebuilt = vacancy.take(&spare).unwrap();
            thread::sleep(Duration::from_millis(pause));
            std::panic::resume_unwind(Box::new("this rank is to end"));
        });
        let rebuilt = at_once(&[&ranks[0], &ranks[1]], DeviceCommunicator::rebuild_replaced);
        assert!(replacement.join().is_err());
        let rebuilt: Vec<_> = rebuilt.into_iter().map(|rebuilt| rebuilt.unwrap().communicator).collect();
        let new: Vec<_> = rebuilt.iter().collect();
        for told in sums(&new) {
            let told = told.unwrap_err();
            assert_eq!(told.lost_rank().map(|lost| lost.lost), Some(1), "{told}");
        }
        assert_work(at_once(&new, DeviceCommunicator::rebuild), &[0, 2]);
        assert!(began.elapsed() < DEADLINE / 2, "{:?}", began.elapsed());
    }
}

#[test]
fn one_thread_of_a_rank_rebuilds() {
    let (_rig, mut ranks, _spares) = with_spares(3, &[], DEADLINE);
    end_thread(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    let (first, last) = (&ranks[0], &ranks[1]);
    thread::scope(|threads| {
        let both = [(); 2].map(|()| threads.spawn(|| first.rebuild()));
        thread::sleep(Duration::from_millis(200));
        let mut rebuilt = vec![last.rebuild()];
        let (refused, done): (Vec<_>, Vec<_>) =
            both.map(|thread| thread.join().unwrap()).into_iter().partition(Result::is_err);
        let refused = refused.into_iter().map(|refused| refused.unwrap_err().to_string());
        let refused: Vec<_> = refused.collect();
        assert!(refused.len() == 1 && refused[0].starts_with("another thread rebuilds"), "{refused:?}");
        rebuilt.extend(done);
        assert_work(rebuilt, &[0, 2]);
    });
}

#[test]
fn ranks_that_rebuild_in_another_way_are_named_with_what_they_called() {
    let (_rig, mut ranks, _spares) = with_spares(3, &[], Duration::from_millis(500));
    end_thread(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    let (first, last) = (&ranks[0], &ranks[1]);
    let [without, with] = thread::scope(|threads| {
        let without = threads.spawn(|| first.rebuild());
        let with = threads.spawn(|| last.rebuild_replaced());
        [without, with].map(|thread| thread.join().unwrap().unwrap_err())
    });
    for (error, other, other_called) in [(without, 2, "rebuild_replaced"), (with, 0, "rebuild")] {
        let GroupError::OtherRebuild { ranks, called, .. } = &error else { panic!("{error}") };
        assert_eq!((&ranks[..], *called), (&[other][..], other_called), "{error}");
    }
    // They can agree, and call again.
    assert_work(at_once(&[first, last], DeviceCommunicator::rebuild), &[0, 2]);
}

#[test]
fn a_rank_that_waits_no_more_is_not_counted() {
    let (_rig, mut ranks, _spares) = with_spares(3, &[], Duration::from_millis(300));
    end_thread(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    for (rank, other) in [(0, 2), (1, 0)] {
        let error = ranks[rank].rebuild().unwrap_err();
        assert!(matches!(&error, GroupError::RanksAbsent { ranks, .. } if ranks[..] == [other]), "{error}");
    }
    assert_work(at_once(&[&ranks[0], &ranks[1]], DeviceCommunicator::rebuild), &[0, 2]);
}
