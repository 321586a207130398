//! Ranks of one group that were dropped or shut down, or that have given up a wait, and what the others are told.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kiln::group::{CommunicatorRankLost, DeviceCommunicator, GroupError, Reduction};

use crate::rank_scenes::{await_loss, begun, lose, numbered, wait_in_vain, within};
use crate::rig::Rig;

#[test]
fn a_rank_that_was_dropped_is_told_before_the_rank_that_waits_for_it() {
    for is_shut_down in [false, true] {
        // A rank that was dropped ends the wait for it. One whose device was shut down is waited for until the deadline.
        let seconds = if is_shut_down { 3 } else { 3600 };
        let (_rig, mut ranks, buffers) = begun(3, Duration::from_secs(seconds));
        let second = ranks.remove(1);
        let kept = match is_shut_down {
            true => {
                second.runtime().shutdown(Duration::from_secs(60)).unwrap();
                Some(second)
            }
            false => {
                drop(second);
                None
            }
        };
        let (last, first) = (ranks.remove(1), ranks.remove(0));
        let failed = first.all_reduce_in_place(&buffers[0], Reduction::Sum).submit();
        assert!(
            failed
                .and_then(|ticket| ticket.wait().map_err(|source| GroupError::Rank { rank: 0, source }))
                .is_err()
        );
        await_loss(&last);
        let told = last.lost_rank().unwrap();
        let how = if is_shut_down { "shut down" } else { "dropped" };
        assert_eq!(told.rank, 1, "{told:?}");
        assert!(told.cause.contains(how) && told.cause.contains("rank 0 waits in a later one"), "{told:?}");
        let began = Instant::now();
        let rebuilt = last.rebuild().unwrap();
        assert_eq!(rebuilt.former_ranks, [2]);
        assert_eq!(rebuilt.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [0, 1]);
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        drop(kept);
    }
}

/// How long ranks are waited for where a rank that was dropped is to be told long before.
const DEADLINE: Duration = Duration::from_secs(30);

/// Rank 0 waits in a collective that rank 1 does not come to; the answer must come long before the deadline.
fn told_at_once(scene: &str, rank: &DeviceCommunicator, wait: impl FnOnce() -> String) {
    let began = Instant::now();
    let told = wait();
    let took = began.elapsed();
    assert!(took < DEADLINE / 6, "{scene}: rank {} was told after {took:?}: {told}", rank.rank());
    assert!(
        told.contains("rank 1, which ") && told.contains("has dropped its communicator"),
        "{scene}: {told}"
    );
}

#[test]
fn a_rank_that_is_dropped_with_unfinished_work_is_told_at_once() {
    for scene in ["a fill", "a collective", "a graph that was refused", "a graph"] {
        let rig = Rig::new(2, 1);
        let mut ranks = rig.group.communicators(&within(DEADLINE)).unwrap();
        let buffers = numbered(&ranks);
        let (second, first) = (ranks.remove(1), ranks.remove(0));
        let reduction = if scene == "a graph that was refused" { Reduction::Max } else { Reduction::Sum };
        let graph = |rank: &DeviceCommunicator, reduction| {
            let mut graph = rank.runtime().graph();
            let buffer = &buffers[rank.rank() as usize];
            rank.all_reduce_in_place(buffer, reduction).record(&mut graph).unwrap();
            graph.build().unwrap()
        };
        let is_graph = scene.starts_with("a graph");
        let own = is_graph.then(|| graph(&first, Reduction::Sum));
        let queued = own.as_ref().map(|graph| graph.replay().unwrap());
        match scene {
            "a fill" => drop(buffers[1].fill(7).unwrap()),
            "a collective" => drop(second.all_reduce_in_place(&buffers[1], Reduction::Sum).submit().unwrap()),
            _ => assert_eq!(graph(&second, reduction).replay().is_err(), scene.ends_with("refused")),
        }
        drop(second);
        // What it had called is done.
        let has_called = matches!(scene, "a collective" | "a graph");
        if scene == "a collective" {
            first.all_reduce_in_place(&buffers[0], Reduction::Sum).submit().unwrap().wait().unwrap();
        }
        match queued {
            Some(queued) if has_called => {
                queued.wait().unwrap();
                told_at_once(scene, &first, || wait_in_vain(&first, &buffers[0]));
            }
            Some(queued) => told_at_once(scene, &first, || queued.wait().unwrap_err().to_string()),
            None => told_at_once(scene, &first, || wait_in_vain(&first, &buffers[0])),
        }
    }
}

