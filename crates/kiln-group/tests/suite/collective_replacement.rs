//! Lost ranks that are replaced, and collectives that no rank had done, which are done again.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use kiln::driver::Code;
use kiln::group::{
    CommunicatorRankLost, DeviceCommunicator, DeviceCommunicatorConfig, DeviceGroup, GroupError,
    RebuiltCommunicator, Reduction,
};
use kiln::sim::{FaultPlan, Links, PlannedFault};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};

use crate::rig::{Numbers, Rig, machine};

/// No rank waits until this deadline.
const NEVER: DeviceCommunicatorConfig = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
const LEN: usize = 3;

/// What a rank brings to a collective.
fn value(rank: u32, collective: usize) -> u64 {
    u64::from(rank + 1) * 1_000_003 + collective as u64 * 17
}

/// The inputs and outputs of all collectives of a rank.
struct Data {
    inputs: Vec<GpuRef<u64>>,
    outputs: Vec<GpuRef<u64>>,
}

impl Data {
    fn new(gpu: &DeviceRuntime, rank: u32, count: usize) -> Self {
        let input = |at| gpu.upload(&[value(rank, at); LEN]).unwrap();
        let output = |_| gpu.upload(&[0_u64; LEN]).unwrap();
        Self { inputs: (0..count).map(input).collect(), outputs: (0..count).map(output).collect() }
    }

    fn submit(&self, rank: &DeviceCommunicator, at: usize) -> Result<kiln::Ticket, GroupError> {
        rank.all_reduce(&self.inputs[at], &self.outputs[at], Reduction::Sum).submit()
    }

    /// Every collective that is not done on all ranks is done: those that can be repeated, and then the others.
    fn complete(&self, rebuilt: &RebuiltCommunicator) {
        let is_repeated = |at: &usize| rebuilt.repeatable.contains(&(*at as u64));
        match rebuilt.repeat() {
            Ok(repeated) => {
                let numbers: Vec<u64> = repeated.iter().map(|(number, _)| *number).collect();
                assert_eq!(numbers, rebuilt.repeatable);
                repeated.iter().for_each(|(_, ticket)| ticket.wait().unwrap());
            }
            // A replacement has nothing to repeat and brings its part of each.
            Err(error) => {
                assert!(error.to_string().contains("a replacement has submitted none"), "{error}");
                for at in (0..self.inputs.len()).filter(is_repeated) {
                    self.submit(&rebuilt.communicator, at).unwrap();
                }
            }
        }
        for at in (rebuilt.done as usize..self.inputs.len()).filter(|at| !is_repeated(at)) {
            self.outputs[at].fill(0).unwrap();
            self.submit(&rebuilt.communicator, at).unwrap();
        }
    }
}

/// One rank: it submits everything, and is told of the loss.
fn work(rank: &DeviceCommunicator, data: &Data, victim: u32, gives_up_at: Option<usize>) -> bool {
    let me = rank.rank();
    let mut tickets = Vec::new();
    for at in 0..data.inputs.len() {
        if me == victim && gives_up_at == Some(at) {
            std::panic::resume_unwind(Box::new("the thread of this rank ends"));
        }
        match data.submit(rank, at) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => {
                assert!(error.lost_rank().is_some() || me == victim && error.is_lost(), "{error}");
                break;
            }
        }
    }
    let is_ended = tickets.iter().map(kiln::Ticket::wait).filter(Result::is_err).count() > 0;
    me != victim && (is_ended || tickets.len() < data.inputs.len())
}

/// A group of some of the devices of a machine, and a device that is left over.
fn with_spare(ranks: u32, seed: u64, faults: FaultPlan) -> (Rig, DeviceRuntime) {
    let machine = machine(ranks + 1, seed, Links::all(), faults);
    let runtime = |ordinal| {
        DeviceRuntime::from_driver(machine.device(ordinal).unwrap(), RuntimeConfig::default()).unwrap()
    };
    let (spare, group) = (runtime(ranks), DeviceGroup::new((0..ranks).map(runtime)).unwrap());
    (Rig { machine, group }, spare)
}

/// Takes the place of the lost rank, and does its part.
fn replace(keeper: &DeviceCommunicator, victim: u32, spare: &DeviceRuntime, count: usize) {
    while keeper.lost_rank().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let rebuilt = keeper.vacancy(victim).unwrap().take(spare).unwrap();
    let new = &rebuilt.communicator;
    assert_eq!((new.rank(), new.size(), &rebuilt.lost[0].rank), (victim, keeper.size(), &victim));
    let data = Data::new(spare, victim, count);
    data.complete(&rebuilt);
    new.barrier().submit().unwrap().wait().unwrap();
}

