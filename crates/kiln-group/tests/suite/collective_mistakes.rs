//! Mistakes in the use of collectives: each is found, with the ranks and the values.

use std::panic::Location;
use std::time::{Duration, Instant};

use kiln::group::{CalledCollective, DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction};
use kiln::sim::FindingKind;
use kiln::{GpuRef, Ticket};

use crate::rig::Rig;

pub(crate) struct Ranks {
    pub(crate) ranks: Vec<DeviceCommunicator>,
    pub(crate) buffers: Vec<GpuRef<f32>>,
    pub(crate) rig: Rig,
}

pub(crate) fn short() -> DeviceCommunicatorConfig {
    DeviceCommunicatorConfig { deadline: Duration::from_millis(150) }
}

/// Ranks with a short deadline, and a buffer of ones for each.
pub(crate) fn ranks(count: u32) -> Ranks {
    let rig = Rig::new(count, 1);
    let ranks = rig.group.communicators(&short()).unwrap();
    let buffers = ranks.iter().map(|rank| rank.runtime().upload(&[1.0_f32; 12]).unwrap()).collect();
    Ranks { ranks, buffers, rig }
}

/// Rank 0 submits one call and rank 1 another; the second must be refused with these words, and with a finding.
#[track_caller]
fn mismatch(
    one: impl Fn(&DeviceCommunicator, &GpuRef<f32>) -> Result<Ticket, GroupError>,
    other: impl Fn(&DeviceCommunicator, &GpuRef<f32>) -> Result<Ticket, GroupError>,
    words: &str,
) {
    let Ranks { ranks, buffers, rig } = ranks(2);
    one(&ranks[0], &buffers[0]).unwrap();
    let told = other(&ranks[1], &buffers[1]).unwrap_err();
    let error = told.to_string();
    assert!(error.contains("rank 1 and rank 0 differ in ") && error.contains(words), "{error}");
    // With both calls and their lines.
    let GroupError::OtherCollective { rank: 1, call, .. } = &told else { panic!("{error}") };
    let line = |called: &CalledCollective| {
        assert!(error.contains(&called.to_string()), "{error}");
        let line = called.place.strip_prefix(concat!(file!(), ":")).unwrap().split_once(':').unwrap().0;
        line.parse::<u32>().unwrap()
    };
    assert_eq!((call.0.rank, call.1.rank), (1, 0), "{error}");
    // The closures stand below this call, that of rank 0 first.
    let test = Location::caller().line();
    assert!((test + 1..test + 4).contains(&line(&call.1)), "{error}");
    assert!((line(&call.1) + 1..test + 7).contains(&line(&call.0)), "{error}");
    assert_ne!(call.0.what, call.1.what, "{error}");
    let findings = rig.machine.findings();
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.kind, FindingKind::CollectiveMismatch);
    assert!(found.to_string().contains(words), "{found}");
    // What rank 0 waits for can still come.
    one(&ranks[1], &buffers[1]).unwrap();
    let told = rig.group.synchronize().unwrap_err();
    assert!(!told.is_lost() && told.to_string().contains(words), "{told}");
    rig.group.synchronize().unwrap();
}

#[test]
fn another_kind() {
    mismatch(
        |rank, buffer| rank.all_reduce_in_place(buffer, Reduction::Sum).submit(),
        |rank, buffer| rank.broadcast(buffer, 0).submit(),
        "the kind of collective 0: broadcast and all_reduce",
    );
}

#[test]
fn another_count() {
    mismatch(
        |rank, buffer| rank.all_reduce_in_place(buffer, Reduction::Sum).submit(),
        |rank, buffer| rank.all_reduce_in_place(&buffer.view(..5).unwrap(), Reduction::Sum).submit(),
        "the count of collective 0: 5 elements and 12 elements",
    );
}

#[test]
fn another_type() {
    mismatch(
        |rank, buffer| rank.all_reduce_in_place(buffer, Reduction::Sum).submit(),
        |rank, buffer| rank.all_reduce_in_place(&buffer.cast::<u32>().unwrap(), Reduction::Sum).submit(),
        "the element type of collective 0: u32 and f32",
    );
}

#[test]
fn another_reduction() {
    mismatch(
        |rank, buffer| rank.all_reduce_in_place(buffer, Reduction::Sum).submit(),
        |rank, buffer| rank.all_reduce_in_place(buffer, Reduction::Average).submit(),
        "the reduction of collective 0: average and sum",
    );
}

