//! Ranks of a job after a loss: a replacement that goes on with the others, and a second rank that is lost while the others rebuild.

use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, MeetingPoint, Reduction, Rendezvous, RendezvousConfig,
    RendezvousError,
};

use crate::job_rig::free_port;
use crate::rank_scenes::await_loss;
use crate::rig::Rig;

/// Says what a process of [`other_process`] is: a port and a rank.
const PLAN: &str = "KILN_TEST_LOSS_PLAN";
/// No rank waits until this deadline.
const NEVER: DeviceCommunicatorConfig = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(20);
    config
}

fn end_thread() {
    std::panic::resume_unwind(Box::new("this rank is to end"));
}

/// The sum of what all ranks bring, each its number in the job and 1.
fn sum(rank: &DeviceCommunicator, of_job: u32) -> u32 {
    let buffer = rank.runtime().upload(&[of_job + 1]).unwrap();
    rank.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
    buffer.download().unwrap()[0]
}

/// Joins as a rank that was lost, once the job knows of that.
fn join_again(port: u16, rank: u32, size: u32) -> Arc<Rendezvous> {
    loop {
        match Rendezvous::join(&config(port, rank, size)) {
            Err(RendezvousError::RankTaken { .. }) => thread::sleep(Duration::from_millis(1)),
            joined => return Arc::new(joined.unwrap()),
        }
    }
}

/// The meetings of a rank after a replacement has come: they are those of all others.
fn meet_twice(gpu: &DeviceRuntime, job: &Arc<Rendezvous>) -> [DeviceCommunicator; 2] {
    let met = [(); 2].map(|()| DeviceCommunicator::meet(gpu, job, &NEVER).unwrap());
    for communicator in met.iter().rev() {
        assert_eq!(sum(communicator, job.rank()), 6);
    }
    job.barrier("end").unwrap();
    met
}

#[test]
fn a_replacement_goes_on_with_the_meetings_of_the_others() {
    for meetings in [1, 4] {
        let rig = Rig::new(3, 1);
        let port = free_port();
        let ranks: Vec<_> = (0..3)
            .map(|rank: u32| {
                let gpu = rig.group.runtime(rank as usize).unwrap().clone();
                thread::spawn(move || {
                    let job = Arc::new(Rendezvous::join(&config(port, rank, 3)).unwrap());
                    let meet = |_| DeviceCommunicator::meet(&gpu, &job, &NEVER).unwrap();
                    let met: Vec<_> = (0..meetings).map(meet).collect();
                    met.iter().for_each(|communicator| assert_eq!(sum(communicator, rank), 6));
                    job.barrier("all have met").unwrap();
                    if rank == 2 {
                        end_thread();
                    }
                    let last = met.last().unwrap();
                    await_loss(last);
                    let rebuilt = last.rebuild_replaced().unwrap();
                    assert_eq!(rebuilt.replaced, [2]);
                    assert_eq!(sum(&rebuilt.communicator, rank), 6);
                    meet_twice(&gpu, &job).map(|met| met.id())
                })
            })
            .collect();
        let gpu = rig.group.runtime(2).unwrap();
        let mut ranks = ranks.into_iter();
        let [first, second, lost] = std::array::from_fn(|_| ranks.next().unwrap());
        assert!(lost.join().is_err());
        let job = join_again(port, 2, 3);
        assert!(job.is_replacement());
        let rebuilt = DeviceCommunicator::replace(gpu, &job, &NEVER).unwrap();
        assert_eq!(sum(&rebuilt.communicator, 2), 6);
        let ids = meet_twice(gpu, &job).map(|met| met.id());
        assert_eq!([first.join().unwrap(), second.join().unwrap()], [ids, ids], "{meetings} meetings before");
        assert_ne!(ids[0], ids[1]);
    }
}

/// What a rank does until two of four are left: rank 3 is lost, and rank 2 some time after that, while the others rebuild. Then rank 1 is lost.
/// A rank is lost when all ranks are past the collective before: the barriers are where they wait for that.
fn survive(rank: DeviceCommunicator, of_job: u32, pause: Duration, [all, two_left]: &[Barrier; 2]) {
    assert_eq!(sum(&rank, of_job), 10);
    all.wait();
    if of_job == 3 {
        end_thread();
    }
    await_loss(&rank);
    assert_eq!(rank.lost_rank().map(|lost| lost.rank), Some(3));
    if of_job == 2 {
        thread::sleep(pause);
        end_thread();
    }
    let began = Instant::now();
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0, 1]);
    assert_eq!(rebuilt.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [2, 3]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(rank);
    let two = rebuilt.communicator;
    assert_eq!((sum(&two, of_job), two.lost_rank()), (3, None));
    two_left.wait();
    if of_job == 1 {
        end_thread();
    }
    await_loss(&two);
    let one = two.rebuild().unwrap();
    assert_eq!((one.former_ranks.as_slice(), one.communicator.size()), (&[0][..], 1));
    assert_eq!(sum(&one.communicator, 0), 1);
}

