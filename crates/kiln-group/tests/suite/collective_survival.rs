//! Ranks are lost while collectives are queued: each of these is done on all ranks that are left or reported, other buffers are as they were, and the job goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kiln::GpuRef;
use kiln::buffer::Stale;
use kiln::driver::Code;
use kiln::error::ErrorKind;
use kiln::group::{
    CommunicatorRankLost, DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction,
};
use kiln::sim::{FaultPlan, Links, PlannedFault};

use crate::machine_load::Load;
use crate::rig::{Numbers, Rig};

/// No rank waits until this deadline.
const NEVER: DeviceCommunicatorConfig = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
const LEN: usize = 3;

/// How a rank is lost.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its device is lost at its nth launch.
    Device(usize),
    /// Its thread panics when it has submitted so many.
    Thread(usize),
}

/// What a rank brings to a collective.
fn value(rank: u32, collective: usize) -> u64 {
    u64::from(rank + 1) * 1_000_003 + collective as u64 * 17
}

fn is_not_written(error: &kiln::Error) -> bool {
    matches!(error.kind(), ErrorKind::Stale(Stale::NotWritten))
}

/// One rank of the job: it submits everything, is told of the loss, rebuilds, and does what is not done on all.
fn work(rank: &DeviceCommunicator, count: usize, victim: u32, end: End) {
    let (gpu, me) = (rank.runtime(), rank.rank());
    let untouched = gpu.upload(&[u64::from(me) + 7; 50]).unwrap();
    let buffers: Vec<GpuRef<u64>> = (0..count).map(|at| gpu.upload(&[value(me, at); LEN]).unwrap()).collect();
    let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
    let mut tickets = Vec::new();
    for (at, buffer) in buffers.iter().enumerate() {
        if let (End::Thread(limit), true) = (end, me == victim)
            && at == limit
        {
            std::panic::resume_unwind(Box::new("the thread of this rank ends"));
        }
        let call = rank.all_reduce_in_place(buffer, Reduction::Sum).on(&streams[at % 2]);
        match call.submit() {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => {
                let told = error.lost_rank().map(|lost| lost.lost);
                assert!(told == Some(victim) || me == victim && error.is_lost(), "{error}");
                break;
            }
        }
    }
    let ends: Vec<_> = tickets.iter().map(kiln::Ticket::wait).collect();
    if me == victim {
        // A device that was lost before it met its fault, or at it.
        assert!(ends.iter().any(Result::is_err) || tickets.len() < count);
        return;
    }
    let failed = ends.iter().filter_map(|end| end.as_ref().err());
    for error in failed {
        let lost = error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}"));
        assert_eq!(lost.lost, victim);
    }
    let rebuilt = rank.rebuild().unwrap();
    let done_here = ends.iter().take_while(|end| end.is_ok()).count();
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), done_here, "they are done in order");
    assert_eq!((rebuilt.done_here, rebuilt.submitted), (done_here as u64, tickets.len() as u64));
    assert_eq!(rebuilt.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [victim]);
    let left: Vec<u32> = (0..rank.size()).filter(|rank| *rank != victim).collect();
    assert_eq!(rebuilt.former_ranks, left);
    let (new, done) = (&rebuilt.communicator, rebuilt.done as usize);
    assert_eq!((left[new.rank() as usize], new.size()), (me, left.len() as u32));
    assert!(done <= done_here);

    let sum = |ranks: &[u32], at: usize| ranks.iter().map(|rank| value(*rank, at)).sum::<u64>();
    let all: Vec<u32> = (0..rank.size()).collect();
    assert_eq!(untouched.download().unwrap(), [u64::from(me) + 7; 50]);
    for (at, buffer) in buffers.iter().enumerate() {
        match buffer.download() {
            Ok(found) if at < done_here => assert_eq!(found, [sum(&all, at); LEN], "collective {at}"),
            Ok(found) if at >= tickets.len() => assert_eq!(found, [value(me, at); LEN], "collective {at}"),
            Ok(found) => panic!("collective {at} was ended and left {found:?}"),
            Err(error) => {
                assert!((done_here..tickets.len()).contains(&at) && is_not_written(&error), "{at}: {error}");
            }
        }
    }
    // What is not done on all is done again, from what each rank brings to it.
    for (at, buffer) in buffers.iter().enumerate().skip(done) {
        buffer.upload(&[value(me, at); LEN]).unwrap();
        new.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
    }
    for (at, buffer) in buffers.iter().enumerate() {
        let ranks = if at < done { &all } else { &left };
        assert_eq!(buffer.download().unwrap(), [sum(ranks, at); LEN], "collective {at}");
    }
    new.barrier().submit().unwrap().wait().unwrap();
}