fn job(seed: u64, count: usize, is_replaced: bool) {
    let mut numbers = Numbers::new(seed);
    let size = 2 + numbers.below(3) as u32;
    let victim = numbers.below(size as usize) as u32;
    let at = numbers.below(count);
    let gives_up_at = (numbers.below(3) == 0).then_some(at);
    let fault = PlannedFault::Sticky { launch: at as u64 + 1, code: Code::ILLEGAL_ADDRESS };
    let faults = match gives_up_at {
        Some(_) => FaultPlan::none(),
        None => FaultPlan::none().on(victim, fault),
    };
    let (rig, spare) = with_spare(size, seed, faults);
    let communicators = rig.group.communicators(&NEVER).unwrap();
    let keeper = communicators[(victim as usize + 1) % size as usize].clone();
    let threads: Vec<_> = communicators
        .into_iter()
        .map(|rank| {
            std::thread::spawn(move || {
                let data = Data::new(rank.runtime(), rank.rank(), count);
                if !work(&rank, &data, victim, gives_up_at) {
                    return;
                }
                let rebuilt = if is_replaced { rank.rebuild_replaced() } else { rank.rebuild() }.unwrap();
                let left: Vec<u32> = (0..size).filter(|rank| is_replaced || *rank != victim).collect();
                assert_eq!(rebuilt.former_ranks, left);
                assert_eq!(rebuilt.replaced, if is_replaced { vec![victim] } else { vec![] });
                let me = if is_replaced {
                    rank.rank()
                } else {
                    left.iter().position(|it| *it == rank.rank()).unwrap() as u32
                };
                assert_eq!(
                    (rebuilt.communicator.rank(), rebuilt.communicator.size()),
                    (me, left.len() as u32)
                );
                assert!(
                    rebuilt.repeatable.iter().all(|at| (rebuilt.done_here..rebuilt.submitted).contains(at))
                );
                data.complete(&rebuilt);
                let sum = |ranks: &[u32], at| ranks.iter().map(|rank| value(*rank, at)).sum::<u64>();
                let all: Vec<u32> = (0..size).collect();
                for at in 0..count {
                    let ranks = if (at as u64) < rebuilt.done { &all } else { &left };
                    assert_eq!(
                        data.outputs[at].download().unwrap(),
                        [sum(ranks, at); LEN],
                        "collective {at}"
                    );
                }
                rebuilt.communicator.barrier().submit().unwrap().wait().unwrap();
            })
        })
        .collect();
    if is_replaced {
        replace(&keeper, victim, &spare, count);
    }
    drop(keeper);
    for (rank, thread) in threads.into_iter().enumerate() {
        let gives_up = rank as u32 == victim && gives_up_at.is_some();
        assert_eq!(thread.join().is_err(), gives_up, "seed {seed}: rank {rank} of {size}, lost {victim}");
    }
    let findings = rig.machine.findings();
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
}

#[test]
fn a_lost_rank_is_replaced_at_any_place() {
    (0..30).for_each(|seed| job(seed, 20, true));
}

#[test]
fn collectives_that_no_rank_has_done_are_done_again_by_those_that_are_left() {
    (100..130).for_each(|seed| job(seed, 20, false));
}

/// Three ranks, of which rank 1 loses its device at its first launch.
fn losing(deadline: Duration) -> (Rig, Vec<DeviceCommunicator>, DeviceRuntime) {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let (rig, spare) = with_spare(3, 1, FaultPlan::none().on(1, fault));
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig { deadline }).unwrap();
    (rig, ranks, spare)
}