#[test]
fn a_second_rank_of_a_group_that_is_lost_while_the_others_rebuild_is_left_out_too() {
    for pause in [0, 1, 5, 20, 60] {
        let rig = Rig::new(4, pause);
        let ranks = rig.group.communicators(&NEVER).unwrap();
        let barriers = Arc::new([Barrier::new(4), Barrier::new(2)]);
        let survive = |rank: DeviceCommunicator| {
            let (of_job, barriers) = (rank.rank(), barriers.clone());
            thread::spawn(move || survive(rank, of_job, Duration::from_millis(pause), &barriers))
        };
        let threads: Vec<_> = ranks.into_iter().map(survive).collect();
        let is_lost: Vec<bool> = threads.into_iter().map(|thread| thread.join().is_err()).collect();
        assert_eq!(is_lost, [false, true, true, true], "{pause} ms");
    }
}

#[test]
fn a_second_rank_of_a_job_that_is_lost_while_the_others_rebuild_is_left_out_too() {
    for pause in [0, 1, 5, 20, 60] {
        let rig = Rig::new(4, pause);
        let port = free_port();
        let barriers = Arc::new([Barrier::new(4), Barrier::new(2)]);
        let survive = |rank: u32| {
            let (gpu, barriers) = (rig.group.runtime(rank as usize).unwrap().clone(), barriers.clone());
            thread::spawn(move || {
                let job = Arc::new(Rendezvous::join(&config(port, rank, 4)).unwrap());
                let all = DeviceCommunicator::meet(&gpu, &job, &NEVER).unwrap();
                survive(all, rank, Duration::from_millis(pause), &barriers);
            })
        };
        let threads: Vec<_> = (0..4).map(survive).collect();
        let is_lost: Vec<bool> = threads.into_iter().map(|thread| thread.join().is_err()).collect();
        assert_eq!(is_lost, [false, true, true, true], "{pause} ms");
    }
}

/// Not a test: what the process of a rank does.
#[test]
fn other_process() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let numbers: Vec<u32> = plan.split(' ').map(|number| number.parse().unwrap()).collect();
    let job = Arc::new(Rendezvous::join(&config(numbers[0] as u16, numbers[1], 4)).unwrap());
    rebuild_until_two_are_left(&job, || {});
}

/// Rebuilds after each loss. `lose` is called when all ranks have met.
fn rebuild_until_two_are_left(job: &Arc<Rendezvous>, lose: impl FnOnce()) {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let mut rank = DeviceCommunicator::meet(&gpu, job, &NEVER).unwrap();
    assert_eq!(sum(&rank, job.rank()), 10);
    job.barrier("all have met").unwrap();
    lose();
    let mut left = vec![0, 1, 2, 3];
    while rank.size() > 2 {
        await_loss(&rank);
        let rebuilt =
            rank.rebuild().unwrap_or_else(|error| panic!("rank {} of {left:?}: {error}", job.rank()));
        left = rebuilt.former_ranks.iter().map(|former| left[*former as usize]).collect();
        rank = rebuilt.communicator;
    }
    assert_eq!(left, [0, 1], "rank {}", job.rank());
    assert_eq!(sum(&rank, job.rank()), 3);
    job.acknowledge_losses();
    job.barrier("end").unwrap();
}

#[test]
fn a_process_that_is_killed_while_the_others_rebuild_is_left_out_too() {
    for pause in [0, 2, 4, 8, 16, 32, 64] {
        let port = free_port();
        let start = |rank: u32| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["second_losses::other_process", "--exact", "--nocapture"]);
            child.env(PLAN, format!("{port} {rank}")).stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut others = [1, 2, 3].map(start);
        let job = Arc::new(Rendezvous::join(&config(port, 0, 4)).unwrap());
        let began = Instant::now();
        thread::scope(|threads| {
            let (second, third) = others[1..].split_at_mut(1);
            rebuild_until_two_are_left(&job, || {
                third[0].kill().unwrap();
                threads.spawn(move || {
                    thread::sleep(Duration::from_millis(pause));
                    second[0].kill().unwrap();
                });
            });
        });
        assert!(began.elapsed() < Duration::from_secs(15), "{:?} with {pause} ms", began.elapsed());
        let [first, second, third] = others.map(|other| other.wait_with_output().unwrap());
        assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stdout));
        assert!(!second.status.success() && !third.status.success());
    }
}