fn job(seed: u64, count: usize) {
    let mut numbers = Numbers::new(seed);
    let ranks = 2 + numbers.below(3) as u32;
    let victim = numbers.below(ranks as usize) as u32;
    let at = numbers.below(count);
    let end = if numbers.below(4) == 0 { End::Thread(at) } else { End::Device(at + 1) };
    let faults = match end {
        End::Device(launch) => {
            let fault = PlannedFault::Sticky { launch: launch as u64, code: Code::ILLEGAL_ADDRESS };
            FaultPlan::none().on(victim, fault)
        }
        End::Thread(_) => FaultPlan::none(),
    };
    let rig = Rig::with(ranks, seed, Links::all(), faults);
    let communicators = rig.group.communicators(&NEVER).unwrap();
    let threads: Vec<_> = communicators
        .into_iter()
        .map(|rank| std::thread::spawn(move || work(&rank, count, victim, end)))
        .collect();
    for (rank, thread) in threads.into_iter().enumerate() {
        let gives_up = rank as u32 == victim && matches!(end, End::Thread(_));
        assert_eq!(thread.join().is_err(), gives_up, "seed {seed}, {end:?} of rank {victim}: rank {rank}");
    }
    let findings = rig.machine.findings();
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
}

/// A thousand collectives wait for a rank whose thread ends or whose device is lost. The others are told within a second; a machine that lets threads wait for a processor may
/// take as much longer as it does that, a few times over.
#[test]
fn survivors_are_told_within_a_second() {
    for victim_is_lost_by_its_device in [false, true] {
        let (rig, ranks) = match victim_is_lost_by_its_device {
            true => losing(),
            false => {
                let rig = Rig::new(3, 1);
                let ranks = rig.group.communicators(&NEVER).unwrap();
                (rig, ranks)
            }
        };
        let queued: Vec<_> = ranks
            .iter()
            .map(|rank| {
                let buffer = rank.runtime().upload(&[1_u32; 4]).unwrap();
                let submit = |_| rank.all_reduce_in_place(&buffer, Reduction::Sum).submit();
                // The victim comes to the first alone.
                let count = if rank.rank() == 1 { 1 } else { 1000 };
                (0..count).map(submit).collect::<Result<Vec<_>, _>>()
            })
            .collect();
        let load = Load::measure();
        let mut ranks = ranks;
        let victim = ranks.remove(1);
        let began = match victim_is_lost_by_its_device {
            true => {
                assert!(queued[1].as_ref().unwrap()[0].wait().unwrap_err().is_lost());
                Instant::now()
            }
            false => {
                let began = Instant::now();
                let end = move || {
                    let _victim = victim;
                    std::panic::resume_unwind(Box::new("the thread of this rank ends"));
                };
                std::thread::spawn(end).join().unwrap_err();
                began
            }
        };
        let mut told = 0;
        for tickets in [&queued[0], &queued[2]] {
            // A rank that was told while it submitted was told in time.
            let Ok(tickets) = tickets else { continue };
            let error = tickets.last().unwrap().wait().unwrap_err();
            assert_eq!(
                error.downcast_ref::<CommunicatorRankLost>().map(|lost| lost.lost),
                Some(1),
                "{error}"
            );
            told += 1;
        }
        let spent = began.elapsed();
        let worst = load.worst();
        assert!(spent < Duration::from_secs(1) + 20 * worst, "{spent:?}, {worst:?} for the machine");
        assert!(told == 2 || victim_is_lost_by_its_device, "{told}");
        drop(rig);
    }
}

/// A number that a variable says, or another one.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// `KILN_SURVIVAL_SEEDS=500 KILN_SURVIVAL_COLLECTIVES=1000` takes minutes; `KILN_SURVIVAL_FIRST` is the first seed. A job spends most of its time waiting until a loss is noticed, so several run at a time.
#[test]
fn a_rank_that_is_lost_at_any_place_leaves_each_collective_done_or_reported() {
    let count = setting("KILN_SURVIVAL_COLLECTIVES", 30) as usize;
    let (first, seeds) = (setting("KILN_SURVIVAL_FIRST", 0), setting("KILN_SURVIVAL_SEEDS", 40));
    let next = AtomicU64::new(first);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < first + seeds
                {
                    job(seed, count);
                }
            });
        }
    });
}

/// Three ranks, of which rank 1 loses its device at its first launch.
fn losing() -> (Rig, Vec<DeviceCommunicator>) {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let rig = Rig::with(3, 1, Links::all(), FaultPlan::none().on(1, fault));
    let ranks = rig.group.communicators(&NEVER).unwrap();
    (rig, ranks)
}

