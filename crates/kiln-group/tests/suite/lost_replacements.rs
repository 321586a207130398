//! Replacements that are lost before they have their place: others are waited for.

use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, DeviceGroup, GroupError, RebuiltCommunicator, Rendezvous,
};
use kiln::sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

use crate::job_rig::{Plan, begin, free_port, join, join_with, limits, said, signal, stay, sum, told_of_one};
use crate::rig::Rig;
use crate::wild_kernel::launch_wild;

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("lost_replacements::replaced_process", scene, (port, rank, size))
}

/// Not a test: what another process does.
#[test]
fn replaced_process() {
    let Some(plan) = Plan::of_process() else { return };
    let mut config = plan.config();
    if plan.scene.starts_with("gives up") {
        config.timeout = Duration::from_millis(1500);
    }
    let job = join_with(&config);
    match plan.scene.as_str() {
        "gives up once" => {
            let gpu = DeviceRuntime::simulated(7).unwrap();
            gives_up(&job, &gpu);
            goes_on(&job, Ok(asks_again(&job, &gpu)));
        }
        "gives up, and asks again when it is told to" => {
            let gpu = DeviceRuntime::simulated(7).unwrap();
            gives_up(&job, &gpu);
            wait_for(&job, "ask again");
            assert_eq!(sum(&asks_again(&job, &gpu).communicator), 3);
            job.barrier("end").unwrap();
        }
        "rebuilds afterwards" => {
            let (_gpu, rank) = begin(&job);
            told_of_one(&rank);
            wait_for(&job, "gave up");
            goes_on(&job, rank.rebuild_replaced());
        }
        "joins and ends" => std::process::abort(),
        "ends" => {
            let _all = begin(&job);
            std::process::abort();
        }
        "applies" => {
            let gpu = DeviceRuntime::simulated(7).unwrap();
            job.put("applies", b"").unwrap();
            let _ = DeviceCommunicator::replace(&gpu, &job, &limits());
            stay();
        }
        "replaces" => {
            let gpu = DeviceRuntime::simulated(7).unwrap();
            goes_on(&job, DeviceCommunicator::replace(&gpu, &job, &limits()));
        }
        "rebuilds twice" => {
            let (_gpu, rank) = begin(&job);
            goes_on_twice(&job, &rank);
        }
        "rebuilds" | "rebuilds late" => {
            let (_gpu, rank) = begin(&job);
            told_of_one(&rank);
            job.acknowledge_losses();
            // Another replacement may be lost meanwhile.
            while plan.scene == "rebuilds late" && job.get("second").is_err() {
                job.acknowledge_losses();
            }
            goes_on(&job, rank.rebuild_replaced());
        }
        scene => panic!("{scene}"),
    }
}

/// A replacement asks for its place before the others want one.
fn gives_up(job: &Arc<Rendezvous>, gpu: &DeviceRuntime) {
    let told = DeviceCommunicator::replace(gpu, job, &limits()).unwrap_err().to_string();
    assert!(told.contains("have not given rank 1 its place"), "{told}");
    job.put("gave up", b"").unwrap();
}

/// The place that it is given at last.
fn asks_again(job: &Arc<Rendezvous>, gpu: &DeviceRuntime) -> RebuiltCommunicator {
    let again = || DeviceCommunicator::replace(gpu, job, &limits()).ok();
    let replaced = std::iter::repeat_with(again).take(10).find_map(|replaced| replaced);
    replaced.expect("the place was not given in ten calls")
}

/// Waits for a word of another rank, whatever is lost meanwhile.
fn wait_for(job: &Rendezvous, word: &str) {
    job.acknowledge_losses();
    while job.get(word).is_err() {
        job.acknowledge_losses();
    }
}

/// All three ranks are there, and none of them is taken for lost.
fn goes_on(job: &Rendezvous, rebuilt: Result<RebuiltCommunicator, GroupError>) {
    let rebuilt = rebuilt.unwrap();
    assert_eq!((rebuilt.former_ranks.len(), &rebuilt.replaced[..]), (3, &[1][..]));
    for _ in 0..3 {
        assert_eq!(sum(&rebuilt.communicator), 6);
    }
    job.acknowledge_losses();
    job.barrier("end").unwrap();
    assert_eq!(rebuilt.communicator.lost_rank(), None);
}