#[test]
fn another_root() {
    mismatch(
        |rank, buffer| rank.broadcast(buffer, 0).submit(),
        |rank, buffer| rank.broadcast(buffer, 1).submit(),
        "the root of collective 0: rank 1 and rank 0",
    );
}

#[test]
fn another_group() {
    mismatch(
        |rank, buffer| rank.broadcast(buffer, 0).submit(),
        |rank, buffer| rank.broadcast(buffer, 0).and(rank.barrier()).submit(),
        "the group of collective 0: collective 1 of 2 in its group and collective 1 of 1 in its group",
    );
}

#[test]
fn a_receive_of_another_length_than_its_send() {
    mismatch(
        |rank, buffer| match rank.rank() {
            0 => rank.send(buffer, 1).submit(),
            _ => rank.recv(buffer, 0).submit(),
        },
        |rank, buffer| rank.recv(&buffer.view(..3).unwrap(), 0).submit(),
        "the count of transfer 0 from rank 0 to rank 1: 3 elements and 12 elements",
    );
}

/// A line of this file, as far as it is said.
fn at(line: u32) -> String {
    format!("{}:{line}:", file!())
}

/// The text that a wait of every rank ends with; it must name who waits and be told soon after the deadline.
fn deadlock(ranks: &Ranks, waiting: &[usize], words: &[&str]) {
    let began = Instant::now();
    for rank in waiting {
        let error = ranks.buffers[*rank].download().unwrap_err();
        let text = error.to_string();
        assert!(error.is_sticky(), "{text}");
        words.iter().for_each(|words| assert!(text.contains(words), "`{words}` in {text}"));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let findings = ranks.rig.machine.findings();
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.kind, FindingKind::CollectiveDeadlock, "{found}");
}

#[test]
fn a_rank_that_never_comes() {
    let all = ranks(3);
    for rank in [0, 2] {
        all.ranks[rank].all_reduce_in_place(&all.buffers[rank], Reduction::Sum).submit().unwrap();
    }
    let line = line!() - 2;
    deadlock(
        &all,
        &[0, 2],
        &[
            &format!("(device 0, called at {}", at(line)),
            ") waits in collective 0, all_reduce of 12 f32, for rank 1, which has not called it",
            &format!("(device 2, called at {}", at(line)),
        ],
    );
    // Rank 1 waits for nothing, and goes on.
    assert_eq!(all.buffers[1].download().unwrap(), [1.0; 12]);
}

#[test]
fn a_rank_that_never_joins() {
    let rig = Rig::new(2, 1);
    let gpu = rig.group.runtime(0).unwrap();
    let id = DeviceCommunicator::new_id(gpu).unwrap();
    let rank = DeviceCommunicator::join(gpu, id, 0, 2, &short()).unwrap();
    let error = rank.barrier().submit().unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("waits in collective 0, barrier, for rank 1, which was never loaded"), "{error}");
}

#[test]
fn two_communicators_in_crossed_order() {
    let all = ranks(2);
    let others = all.rig.group.communicators(&short()).unwrap();
    let streams: Vec<_> = all.ranks.iter().map(|rank| rank.runtime().stream().unwrap()).collect();
    let first = |rank: usize| {
        all.ranks[rank].all_reduce_in_place(&all.buffers[rank], Reduction::Sum).on(&streams[rank])
    };
    let second =
        |rank: usize| others[rank].all_reduce_in_place(&all.buffers[rank], Reduction::Sum).on(&streams[rank]);
    first(0).submit().unwrap();
    second(1).submit().unwrap();
    let first_line = line!() - 2;
    second(0).submit().unwrap();
    first(1).submit().unwrap();
    let words = [
        &format!("(device 0, called at {}", at(first_line)),
        &format!("(device 1, called at {}", at(first_line + 1)),
        "for rank 1, which has queued it behind other work",
        "for rank 0, which has queued it behind other work",
        "; queue the calls of all communicators in the same order on each rank",
    ];
    deadlock(&all, &[0, 1], &words);
}

#[test]
fn a_send_without_a_receive() {
    let all = ranks(2);
    all.ranks[0].send(&all.buffers[0], 1).submit().unwrap();
    all.buffers[0].fill(0.0).unwrap();
    deadlock(
        &all,
        &[0],
        &[
            "waits in transfer 0, send of 12 f32, for rank 1, which has not called it; let each of these ranks call it before",
        ],
    );
}