#[test]
fn a_rank_that_is_dropped_while_its_call_waits_behind_another_one_is_not_told() {
    let rig = Rig::new(3, 1);
    let join = |id, device: usize, rank| {
        DeviceCommunicator::join(rig.group.runtime(device).unwrap(), id, rank, 2, &within(DEADLINE)).unwrap()
    };
    let new_id = || DeviceCommunicator::new_id(rig.group.runtime(1).unwrap()).unwrap();
    // One communicator of the first two devices, and one of the last two.
    let (first_id, last_id) = (new_id(), new_id());
    let first = [join(first_id, 0, 0), join(first_id, 1, 1)];
    let last = [join(last_id, 1, 0), join(last_id, 2, 1)];
    let buffers = [0, 1, 2].map(|at| rig.group.runtime(at).unwrap().upload(&[at as u32 + 1; 4]).unwrap());
    let sum = |rank: &DeviceCommunicator, at: usize| {
        rank.all_reduce_in_place(&buffers[at], Reduction::Sum).submit().unwrap()
    };
    sum(&last[0], 1);
    let [waiting, dropped] = first;
    sum(&dropped, 1);
    drop(dropped);
    thread::scope(|threads| {
        let waited = threads.spawn(|| sum(&waiting, 0).wait());
        thread::sleep(Duration::from_millis(300));
        sum(&last[1], 2).wait().unwrap();
        waited.join().unwrap().unwrap();
    });
    assert_eq!(buffers[0].download().unwrap(), [6; 4]);
    drop((waiting, last, buffers));
    rig.finish();
}

#[test]
fn a_rank_whose_graph_is_kept_is_told_when_the_graph_is_dropped() {
    let (_rig, mut ranks, buffers) = begun(2, DEADLINE);
    let graphs = [0, 1].map(|at: usize| {
        let mut graph = ranks[at].runtime().graph();
        ranks[at].all_reduce_in_place(&buffers[at], Reduction::Sum).record(&mut graph).unwrap();
        graph.build().unwrap()
    });
    drop(ranks.remove(1));
    // A graph keeps what it needs of the communicator.
    for graph in &graphs {
        graph.replay().unwrap();
    }
    assert_eq!(buffers[0].download().unwrap(), [6; 4]);
    let [first, second] = graphs;
    drop(second);
    told_at_once("a kept graph", &ranks[0], || first.replay().unwrap().wait().unwrap_err().to_string());
}

#[test]
fn a_rank_that_was_dropped_is_told_also_when_the_rank_that_waited_for_it_has_ended() {
    for how in ["dropped", "shut down", "dropped, and the other one panics"] {
        let is_shut_down = how == "shut down";
        let seconds = if is_shut_down { 2 } else { 3600 };
        let (_rig, mut ranks, buffers) = begun(3, Duration::from_secs(seconds));
        let departed = ranks.remove(2);
        if is_shut_down {
            departed.runtime().shutdown(Duration::from_secs(60)).unwrap();
        }
        drop(departed);
        let (other, first) = (ranks.remove(1), ranks.remove(0));
        let failed = first.all_reduce_in_place(&buffers[0], Reduction::Sum).submit();
        assert!(failed.map(|ticket| ticket.wait().is_err()).unwrap_or(true), "{how}");
        // Its handle goes before a thread has looked at it.
        match how {
            "dropped, and the other one panics" => lose(first),
            _ => drop(first),
        }
        await_loss(&other);
        let told = other.lost_rank().unwrap();
        assert_eq!(told.rank, 2, "{how}: {told:?}");
        assert!(told.cause.contains("rank 0 waits in a later one"), "{how}: {told:?}");
    }
}