/// Rank 0, which rebuilds while `replace` starts and ends replacements of rank 1.
fn rebuilds_while(scene: &str, replace: impl FnOnce(u16, &Arc<Rendezvous>) -> Child + Send) {
    let port = free_port();
    let (mut lost, other) = (start("ends", port, 1, 3), start(scene, port, 2, 3));
    let job = join(port, 0, 3);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    lost.wait().unwrap();
    job.acknowledge_losses();
    thread::scope(|threads| {
        let replaced = threads.spawn(|| replace(port, &job));
        goes_on(&job, rank.rebuild_replaced());
        said(replaced.join().unwrap());
    });
    said(other);
}

/// The first replacement is lost after all have agreed on it and before it has joined. The next one goes on.
fn goes_on_twice(job: &Arc<Rendezvous>, rank: &DeviceCommunicator) {
    told_of_one(rank);
    job.acknowledge_losses();
    let first = rank.rebuild_replaced().unwrap();
    assert_eq!((first.former_ranks.len(), &first.replaced[..]), (3, &[1][..]));
    job.put(&format!("rebuilt {}", job.rank()), b"").unwrap();
    let cause = told_of_one(&first.communicator);
    assert_eq!(
        cause,
        "its replacement was lost before it joined this communicator: its process ended or closed the connection"
    );
    goes_on(job, first.communicator.rebuild_replaced());
}

#[test]
fn a_replacement_that_ends_after_all_agreed_on_it_is_a_loss_of_the_new_communicator() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 3);
    let other = start("rebuilds twice", port, 2, 3);
    let mut zero = crate::job_rig::config(port, 0, 3);
    // A replacement that is stopped is not lost before it is killed.
    zero.silence = Duration::from_secs(60);
    let job = join_with(&zero);
    let (_gpu, rank) = begin(&job);
    lost.wait().unwrap();
    job.wait_for_loss(Duration::from_secs(15)).unwrap().unwrap();
    job.acknowledge_losses();
    thread::scope(|threads| {
        let replaced = threads.spawn(|| {
            let mut first = start("applies", port, 1, 3);
            // It asks for its place, and waits.
            job.get("applies").unwrap();
            thread::sleep(Duration::from_millis(500));
            signal("-STOP", &first);
            job.put("stopped", b"").unwrap();
            job.get("rebuilt 2").unwrap();
            job.get("rebuilt 0").unwrap();
            signal("-KILL", &first);
            first.wait().unwrap();
            start("replaces", port, 1, 3)
        });
        job.get("stopped").unwrap();
        goes_on_twice(&job, &rank);
        said(replaced.join().unwrap());
    });
    said(other);
}

#[test]
fn a_replacement_that_gave_up_has_no_place_until_it_asks_again() {
    let port = free_port();
    let (mut lost, other) = (start("ends", port, 1, 3), start("rebuilds afterwards", port, 2, 3));
    let job = join(port, 0, 3);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    lost.wait().unwrap();
    job.acknowledge_losses();
    let replaced = start("gives up once", port, 1, 3);
    wait_for(&job, "gave up");
    goes_on(&job, rank.rebuild_replaced());
    said(replaced);
    said(other);
}

#[test]
fn a_replacement_that_gave_up_is_not_taken_by_those_that_rebuild_later() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 2);
    let mut zero = crate::job_rig::config(port, 0, 2);
    zero.timeout = Duration::from_secs(3);
    let job = join_with(&zero);
    let (_gpu, rank) = begin(&job);
    lost.wait().unwrap();
    told_of_one(&rank);
    job.acknowledge_losses();
    let replaced = start("gives up, and asks again when it is told to", port, 1, 2);
    wait_for(&job, "gave up");
    let told = rank.rebuild_replaced().map(drop).unwrap_err();
    assert!(matches!(&told, GroupError::ReplacementsAbsent { ranks, .. } if ranks[..] == [1]), "{told}");
    job.put("ask again", b"").unwrap();
    let again = || rank.rebuild_replaced().ok();
    let rebuilt = std::iter::repeat_with(again).take(10).find_map(|rebuilt| rebuilt).unwrap();
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.acknowledge_losses();
    job.barrier("end").unwrap();
    said(replaced);
}