#[test]
fn a_rank_that_leaves_while_others_wait_for_it() {
    let rig = Rig::new(2, 1);
    // No rank waits until this deadline.
    let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let mut ranks = rig.group.communicators(&config).unwrap();
    let (second, first) = (ranks.pop().unwrap(), ranks.pop().unwrap());
    rig.group.synchronize().unwrap();
    let ticket = first.barrier().submit().unwrap();
    drop(second);
    let error = ticket.wait().unwrap_err().to_string();
    assert!(error.contains("for rank 1, which has dropped its communicator or shut down its device; let each of these ranks call it before"), "{error}");
    assert_eq!(rig.machine.findings()[0].kind, FindingKind::CollectiveDeadlock);
}

#[test]
fn a_program_that_ends_before_all_ranks_came() {
    let Ranks { ranks, buffers, rig } = ranks(2);
    ranks[0].broadcast(&buffers[0], 1).submit().unwrap();
    let report = rig.machine.finish();
    assert!(report.findings.iter().any(|found| found.kind == FindingKind::CollectiveDeadlock), "{report}");
}

#[test]
fn ranks_that_do_not_fit_their_communicator() {
    let rig = Rig::new(2, 1);
    let (one, other) = (rig.group.runtime(0).unwrap(), rig.group.runtime(1).unwrap());
    let id = DeviceCommunicator::new_id(one).unwrap();
    let _first = DeviceCommunicator::join(one, id, 0, 2, &short()).unwrap();
    let refused = |rank, size, words: &str| {
        let error = DeviceCommunicator::join(other, id, rank, size, &short()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(0, 2, "rank 0 of communicator");
    refused(0, 2, "was loaded before, on device 0");
    refused(1, 3, "rank 1 and rank 0 differ in the number of ranks: 3 and 2");
    refused(2, 2, "rank 2 of a communicator of 2 ranks");
    refused(0, 0, "a communicator of no ranks");
    let forever = DeviceCommunicatorConfig { deadline: Duration::ZERO };
    assert!(DeviceCommunicator::join(other, id, 1, 2, &forever).is_err());
    // None of that took the place of rank 1.
    let _second = DeviceCommunicator::join(other, id, 1, 2, &short()).unwrap();
}

#[test]
fn calls_that_do_not_fit_their_buffers() {
    let Ranks { ranks, buffers, rig } = ranks(2);
    let (rank, buffer) = (&ranks[0], &buffers[0]);
    let view = |range: std::ops::Range<usize>| buffer.view(range).unwrap();
    let refused = |call: kiln::group::CollectiveCall<'_>, words: &str| {
        let error = call.submit().unwrap_err().to_string();
        assert!(error.contains(words), "`{words}` in {error}");
    };
    refused(
        rank.all_reduce(&view(0..4), &view(4..9), Reduction::Sum),
        "`recv` has 5 elements and must have 4",
    );
    refused(rank.all_reduce(&view(0..6), &view(5..11), Reduction::Sum), "`send` and `recv` share memory");
    refused(
        rank.all_reduce_in_place(&view(0..6), Reduction::Sum).and(rank.broadcast(&view(5..9), 0)),
        "`buffer` of all_reduce and `buffer` of broadcast, calls 0 and 1 of the group, share memory",
    );
    refused(rank.all_to_all(&view(0..5), &view(5..10)), "5 elements for 2 ranks");
    refused(
        rank.reduce_scatter(&view(0..6), &view(6..8), Reduction::Sum),
        "`send` has 6 elements and must have 4",
    );
    refused(rank.broadcast(buffer, 2), "root 2 is no rank of a communicator of 2");
    refused(rank.send(buffer, 0), "rank 0 is its own peer");
    refused(rank.recv(buffer, 7), "peer 7 is no rank of a communicator of 2");
    refused(rank.gather(&view(0..2), None, 0), "rank 0 is the root and gives no `recv`");
    refused(rank.gather(&view(0..2), Some(&view(2..6)), 1), "rank 0 is not the root and gives a `recv`");
    refused(rank.barrier().and(ranks[1].barrier()), "calls of two communicators");
    refused(rank.broadcast(&buffers[1], 0), "another");
    let many = (0..200).fold(rank.barrier(), |call, _| call.and(rank.send(buffer, 1)));
    refused(many, "a group of 201 collectives");
    drop((ranks, buffers));
    rig.finish();
}

#[test]
fn memory_that_was_never_written_is_found_in_what_a_rank_sends() {
    let Ranks { ranks, rig, .. } = ranks(2);
    let mut line = 0;
    for rank in &ranks {
        let buffer = rank.runtime().allocate::<f32>(8).unwrap();
        line = line!() + 1;
        rank.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
    }
    let told = rig.group.synchronize().unwrap_err().to_string();
    assert!(told.contains("never written: launch all_reduce"), "{told}");
    let findings = rig.machine.findings();
    let place = format!(", called at {}:{line}:", file!());
    assert!(findings.iter().all(|found| found.to_string().contains(&place)), "{findings:?}");
    assert!(findings.iter().all(|found| found.kind == FindingKind::Uninitialised), "{findings:?}");
    assert_eq!(findings.len(), 2);
}

#[test]
fn two_ranks_on_one_device() {
    let rig = Rig::new(2, 1);
    let gpu = rig.group.runtime(0).unwrap();
    let id = DeviceCommunicator::new_id(gpu).unwrap();
    let first = DeviceCommunicator::join(gpu, id, 0, 2, &short()).unwrap();
    let error = DeviceCommunicator::join(gpu, id, 1, 2, &short()).unwrap_err().to_string();
    assert!(
        error.contains("ranks 0 and 1 of communicator") && error.contains("are both on device 0"),
        "{error}"
    );
    let second = DeviceCommunicator::join(rig.group.runtime(1).unwrap(), id, 1, 2, &short()).unwrap();
    first.barrier().submit().unwrap();
    second.barrier().submit().unwrap();
    rig.group.synchronize().unwrap();
}

#[test]
fn a_deadline_without_end_is_taken() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig { deadline: Duration::MAX }).unwrap();
    ranks.iter().for_each(|rank| assert!(rank.barrier().submit().is_ok()));
    rig.group.synchronize().unwrap();
}

