//! Ranks of one process that send to each other before they receive: all are told at once, with the lines; and legal orders that are not told.

#![allow(clippy::drop_non_drop, reason = "drop says that the ticket is not waited for")]

use std::time::Duration;

use kiln::Ticket;
use kiln::group::{CommunicatorFailed, DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction};

use crate::collective_mistakes::ranks;
use crate::rig::Rig;

/// Ranks that send to the next one and then receive: the last receive is refused, and all are told of all sends with their lines.
fn crossing(size: u32, order: impl Fn(&dyn Fn(usize, bool) -> Result<Ticket, GroupError>) -> GroupError) {
    let rig = Rig::new(size, 1);
    // No rank waits until this deadline.
    let ranks =
        rig.group.communicators(&DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) }).unwrap();
    let upload = |rank: &DeviceCommunicator| rank.runtime().upload(&[1.0_f32; 6]).unwrap();
    let [sent, received] = [(); 2].map(|()| ranks.iter().map(upload).collect::<Vec<_>>());
    let line = line!() + 4;
    let call = |rank: usize, is_send: bool| {
        let (next, before) = ((rank as u32 + 1) % size, (rank as u32 + size - 1) % size);
        match is_send {
            true => ranks[rank].send(&sent[rank], next).submit(),
            false => ranks[rank].recv(&received[rank], before).submit(),
        }
    };
    let error = order(&call);
    let GroupError::CrossingSends { sends } = &error else { panic!("{error}") };
    assert_eq!(sends.len(), size as usize, "{error}");
    for from in 0..size {
        let to = (from + 1) % size;
        let send = format!(
            "send of 24 bytes (6 f32) from rank {from} to rank {to}, transfer 0 between the two, at {}:{line}:",
            file!()
        );
        assert!(sends.iter().any(|said| said.starts_with(&send)), "{send}: {error}");
    }
    // Each rank is told, and its device goes on.
    for rank in &ranks {
        let told = rank.barrier().submit().and_then(|ticket| {
            ticket.wait().map_err(|source| GroupError::Rank { rank: rank.rank(), source })
        });
        assert!(told.is_err());
        let again = rank.runtime().upload(&[2.0_f32; 4]).unwrap();
        assert_eq!(again.download().unwrap(), [2.0; 4]);
    }
    for buffer in &sent {
        assert_eq!(buffer.download().unwrap(), [1.0; 6]);
    }
}

#[test]
fn ranks_that_send_to_each_other_before_they_receive_are_told_with_lines() {
    for size in [2, 3, 5] {
        // All send first.
        crossing(size, |call| {
            (0..size as usize).for_each(|rank| drop(call(rank, true).unwrap()));
            (1..size as usize).for_each(|rank| drop(call(rank, false).unwrap()));
            call(0, false).unwrap_err()
        });
        // One rank after the other, so that receives come before their sends.
        crossing(size, |call| {
            for rank in 0..size as usize - 1 {
                call(rank, true).unwrap();
                call(rank, false).unwrap();
            }
            call(size as usize - 1, true).unwrap();
            call(size as usize - 1, false).unwrap_err()
        });
    }
}

#[test]
fn ranks_that_wait_are_told_of_sends_that_cross_with_their_lines() {
    let all = ranks(2);
    let send =
        |rank: usize| all.ranks[rank].send(&all.buffers[rank].view(..6).unwrap(), 1 - rank as u32).submit();
    let recv =
        |rank: usize| all.ranks[rank].recv(&all.buffers[rank].view(6..).unwrap(), 1 - rank as u32).submit();
    let tickets = [send(0).unwrap(), recv(0).unwrap(), send(1).unwrap()];
    let error = recv(1).unwrap_err().to_string();
    for ticket in tickets {
        let told = ticket.wait().unwrap_err();
        let failed = told.downcast_ref::<CommunicatorFailed>().unwrap_or_else(|| panic!("{told}"));
        assert_eq!(failed.cause, error);
    }
    assert!(error.contains("put the send and the receive of a rank into one call"), "{error}");
}

#[test]
fn ranks_that_have_called_nothing_are_told_of_sends_that_cross_as_well() {
    let all = ranks(4);
    let half = |rank: usize, first: bool| all.buffers[rank].view(if first { 0..6 } else { 6..12 }).unwrap();
    for rank in 0..2 {
        all.ranks[rank].send(&half(rank, true), 1 - rank as u32).submit().unwrap();
    }
    all.ranks[0].recv(&half(0, false), 1).submit().unwrap();
    let error = all.ranks[1].recv(&half(1, false), 0).submit().unwrap_err().to_string();
    for (rank, buffer) in all.ranks.iter().zip(&all.buffers) {
        let GroupError::Rank { rank: of, source } =
            rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap_err()
        else {
            panic!("rank {}", rank.rank())
        };
        let failed = source.downcast_ref::<CommunicatorFailed>().unwrap_or_else(|| panic!("{source}"));
        assert_eq!((of, &failed.cause), (rank.rank(), &error));
        // Its device goes on.
        assert_eq!(rank.runtime().upload(&[2.0_f32; 4]).unwrap().download().unwrap(), [2.0; 4]);
    }
    assert_eq!(all.buffers[2].download().unwrap(), [1.0; 12]);
}

#[test]
fn transfers_that_some_order_of_the_ranks_does_are_not_crossing() {
    let all = ranks(3);
    let half = |rank: usize, first: bool| match first {
        true => all.buffers[rank].view(..6).unwrap(),
        false => all.buffers[rank].view(6..).unwrap(),
    };
    for _ in 0..3 {
        // A ring in which rank 0 receives first, and one in one call.
        for rank in 0..3 {
            let (next, before) = ((rank as u32 + 1) % 3, (rank as u32 + 2) % 3);
            let (sent, received) = (half(rank, true), half(rank, false));
            let calls = [all.ranks[rank].send(&sent, next), all.ranks[rank].recv(&received, before)];
            let [send, recv] = calls;
            match rank {
                0 => drop((recv.submit().unwrap(), send.submit().unwrap())),
                _ => drop((send.submit().unwrap(), recv.submit().unwrap())),
            }
        }
        for rank in 0..3 {
            let (next, before) = ((rank as u32 + 1) % 3, (rank as u32 + 2) % 3);
            let (sent, received) = (half(rank, true), half(rank, false));
            all.ranks[rank].send(&sent, next).and(all.ranks[rank].recv(&received, before)).submit().unwrap();
        }
    }
    // Sends that are received later, in their order, and an answer.
    let (sent, received) = (half(0, true), half(1, false));
    (0..5).for_each(|_| drop(all.ranks[0].send(&sent, 1).submit().unwrap()));
    (0..5).for_each(|_| drop(all.ranks[1].recv(&received, 0).submit().unwrap()));
    all.ranks[1].send(&half(1, true), 0).submit().unwrap();
    all.ranks[0].recv(&half(0, false), 1).submit().unwrap();
    all.rig.group.synchronize().unwrap();
    assert_eq!(all.rig.machine.findings(), []);
}
