//! Transfers between ranks in several processes that wait for each other.
//!
//! On GPUs the calls of a rank run one after the other, and a send ends when its receive has begun. The store gives a rank what was sent at once, so a program that a GPU would stop is not
//! stopped here. It is found by its order instead: a call begins after every earlier call of its rank has ended, and such a call has ended when all calls that it meets have begun. Where
//! that makes a call begin after itself, no order of the ranks exists.
//!
//! This part is pure. It is told of each send, and of each receive when that has what was sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::transfer::Transfer;

/// Transfers of a communicator that are kept. Beyond that the oldest go, and what they would show is not found.
const MAX_MET: usize = 1024;

/// How the key ends under which a receiver says that it has received something.
const MET: &str = "/met";

/// A call of a rank, by its number.
type Call = (u32, u64);

/// A send and its receive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MetTransfer {
    pub(crate) transfer: Transfer,
    /// Which call of its rank the send is in, and the receive.
    pub(crate) sent_in: u64,
    pub(crate) received_in: u64,
    /// What is said of the send; nothing of one that was refused.
    pub(crate) said: String,
}

/// The transfers of all communicators of a job.
#[derive(Debug, Default)]
pub(crate) struct TransferOrder {
    communicators: BTreeMap<String, Transfers>,
}

#[derive(Debug, Default)]
struct Transfers {
    /// Sent and not received, as sender, receiver and number.
    open: BTreeSet<(u32, u32, u64)>,
    met: VecDeque<MetTransfer>,
}

/// A call that must have begun, because of a transfer of one that must have ended.
struct Begun {
    call: Call,
    /// The place of that transfer, and of the call.
    because: Option<(usize, usize)>,
}

impl TransferOrder {
    /// A rank has sent something.
    pub(crate) fn sent(&mut self, communicator: &str, transfer: Transfer) {
        let Transfer { from, to, number } = transfer;
        let transfers = match self.communicators.get_mut(communicator) {
            Some(known) => known,
            None => self.communicators.entry(communicator.to_owned()).or_default(),
        };
        transfers.open.insert((from, to, number));
    }

    /// A rank has received it. What is said of the sends that wait for each other, if it closes a circle of such.
    pub(crate) fn received(&mut self, communicator: &str, met: MetTransfer) -> Option<Vec<String>> {
        let transfers = self.communicators.get_mut(communicator)?;
        let Transfer { from, to, number } = met.transfer;
        transfers.open.remove(&(from, to, number));
        let mut circle = None;
        if !met.said.is_empty() {
            circle = transfers.circle(&met);
            transfers.met.push_back(met);
        }
        if transfers.met.len() > MAX_MET {
            transfers.met.pop_front();
        }
        // What is received later is of later calls, which none of these waits for.
        if transfers.open.is_empty() {
            self.communicators.remove(communicator);
        }
        circle
    }

    /// The communicators whose names begin so have ended.
    pub(crate) fn forget(&mut self, prefix: &str) {
        self.communicators.retain(|name, _| !format!("{name}/").starts_with(prefix));
    }
}

impl Transfers {
    /// The sends that wait for each other: the sender of a transfer ends its call when the receiver has come to its own, which may wait for a later call of the sender.
    fn circle(&self, last: &MetTransfer) -> Option<Vec<String>> {
        let (sender, receiver) = (last.sent(), last.received());
        let mut begun = vec![Begun { call: receiver, because: None }];
        // The place of the latest call of each rank among those.
        let mut latest = BTreeMap::from([(receiver.0, 0)]);
        loop {
            let next = self.next(&begun, &latest)?;
            let (rank, number) = next.call;
            begun.push(next);
            latest.insert(rank, begun.len() - 1);
            if rank == sender.0 && number > sender.1 {
                break;
            }
        }
        let mut said = vec![last.said.clone()];
        let mut at = begun.last();
        while let Some((transfer, before)) = at.and_then(|begun| begun.because) {
            said.extend(self.met.get(transfer).map(|met| met.said.clone()));
            at = begun.get(before);
        }
        Some(said)
    }

    /// Another call that must have begun. Looking at the last transfers first, most ranks come to their latest call in one step.
    fn next(&self, begun: &[Begun], latest: &BTreeMap<u32, usize>) -> Option<Begun> {
        let number = |rank: u32| Some(begun.get(*latest.get(&rank)?)?.call.1);
        self.met.iter().enumerate().rev().find_map(|(at, met)| {
            let ends = [(met.sent(), met.received()), (met.received(), met.sent())];
            let (ended, call) = ends.into_iter().find(|((rank, ended), (other, call))| {
                number(*rank).is_some_and(|latest| latest > *ended)
                    && number(*other).is_none_or(|latest| latest < *call)
            })?;
            Some(Begun { call, because: Some((at, *latest.get(&ended.0)?)) })
        })
    }
}

impl MetTransfer {
    /// Where the receiver says that it has received it, as the store is told.
    pub(crate) fn key(&self, communicator: &str) -> String {
        format!("{}{MET}", self.transfer.key(communicator))
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let numbers = [self.sent_in.to_le_bytes(), self.received_in.to_le_bytes()];
        [&numbers.concat()[..], self.said.as_bytes()].concat()
    }