#[test]
fn a_rank_that_was_dropped_before_it_did_anything() {
    let rig = Rig::new(3, 1);
    // No rank waits until this deadline.
    let long = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let mut ranks = rig.group.communicators(&long).unwrap();
    // Its device has not even written what it was made of.
    drop(ranks.remove(1));
    let error = ranks[0].barrier().submit().unwrap().wait().unwrap_err().to_string();
    assert!(
        error.contains("for rank 1, which has dropped its communicator or shut down its device and rank 2,"),
        "{error}"
    );
    assert_eq!(rig.machine.findings()[0].kind, FindingKind::CollectiveDeadlock);
}

#[test]
fn a_rank_that_leaves_after_its_last_collective_is_not_lost() {
    let rig = Rig::new(2, 1);
    let mut ranks = rig.group.communicators(&short()).unwrap();
    ranks.iter().for_each(|rank| assert!(rank.barrier().submit().is_ok()));
    drop(ranks.remove(1));
    std::thread::sleep(Duration::from_millis(100));
    rig.group.synchronize().unwrap();
    assert_eq!(ranks[0].lost_rank(), None);
}

#[test]
fn ranks_that_wait_for_one_whose_call_was_refused_are_told_what_it_called() {
    // One call, and one of several in a group.
    for is_group in [false, true] {
        let Ranks { mut ranks, buffers, rig } = ranks(2);
        let call = |rank: usize, reduction| {
            let call = ranks[rank].all_reduce_in_place(&buffers[rank], reduction);
            if is_group { ranks[rank].barrier().and(call) } else { call }
        };
        let waiting = call(0, Reduction::Sum).submit().unwrap();
        assert!(call(1, Reduction::Max).submit().is_err());
        drop(ranks.remove(1));
        let told = waiting.wait().unwrap_err().to_string();
        let words = "for rank 1, which called all_reduce of 12 f32 there with another reduction, max, and was refused, and has dropped its communicator";
        assert!(told.contains(words), "{told}");
        drop((ranks, buffers, rig));
    }
}