#[test]
fn what_is_done_is_not_offered_again() {
    const DONE: usize = 3;
    let fault = PlannedFault::Sticky { launch: DONE as u64 + 1, code: Code::ILLEGAL_ADDRESS };
    let (rig, _spare) = with_spare(3, 1, FaultPlan::none().on(1, fault));
    let threads: Vec<_> = rig
        .group
        .communicators(&NEVER)
        .unwrap()
        .into_iter()
        .map(|rank| {
            std::thread::spawn(move || {
                let data = Data::new(rank.runtime(), rank.rank(), 2 * DONE);
                for at in 0..DONE {
                    data.submit(&rank, at).unwrap().wait().unwrap();
                }
                let tickets: Vec<_> = (DONE..2 * DONE).map(|at| data.submit(&rank, at)).collect();
                let ended = |ticket: &Result<kiln::Ticket, GroupError>| {
                    ticket.as_ref().map_or(true, |ticket| ticket.wait().is_err())
                };
                assert!(tickets.iter().all(ended));
                if rank.rank() == 1 {
                    return;
                }
                let rebuilt = rank.rebuild().unwrap();
                let submitted = DONE + tickets.iter().filter(|ticket| ticket.is_ok()).count();
                assert_eq!((rebuilt.done, rebuilt.done_here), (DONE as u64, DONE as u64));
                assert_eq!(rebuilt.submitted, submitted as u64);
                // A rank that heard of the loss before it had called all of them offers fewer.
                let offered: Vec<u64> = (DONE as u64..).take(rebuilt.repeatable.len()).collect();
                assert_eq!(rebuilt.repeatable, offered);
                for (number, ticket) in rebuilt.repeat().unwrap() {
                    ticket.wait().unwrap();
                    let at = number as usize;
                    assert_eq!(data.outputs[at].download().unwrap(), [value(0, at) + value(2, at); LEN]);
                }
                for at in 0..DONE {
                    let all = (0..3).map(|rank| value(rank, at)).sum::<u64>();
                    assert_eq!(data.outputs[at].download().unwrap(), [all; LEN], "collective {at}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(rig.machine.findings().is_empty());
}

#[test]
fn what_is_in_place_or_was_changed_or_freed_or_needs_the_lost_rank_is_not_repeated() {
    let (rig, mut ranks, _spare) = losing(NEVER.deadline);
    let victim = ranks.remove(1);
    // The rank is lost once the others have submitted everything.
    let submitted = Arc::new(Barrier::new(3));
    let threads: Vec<_> = ranks
        .into_iter()
        .map(|rank| {
            let submitted = submitted.clone();
            std::thread::spawn(move || {
                let gpu = rank.runtime();
                let buffer = || gpu.upload(&[u64::from(rank.rank()) + 1; 6]).unwrap();
                let [a, b, c, d, e, f, g, h] = std::array::from_fn(|_| buffer());
                let sum = Reduction::Sum;
                let tickets = [
                    rank.barrier().submit(),
                    rank.all_reduce(&a, &b, sum).submit(),
                    rank.all_reduce_in_place(&c, sum).submit(),
                    // Reads what the second was to write.
                    rank.all_reduce(&b, &d, sum).submit(),
                    rank.all_reduce(&e, &f, sum).submit(),
                    rank.broadcast(&g, 1).submit(),
                    rank.all_gather(&a.view(..2).unwrap(), &h).submit(),
                    rank.broadcast(&g, 2).submit(),
                    rank.barrier().submit(),
                ];
                submitted.wait();
                if rank.rank() == 2 {
                    drop(f);
                }
                let told = tickets[8].as_ref().unwrap().wait().unwrap_err();
                assert!(told.downcast_ref::<CommunicatorRankLost>().is_some(), "{told}");
                let rebuilt = rank.rebuild().unwrap();
                assert_eq!((rebuilt.done, rebuilt.submitted), (0, 9));
                // The fifth lacks a buffer on one rank; the broadcast from rank 2 reads and writes what one from the lost rank was to write.
                assert_eq!(rebuilt.repeatable, [0, 1, 8]);
                assert_eq!(rebuilt.repeat().unwrap().len(), 3);
                assert_eq!(b.download().unwrap(), [4; 6]);
                assert!(c.download().is_err() && d.download().is_err());
            })
        })
        .collect();
    submitted.wait();
    let lost = victim.barrier().submit().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(lost.wait().unwrap_err().is_lost());
    assert!(rig.machine.findings().is_empty());
}

#[test]
fn replacements_that_do_not_come_and_places_that_are_not_free_are_named() {
    let (_rig, ranks, spare) = losing(Duration::from_millis(300));
    let refused = ranks[0].vacancy(2).unwrap_err().to_string();
    assert!(refused.starts_with("rank 2 of communicator ") && refused.contains("is not lost"), "{refused}");
    let tickets: Vec<_> = ranks.iter().map(|rank| rank.barrier().submit().unwrap()).collect();
    assert!(tickets[0].wait().unwrap_err().downcast_ref::<CommunicatorRankLost>().is_some());
    let began = Instant::now();
    let error = ranks[0].rebuild_replaced().unwrap_err();
    assert!(matches!(&error, GroupError::ReplacementsAbsent { ranks, .. } if ranks[..] == [1]), "{error}");
    // A replacement whose others do not rebuild gives up as well.
    let error = ranks[2].vacancy(1).unwrap().take(&spare).unwrap_err();
    assert!(matches!(&error, GroupError::RanksAbsent { ranks, .. } if ranks[..] == [0, 2]), "{error}");
    assert!(began.elapsed() >= Duration::from_millis(600));
}