#[test]
fn all_ranks_that_were_dropped_are_named() {
    let (_rig, mut ranks, buffers) = begun(4, Duration::from_secs(3600));
    // Ranks 3 and 1.
    [3, 1].iter().for_each(|at| drop(ranks.remove(*at)));
    let told = wait_in_vain(&ranks[0], &buffers[0]);
    for rank in [1, 3] {
        assert!(told.contains(&format!("rank {rank}, which has dropped its communicator")), "{told}");
    }
    await_loss(&ranks[1]);
    let told = ranks[1].lost_rank().unwrap();
    assert!(told.rank == 1 && told.cause.ends_with("; ranks 1 and 3 have gone"), "{told:?}");
}

#[test]
fn a_read_after_an_ended_collective_names_the_rank_as_the_collective_does() {
    let (_rig, mut ranks, buffers) = begun(3, Duration::from_secs(3600));
    let second = ranks.remove(1);
    let from = ranks[0].runtime().upload(&[1_u32; 4]).unwrap();
    let to = ranks[0].runtime().allocate::<u32>(4).unwrap();
    let tickets = [
        ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).submit().unwrap(),
        ranks[0].all_reduce(&from, &to, Reduction::Sum).submit().unwrap(),
    ];
    lose(second);
    await_loss(&ranks[0]);
    let refused = ranks[0].all_reduce(&from, &to, Reduction::Sum).submit().unwrap_err();
    let expected = refused.lost_rank().unwrap();
    assert_eq!(expected.lost, 1, "{refused}");
    assert_eq!(ranks[0].lost_rank().map(|lost| lost.cause).as_ref(), Some(&expected.cause));
    let waits = tickets.iter().map(|ticket| ticket.wait().unwrap_err());
    let reads = [&buffers[0], &to].map(|buffer| buffer.download().unwrap_err());
    for told in waits.chain(reads) {
        assert_eq!(told.downcast_ref::<CommunicatorRankLost>(), Some(expected), "{told}");
    }
    assert_eq!(from.download().unwrap(), [1; 4]);
}

#[test]
fn a_read_names_the_rank_that_was_dropped_as_the_collective_does() {
    let (_rig, mut ranks, buffers) = begun(3, Duration::from_secs(3600));
    drop(ranks.remove(1));
    let waited = wait_in_vain(&ranks[0], &buffers[0]);
    let read = buffers[0].download().unwrap_err().to_string();
    await_loss(&ranks[1]);
    let refused = ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).submit().unwrap_err();
    let refused = refused.to_string();
    for told in [waited, read, refused] {
        assert!(
            told.contains("rank 1, which has dropped") || told.contains("rank 1 of communicator "),
            "{told}"
        );
    }
    assert_eq!(ranks[1].lost_rank().map(|lost| lost.rank), Some(1));
    assert_eq!(buffers[1].download().unwrap(), [6; 4]);
}

#[test]
fn a_device_that_is_lost_while_it_is_shut_down_is_a_lost_rank() {
    let rig = Rig::new(3, 1);
    let ranks = rig.group.communicators(&within(Duration::from_millis(500))).unwrap();
    let buffers = numbered(&ranks);
    rig.group.synchronize().unwrap();
    ranks[1].all_reduce_in_place(&buffers[1], Reduction::Sum).submit().unwrap();
    // It waits for the others until the deadline, which takes its device.
    assert!(ranks[1].runtime().shutdown(Duration::from_secs(60)).unwrap_err().is_lost());
    for at in [0, 2] {
        await_loss(&ranks[at]);
        let told = ranks[at].lost_rank().unwrap();
        assert!(told.rank == 1 && told.cause.contains("LAUNCH_TIMEOUT"), "{told:?}");
        let refused = ranks[at].all_reduce_in_place(&buffers[at], Reduction::Sum).submit().unwrap_err();
        assert!(refused.lost_rank().is_some_and(|lost| lost.lost == 1), "{refused}");
        assert_eq!(buffers[at].download().unwrap(), [at as u32 + 1; 4]);
    }
    thread::scope(|threads| {
        let last = threads.spawn(|| ranks[2].rebuild().unwrap().former_ranks);
        assert_eq!(ranks[0].rebuild().unwrap().former_ranks, [0, 2]);
        assert_eq!(last.join().unwrap(), [0, 2]);
    });
}

