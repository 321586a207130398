//! What ranks were told first of others that do not come: they have gone in order, or are late. A rank that ends after that ends because of it, and ranks that come later are told of the one
//! that did not come.

use std::collections::BTreeMap;

use super::rendezvous_call::TwoCalls;
use crate::rank_list::named;

/// Ranks of the job that do not come to what another one waits in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ToldAbsence {
    /// One, or several that are late.
    pub(crate) ranks: Vec<u32>,
    pub(crate) why: WhyAbsent,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WhyAbsent {
    /// It has left the job in order.
    LeftJob,
    /// It has ended its part of the communicator of this short name.
    EndedPart(String),
    /// It, or they, did not come in time to an exchange or a barrier of this name.
    LateInExchange(String),
    /// It, or they, did not come in time to a call of a communicator; a sentence about that.
    LateInCall(String),
    /// They have come, after they were late.
    HasCome,
    /// It made another call than the one that was told: both.
    OtherCall(TwoCalls),
}

impl ToldAbsence {
    /// As a message has it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (kind, text) = match &self.why {
            WhyAbsent::LeftJob => (0, String::new()),
            WhyAbsent::EndedPart(communicator) => (1, communicator.clone()),
            WhyAbsent::LateInExchange(name) => (2, name.clone()),
            WhyAbsent::LateInCall(sentence) => (3, sentence.clone()),
            WhyAbsent::HasCome => (4, String::new()),
            WhyAbsent::OtherCall(calls) => (5, calls.to_text()),
        };
        let count = self.ranks.len() as u32;
        let numbers = std::iter::once(count).chain(self.ranks.iter().copied()).flat_map(u32::to_le_bytes);
        std::iter::once(kind).chain(numbers).chain(text.bytes()).collect()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (count, rest) = rest.split_first_chunk()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let (ranks, text) = rest.split_at_checked(count.checked_mul(4)?)?;
        let ranks = ranks.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
        let text = String::from_utf8(text.to_vec()).ok()?;
        let why = match kind {
            0 if text.is_empty() => WhyAbsent::LeftJob,
            1 => WhyAbsent::EndedPart(text),
            2 => WhyAbsent::LateInExchange(text),
            3 => WhyAbsent::LateInCall(text),
            4 if text.is_empty() => WhyAbsent::HasCome,
            5 => WhyAbsent::OtherCall(TwoCalls::parse(&text)?),
            _ => return None,
        };
        Some(Self { ranks, why })
    }

    /// Whether it was late or made another call, and has not gone.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self.why, WhyAbsent::LateInExchange(_) | WhyAbsent::LateInCall(_) | WhyAbsent::OtherCall(_))
    }

    /// What late ranks did not come to, as a sentence, or what they called instead.
    pub(crate) fn late_text(&self) -> Option<String> {
        match &self.why {
            WhyAbsent::LateInExchange(name) => {
                Some(format!("{} did not come to `{name}` in time", named(&self.ranks)))
            }
            WhyAbsent::LateInCall(sentence) => Some(sentence.clone()),
            WhyAbsent::OtherCall(TwoCalls { own, other }) => {
                Some(format!("{} called {other} instead of {own}", named(&self.ranks)))
            }
            WhyAbsent::LeftJob | WhyAbsent::EndedPart(_) | WhyAbsent::HasCome => None,
        }
    }
}

/// By the rank that was told.
#[derive(Default, Debug)]
pub(super) struct ToldAbsences {
    first: BTreeMap<u32, ToldAbsence>,
}