#[test]
fn work_behind_an_ended_collective_fails_and_everything_else_is_kept() {
    let (rig, ranks) = losing();
    let gpu = ranks[0].runtime();
    let reduced: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1.0_f32; 8]).unwrap()).collect();
    let (before, behind) = (gpu.upload(&[2.0_f32; 8]).unwrap(), gpu.zeros::<f32>(8).unwrap());
    let (other, stream) = (gpu.zeros::<f32>(8).unwrap(), gpu.stream().unwrap());
    gpu.synchronize().unwrap();
    for (rank, buffer) in ranks.iter().zip(&reduced) {
        rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
    }
    let copied = behind.copy_from(&reduced[0]).unwrap();
    let apart = other.copy_from_on(&stream, &before).unwrap();
    let error = copied.wait().unwrap_err();
    let lost = error.downcast_ref::<CommunicatorRankLost>().unwrap();
    assert!(lost.lost == 1 && lost.cause.contains("as planned for launch 1"), "{error}");
    apart.wait().unwrap();
    assert_eq!((before.download().unwrap(), other.download().unwrap()), (vec![2.0; 8], vec![2.0; 8]));
    for unreadable in [&reduced[0], &behind] {
        let told = unreadable.download().unwrap_err();
        assert!(is_not_written(&told));
        let lost = told.downcast_ref::<CommunicatorRankLost>().unwrap();
        assert!(lost.lost == 1 && lost.can_rebuild, "{told:#}");
        let told = GroupError::Device { index: 0, source: told };
        assert_eq!(told.lost_rank().map(|lost| lost.lost), Some(1), "{told}");
        let refused = before.copy_from(unreadable).unwrap_err();
        assert!(is_not_written(&refused) && refused.downcast_ref::<CommunicatorRankLost>().is_some());
        // A part of it does not make the rest readable.
        assert!(is_not_written(&unreadable.view(..4).unwrap().fill(0.0).unwrap_err()));
        unreadable.fill(3.0).unwrap();
        assert_eq!(unreadable.view(2..5).unwrap().download().unwrap(), [3.0; 3]);
    }
    let refused = ranks[0].barrier().submit().unwrap_err();
    assert_eq!(refused.lost_rank().map(|lost| lost.lost), Some(1), "{refused}");
    assert_eq!(ranks[0].lost_rank().map(|lost| lost.rank), Some(1));
    assert!(!refused.is_lost() && gpu.state().is_ready(), "the device goes on");
    assert!(rig.machine.findings().is_empty());
}

#[test]
fn collectives_in_graphs_end_with_everything_that_is_not_done() {
    let (_rig, ranks) = losing();
    let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1_u32; 8]).unwrap()).collect();
    let kept = ranks[2].runtime().upload(&[5_u32; 8]).unwrap();
    ranks[2].runtime().synchronize().unwrap();
    let replays: Vec<_> = ranks
        .iter()
        .zip(&buffers)
        .map(|(rank, buffer)| {
            let mut graph = rank.runtime().graph();
            rank.all_reduce_in_place(buffer, Reduction::Sum).record(&mut graph).unwrap();
            let graph = graph.build().unwrap();
            (graph.replay().unwrap(), graph)
        })
        .collect();
    let error = replays[2].0.wait().unwrap_err();
    assert!(error.downcast_ref::<CommunicatorRankLost>().is_some(), "{error}");
    assert!(is_not_written(&buffers[2].download().unwrap_err()));
    assert_eq!(kept.download().unwrap(), [5; 8]);
}

#[test]
fn a_communicator_is_rebuilt_when_a_rank_is_lost_and_by_all_that_are_left() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&NEVER).unwrap();
    let error = ranks[0].rebuild().unwrap_err().to_string();
    assert!(error.starts_with("no rank of communicator ") && error.contains(" is lost;"), "{error}");
    let error = ranks[0].vacancy(1).unwrap_err().to_string();
    assert!(error.starts_with("rank 1 of communicator ") && error.contains(" is not lost;"), "{error}");
    let error = ranks[0].vacancy(99).unwrap_err().to_string();
    assert!(error.starts_with("there is no rank 99 among the 2 of communicator "), "{error}");
    drop(ranks);
    rig.finish();

    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let rig = Rig::with(3, 1, Links::all(), FaultPlan::none().on(1, fault));
    let short = DeviceCommunicatorConfig { deadline: Duration::from_millis(300) };
    let ranks = rig.group.communicators(&short).unwrap();
    let tickets: Vec<_> = ranks.iter().map(|rank| rank.barrier().submit().unwrap()).collect();
    assert!(tickets[0].wait().unwrap_err().downcast_ref::<CommunicatorRankLost>().is_some());
    let error = ranks[0].rebuild().unwrap_err();
    assert!(matches!(&error, GroupError::RanksAbsent { ranks, .. } if ranks[..] == [2]), "{error}");
    assert!(error.to_string().starts_with("rank 2 did not rebuild the communicator within"), "{error}");
}