#[test]
fn only_lost_ranks_without_a_replacement_are_named_as_such() {
    let port = free_port();
    let mut lost = [start("ends", port, 1, 3), start("ends", port, 2, 3)];
    let mut zero = crate::job_rig::config(port, 0, 3);
    zero.timeout = Duration::from_secs(4);
    let job = join_with(&zero);
    let (_gpu, rank) = begin(&job);
    for lost in &mut lost {
        lost.wait().unwrap();
    }
    job.acknowledge_losses();
    let mut second = start("applies", port, 2, 3);
    wait_for(&job, "applies");
    thread::sleep(Duration::from_millis(300));
    let told = rank.rebuild_replaced().map(drop).unwrap_err();
    assert!(matches!(&told, GroupError::ReplacementsAbsent { ranks, .. } if ranks[..] == [1]), "{told}");
    signal("-KILL", &second);
    second.wait().unwrap();
}

#[test]
fn a_replacement_that_ends_before_it_asks_for_its_place_is_no_loss_of_the_new_communicator() {
    rebuilds_while("rebuilds", |port, _| {
        start("joins and ends", port, 1, 3).wait().unwrap();
        start("replaces", port, 1, 3)
    });
}

#[test]
fn a_replacement_that_ends_while_it_waits_for_its_place_is_waited_for_again() {
    rebuilds_while("rebuilds late", |port, job| {
        let mut first = start("applies", port, 1, 3);
        // Rank 0 knows of it, and waits for rank 2.
        thread::sleep(Duration::from_secs(1));
        signal("-KILL", &first);
        first.wait().unwrap();
        let second = start("replaces", port, 1, 3);
        job.put("second", b"").unwrap();
        second
    });
}

#[test]
fn a_replacement_whose_device_is_lost_while_it_waits_makes_room_for_another() {
    let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default()));
    let config = (0..5).fold(config, |config, _| config.device(DeviceConfig::default()));
    let rig = Rig::over(Machine::new(config));
    let runtimes = rig.group.runtimes();
    let group = DeviceGroup::new(runtimes[..3].to_vec()).unwrap();
    let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(60) };
    let ranks = group.communicators(&config).unwrap();
    assert!(launch_wild(&runtimes[1]).wait().unwrap_err().is_lost());
    while ranks.iter().step_by(2).any(|rank| rank.lost_rank().is_none()) {
        thread::sleep(Duration::from_millis(1));
    }
    let vacancy = ranks[0].vacancy(1).unwrap();
    thread::scope(|threads| {
        let first = threads.spawn(|| vacancy.take(&runtimes[3]).map(drop));
        // It has asked for the place once another one is refused.
        let refused = || ranks[0].vacancy(1).unwrap().take(&runtimes[3]).is_err();
        thread::sleep(Duration::from_millis(200));
        assert!(refused());
        assert!(launch_wild(&runtimes[3]).wait().unwrap_err().is_lost());
        assert!(first.join().unwrap().unwrap_err().is_lost());
        let began = Instant::now();
        let second = threads.spawn(|| vacancy.take(&runtimes[4]).unwrap().former_ranks);
        let last = threads.spawn(|| ranks[2].rebuild_replaced().unwrap().former_ranks);
        let rebuilt = ranks[0].rebuild_replaced().unwrap();
        assert_eq!(rebuilt.former_ranks, [0, 1, 2]);
        assert_eq!((second.join().unwrap(), last.join().unwrap()), (vec![0, 1, 2], vec![0, 1, 2]));
        assert_eq!(rebuilt.communicator.lost_rank(), None);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    });
}