impl ToldAbsences {
    /// A rank was told of one. Whether that is the first, or changes what is known: a rank that was late may have come since, and one that has gone does not.
    pub(super) fn note(&mut self, rank: u32, absence: ToldAbsence) -> bool {
        match (self.first.get_mut(&rank), &absence.why) {
            (None, WhyAbsent::HasCome) => false,
            (None, _) => self.first.insert(rank, absence).is_none(),
            (Some(known), WhyAbsent::HasCome) if known.is_late() => {
                let before = known.ranks.len();
                known.ranks.retain(|late| !absence.ranks.contains(late));
                let is_changed = known.ranks.len() < before;
                if known.ranks.is_empty() {
                    self.first.remove(&rank);
                }
                is_changed
            }
            (Some(_), _) => false,
        }
    }

    pub(super) fn of(&self, rank: u32) -> Option<&ToldAbsence> {
        self.first.get(&rank)
    }

    /// A rank has left, or has joined again.
    pub(super) fn forget(&mut self, rank: u32) {
        self.first.remove(&rank);
    }

    /// A rank that has joined again is not gone.
    pub(super) fn forget_of(&mut self, rank: u32) {
        self.first.retain(|_, absence| {
            absence.ranks.retain(|absent| *absent != rank);
            !absence.ranks.is_empty()
        });
    }

    /// What was seen of a rank that is lost, and what it was told before.
    pub(super) fn cause(&self, rank: u32, cause: String) -> String {
        let Some(told) = self.of(rank) else { return cause };
        if let Some(late) = told.late_text() {
            return format!("{cause}, after {late}");
        }
        match &told.why {
            WhyAbsent::EndedPart(communicator) => format!(
                "{cause}, after it was told that {} of the job had ended its part of communicator {communicator}",
                named(&told.ranks)
            ),
            _ => format!("{cause}, after it was told that {} had left the job", named(&told.ranks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rendezvous_call::{RendezvousCall, RendezvousCallKind};
    use super::*;

    fn late(of: u32) -> ToldAbsence {
        ToldAbsence {
            ranks: vec![of],
            why: WhyAbsent::LateInCall(format!("rank {of} did not come to a call")),
        }
    }

    #[test]
    fn absences_arrive_as_they_were() {
        let call = |name| RendezvousCall {
            kind: RendezvousCallKind::Exchange,
            name: String::from(name),
            place: "main.rs:1:2".into(),
        };
        let all = [
            WhyAbsent::OtherCall(TwoCalls { own: call("a"), other: call("b") }),
            WhyAbsent::LeftJob,
            WhyAbsent::EndedPart("ab".into()),
            WhyAbsent::LateInExchange("end".into()),
            WhyAbsent::LateInCall("rank 7 did not come".into()),
            WhyAbsent::HasCome,
        ];
        for why in all {
            let absence = ToldAbsence { ranks: vec![7, 8], why };
            assert_eq!(ToldAbsence::parse(&absence.to_bytes()), Some(absence));
        }
        for wrong in
            [&[9, 0, 0, 0, 0][..], &[0, 1, 0, 0], &[0, 2, 0, 0, 0, 7, 0, 0, 0], &[0, 255, 255, 255, 255]]
        {
            assert_eq!(ToldAbsence::parse(wrong), None);
        }
    }

    #[test]
    fn the_first_absence_stays_until_a_late_rank_has_come() {
        let mut told = ToldAbsences::default();
        assert!(told.note(1, late(2)) && !told.note(1, late(3)));
        assert_eq!(told.cause(1, "closed".into()), "closed, after rank 2 did not come to a call");
        assert!(!told.note(1, ToldAbsence { ranks: vec![3], why: WhyAbsent::HasCome }));
        assert!(told.note(1, ToldAbsence { ranks: vec![2], why: WhyAbsent::HasCome }));
        assert_eq!(told.cause(1, "closed".into()), "closed");
        let gone = ToldAbsence { ranks: vec![3], why: WhyAbsent::LeftJob };
        assert!(told.note(1, gone) && !told.note(1, ToldAbsence { ranks: vec![3], why: WhyAbsent::HasCome }));
        assert_eq!(told.cause(1, "closed".into()), "closed, after it was told that rank 3 had left the job");
    }
}