    /// The name of its communicator, and what the receiver says of it; none if it says something else.
    pub(crate) fn parse<'k>(key: &'k str, value: &[u8]) -> Option<(&'k str, Self)> {
        let (communicator, transfer) = Transfer::parse(key.strip_suffix(MET)?)?;
        let (sent_in, rest) = value.split_first_chunk()?;
        let (received_in, said) = rest.split_first_chunk()?;
        let (sent_in, received_in) = (u64::from_le_bytes(*sent_in), u64::from_le_bytes(*received_in));
        let said = std::str::from_utf8(said).ok()?.to_owned();
        Some((communicator, Self { transfer, sent_in, received_in, said }))
    }

    fn sent(&self) -> Call {
        (self.transfer.from, self.sent_in)
    }

    fn received(&self) -> Call {
        (self.transfer.to, self.received_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives of ranks in the order in which they happen: sender and its call, receiver and its call. Everything is sent before.
    fn circles(received: &[(Call, Call)]) -> Vec<Option<Vec<String>>> {
        let mut order = TransferOrder::default();
        let transfer = |at: usize| {
            let ((from, _), (to, _)) = received[at];
            let number = received[..at].iter().filter(|((one, _), (other, _))| (*one, *other) == (from, to));
            Transfer { from, to, number: number.count() as u64 }
        };
        (0..received.len()).for_each(|at| order.sent("ab", transfer(at)));
        let receive = |at: usize| {
            let ((from, sent_in), (to, received_in)) = received[at];
            let said = format!("{from}.{sent_in} to {to}.{received_in}");
            order.received("ab", MetTransfer { transfer: transfer(at), sent_in, received_in, said })
        };
        let circles = (0..received.len()).map(receive).collect();
        assert!(order.communicators.is_empty());
        circles
    }

    #[test]
    fn two_ranks_that_send_first_wait_for_each_other() {
        let found = circles(&[((0, 0), (1, 1)), ((1, 0), (0, 1))]);
        assert_eq!(found[0], None);
        assert_eq!(found[1], Some(vec!["1.0 to 0.1".to_owned(), "0.0 to 1.1".to_owned()]));
    }

    #[test]
    fn a_ring_of_ranks_that_send_first_wait_for_each_other() {
        let found = circles(&[((0, 0), (1, 1)), ((1, 0), (2, 1)), ((2, 0), (3, 1)), ((3, 0), (0, 1))]);
        assert_eq!(found[..3], [None, None, None]);
        assert_eq!(found[3].as_ref().map(Vec::len), Some(4), "{found:?}");
    }

    #[test]
    fn a_second_send_before_the_answer_is_received_waits_for_it() {
        // Rank 0 sends twice and receives; rank 1 receives, answers and receives.
        let found = circles(&[((0, 0), (1, 0)), ((0, 1), (1, 2)), ((1, 1), (0, 2))]);
        assert_eq!(found[2], Some(vec!["1.1 to 0.2".to_owned(), "0.1 to 1.2".to_owned()]));
    }

    #[test]
    fn transfers_that_can_be_done_in_some_order_are_no_circle() {
        for legal in [
            // A group on both ranks, twice.
            &[((0, 0), (1, 0)), ((1, 0), (0, 0)), ((0, 1), (1, 1)), ((1, 1), (0, 1))][..],
            // One of the two receives first.
            &[((0, 0), (1, 0)), ((1, 1), (0, 1))],
            // Sends that are received late, all of them in order.
            &[((0, 0), (1, 5)), ((0, 1), (1, 6)), ((0, 2), (1, 7)), ((1, 8), (0, 3))],
            // A ring in which one rank receives first.
            &[((0, 0), (1, 1)), ((1, 0), (2, 0)), ((2, 1), (0, 1))],
            // A group on one rank, which meets a send and a receive of the other.
            &[((0, 0), (1, 0)), ((1, 1), (0, 0))],
        ] {
            assert!(circles(legal).iter().all(Option::is_none), "{legal:?}");
        }
    }

    #[test]
    fn what_a_receiver_says_arrives_as_it_was() {
        let transfer = Transfer { from: 3, to: 14, number: 159 };
        let met = MetTransfer { transfer, sent_in: 2, received_in: 6, said: "a send".into() };
        let name = crate::transfer::communicator_name("ab0100");
        let (key, value) = (met.key(&name), met.value());
        assert_eq!(MetTransfer::parse(&key, &value), Some((&*name, met.clone())));
        assert_eq!(MetTransfer::parse(&key, &value[..15]), None);
        assert_eq!(MetTransfer::parse(&format!("{}/0", transfer.key(&name)), &value), None);
        // It is no piece of what was sent.
        assert_eq!(Transfer::of_first_piece(&key), None);
    }

    #[test]
    fn what_is_kept_is_bounded_and_goes_with_the_communicator() {
        let mut order = TransferOrder::default();
        let transfer = |number| Transfer { from: 0, to: 1, number };
        // One is never received.
        (0..3000).for_each(|number| order.sent("ab", transfer(number)));
        for number in 0..2999 {
            let met = MetTransfer {
                transfer: transfer(number),
                sent_in: number,
                received_in: number,
                said: "a send".into(),
            };
            assert_eq!(order.received("ab", met), None);
        }
        assert_eq!(order.communicators["ab"].met.len(), MAX_MET);
        order.forget("abc/");
        assert_eq!(order.communicators.len(), 1);
        order.forget("ab/");
        assert!(order.communicators.is_empty());
    }
}