#[test]
fn what_a_lost_rank_had_brought_is_not_used_for_ranks_that_come_later() {
    let rig = Rig::new(3, 1);
    let id = DeviceCommunicator::new_id(rig.group.runtime(0).unwrap()).unwrap();
    let join = |rank: u32| {
        let runtime = rig.group.runtime(rank as usize).unwrap();
        DeviceCommunicator::join(runtime, id, rank, 3, &within(Duration::from_millis(300))).unwrap()
    };
    let ranks: Vec<_> = (0..3).map(join).collect();
    let buffers = numbered(&ranks);
    rig.group.synchronize().unwrap();
    ranks[1].all_reduce_in_place(&buffers[1], Reduction::Sum).submit().unwrap();
    assert!(ranks[1].runtime().synchronize().unwrap_err().is_lost());
    let tickets = [0, 2].map(|at| ranks[at].all_reduce_in_place(&buffers[at], Reduction::Sum).submit());
    for ticket in tickets {
        let told = ticket.unwrap().wait().unwrap_err();
        assert!(told.is_lost() && told.to_string().contains("rank 1, which is lost"), "{told}");
    }
}

#[test]
fn a_rank_that_was_dropped_is_not_waited_for_in_a_rebuild() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&within(Duration::from_secs(3600))).unwrap();
    rig.group.synchronize().unwrap();
    drop(ranks.remove(1));
    lose(ranks.remove(1));
    await_loss(&ranks[0]);
    assert_eq!(ranks[0].lost_rank().unwrap().rank, 2);
    let rebuilt = ranks[0].rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0]);
}

#[test]
fn a_rank_that_gives_up_its_wait_for_a_replacement_is_not_blamed_by_the_others() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&within(Duration::from_secs(4))).unwrap();
    lose(ranks.remove(1));
    ranks.iter().for_each(await_loss);
    let (first, last) = (&ranks[0], &ranks[1]);
    let in_vain = |rank: &DeviceCommunicator| {
        let told = rank.rebuild_replaced().unwrap_err();
        assert!(matches!(&told, GroupError::ReplacementsAbsent { ranks, .. } if ranks[..] == [1]), "{told}");
        rank.rebuild().unwrap().former_ranks
    };
    thread::scope(|threads| {
        // It gives up first, and rebuilds without a replacement while the other one still waits for one.
        let first = threads.spawn(|| in_vain(first));
        thread::sleep(Duration::from_millis(1000));
        assert_eq!(in_vain(last), [0, 2]);
        assert_eq!(first.join().unwrap(), [0, 2]);
    });
}

/// Not a test: a program whose communicators are dropped last.
#[test]
fn communicators_last() {
    if std::env::var_os("KILN_TEST_COMMUNICATORS_LAST").is_none() {
        return;
    }
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&within(Duration::from_secs(60))).unwrap();
    for rank in &ranks {
        rank.barrier().submit().unwrap();
    }
    rig.group.synchronize().unwrap();
    drop(rig.group);
    drop(ranks);
}

#[test]
fn a_communicator_that_is_dropped_after_its_group_leaves_no_buffer() {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dropped_ranks::communicators_last", "--exact", "--nocapture"]);
    let output = program.env("KILN_TEST_COMMUNICATORS_LAST", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("bytes of buffers"), "{said}");
}