#[test]
fn a_rank_that_waits_is_told_of_a_group_that_was_refused_for_another_of_its_calls() {
    // Which of the two calls differs.
    for differs in [0, 1] {
        let Ranks { ranks, buffers, rig } = ranks(2);
        let call = |rank: usize, counts: [usize; 2]| {
            let views =
                [buffers[rank].view(..counts[0]).unwrap(), buffers[rank].view(8..8 + counts[1]).unwrap()];
            let [first, second] = views.map(|view| ranks[rank].all_reduce_in_place(&view, Reduction::Sum));
            first.and(second).submit()
        };
        let waiting = call(0, [4, 4]).unwrap();
        let counts = if differs == 0 { [3, 4] } else { [4, 3] };
        assert!(call(1, counts).is_err());
        let told = waiting.wait().unwrap_err().to_string();
        let own = format!(
            "waits in collective {differs}, all_reduce of 4 f32, for rank 1, which called all_reduce of 3 f32 there with another count, 3 elements, and was refused"
        );
        assert!(told.contains(&own), "{told}");
        let other = format!(
            "waits in collective {}, all_reduce of 4 f32, for rank 1, which called all_reduce of 4 f32 there in a group that was refused: its all_reduce of 3 f32 in collective {differs} has another count, 3 elements",
            1 - differs
        );
        assert!(told.contains(&other), "{told}");
        assert!(!told.contains("has not called it"), "{told}");
        drop((ranks, buffers, rig));
    }
}

#[test]
fn a_rank_that_waits_for_a_transfer_is_told_of_a_group_that_was_refused_for_another_of_its_calls() {
    let Ranks { ranks, buffers, rig } = ranks(3);
    let half = |rank: usize, at: usize, count: usize| buffers[rank].view(6 * at..6 * at + count).unwrap();
    ranks[0].recv(&buffers[0], 1).submit().unwrap();
    ranks[2].recv(&half(2, 0, 6), 1).submit().unwrap();
    assert!(ranks[1].send(&half(1, 0, 5), 0).and(ranks[1].send(&half(1, 1, 6), 2)).submit().is_err());
    let told = buffers[2].download().unwrap_err().to_string();
    let words = "waits in transfer 0, recv of 6 f32, for rank 1, which called send of 6 f32 there in a group that was refused: \
                 its send of 5 f32 in transfer 0 from rank 1 to rank 0 has another count, 5 elements";
    assert!(told.contains(words), "{told}");
    drop((ranks, buffers, rig));
}

#[test]
fn a_group_of_transfers_that_is_refused_names_the_two_calls_that_differ() {
    // Rank 0 is the first or the second to call.
    for first in [0, 1] {
        let Ranks { ranks, buffers, rig } = ranks(2);
        let view = |rank: usize, at: usize, count: usize| buffers[rank].view(at..at + count).unwrap();
        // Two sends of rank 0 and one of rank 1: the second of rank 0 meets a receive of another length.
        let group = |rank: usize| {
            let peer = 1 - rank as u32;
            let own = &ranks[rank];
            match rank {
                0 => own
                    .send(&view(0, 0, 4), peer)
                    .and(own.recv(&view(0, 4, 4), peer))
                    .and(own.send(&view(0, 8, 3), peer))
                    .submit(),
                _ => own
                    .send(&view(1, 0, 4), peer)
                    .and(own.recv(&view(1, 4, 4), peer))
                    .and(own.recv(&view(1, 8, 4), peer))
                    .submit(),
            }
        };
        group(first).unwrap();
        let told = group(1 - first).unwrap_err();
        let error = told.to_string();
        let GroupError::OtherCollective { call, .. } = &told else { panic!("{error}") };
        let mut calls = [&call.0, &call.1];
        calls.sort_by_key(|call| call.rank);
        assert_eq!(
            calls.map(|call| &*call.what),
            [
                "send of 12 bytes (3 f32) from rank 0 to rank 1, transfer 1 between the two",
                "recv of 16 bytes (4 f32) from rank 0 to rank 1, transfer 1 between the two"
            ],
            "{error}"
        );
        assert!(error.contains("the count of transfer 1 from rank 0 to rank 1"), "{error}");
        drop((ranks, buffers, rig));
    }
}

/// Not a test: a program whose rank calls something else than another one, and reads the error.
#[test]
fn refused_program() {
    if std::env::var_os("KILN_TEST_REFUSED_PROGRAM").is_none() {
        return;
    }
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1.0_f32; 12]).unwrap()).collect();
    ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).submit().unwrap();
    let told = ranks[1].all_reduce_in_place(&buffers[1], Reduction::Max).submit().unwrap_err();
    assert!(matches!(told, GroupError::OtherCollective { .. }), "{told}");
    ranks[1].all_reduce_in_place(&buffers[1], Reduction::Sum).submit().unwrap();
    assert_eq!(buffers[0].download().unwrap(), [2.0; 12]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_that_was_refused_is_not_told_again_when_the_program_ends() {
    let mut program = crate::job_rig::helper("collective_mistakes::refused_program");
    let output = program.env("KILN_TEST_REFUSED_PROGRAM", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("differ in the reduction of collective 0"), "{said}");
}
