//! What ranks agree on in an exchange or a barrier: which kind of call it is, and its name. With the line of the program, so that two calls that do not meet can be told.

use std::fmt;
use std::panic::Location;

/// The most bytes of a line of a program that are kept: a path may be long.
const MAX_PLACE: usize = 400;

/// A call of a rank that waits for the other ranks of its job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RendezvousCall {
    /// What was called.
    pub kind: RendezvousCallKind,
    /// Its name; the number of a communicator, counted from 0.
    pub name: String,
    /// File, line and column of the call.
    pub place: String,
}

/// A kind of call that waits for the other ranks of a job. Calls of two kinds do not meet, also if they have the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RendezvousCallKind {
    /// [`Rendezvous::exchange`](crate::Rendezvous::exchange).
    Exchange,
    /// [`Rendezvous::barrier`](crate::Rendezvous::barrier).
    Barrier,
    /// [`DeviceCommunicator::meet`](crate::DeviceCommunicator::meet).
    Meet,
}

const KINDS: [RendezvousCallKind; 3] =
    [RendezvousCallKind::Exchange, RendezvousCallKind::Barrier, RendezvousCallKind::Meet];

impl RendezvousCall {
    pub(crate) fn new(kind: RendezvousCallKind, name: &str, place: &Location<'_>) -> Self {
        let place = place.to_string();
        let cut =
            (place.len().saturating_sub(MAX_PLACE)..=place.len()).find(|at| place.is_char_boundary(*at));
        let place = place.get(cut.unwrap_or(0)..).unwrap_or_default().to_owned();
        Self { kind, name: name.to_owned(), place }
    }

    /// Whether two ranks that make these calls come to each other.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }

    /// As the store is given it.
    pub(super) fn to_text(&self) -> String {
        let Self { kind, name, place } = self;
        format!("{kind} {} {name}{place}", name.len())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let (length, rest) = rest.split_once(' ')?;
        let (name, place) = rest.split_at_checked(length.parse().ok()?)?;
        let kind = KINDS.into_iter().find(|known| known.to_string() == kind)?;
        Some(Self { kind, name: name.to_owned(), place: place.to_owned() })
    }

    /// A value that is given in this call, behind the call.
    pub(super) fn with_value(&self, value: &[u8]) -> Vec<u8> {
        let text = self.to_text();
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), value].concat()
    }

    pub(super) fn and_value(bytes: &[u8]) -> Option<(Self, Vec<u8>)> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, value) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some((Self::parse(std::str::from_utf8(text).ok()?)?, value.to_vec()))
    }
}

impl fmt::Display for RendezvousCallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exchange => "exchange",
            Self::Barrier => "barrier",
            Self::Meet => "meet",
        })
    }
}

impl fmt::Display for RendezvousCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, place } = self;
        match kind {
            RendezvousCallKind::Meet => write!(f, "`DeviceCommunicator::meet` number {name} at {place}"),
            _ => write!(f, "{kind} `{name}` at {place}"),
        }
    }
}

/// Two calls of two ranks that did not meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TwoCalls {
    pub(crate) own: RendezvousCall,
    pub(crate) other: RendezvousCall,
}

impl TwoCalls {
    pub(super) fn to_text(&self) -> String {
        let own = self.own.to_text();
        format!("{} {own}{}", own.len(), self.other.to_text())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (length, rest) = text.split_once(' ')?;
        let (own, other) = rest.split_at_checked(length.parse().ok()?)?;
        Some(Self { own: RendezvousCall::parse(own)?, other: RendezvousCall::parse(other)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_arrive_as_they_were() {
        let here = Location::caller();
        for name in ["", "a", "1 2 exchange \n", "ä ö"] {
            for kind in KINDS {
                let call = RendezvousCall::new(kind, name, here);
                assert!(call.place.ends_with(&format!(
                    "rendezvous_call.rs:{}:{}",
                    here.line(),
                    here.column()
                )));
                assert_eq!(RendezvousCall::parse(&call.to_text()), Some(call.clone()));
                let packed = call.with_value(b"value");
                assert_eq!(RendezvousCall::and_value(&packed), Some((call.clone(), b"value".to_vec())));
                let two = TwoCalls { own: call.clone(), other: RendezvousCall::new(kind, "b", here) };
                assert_eq!(TwoCalls::parse(&two.to_text()), Some(two));
            }
        }
        for wrong in ["", "exchange", "exchange 9 a", "exchange x a", "dance 1 a", "exchange 1 ä"] {
            assert_eq!(RendezvousCall::parse(wrong), None, "{wrong}");
            assert_eq!(TwoCalls::parse(wrong), None, "{wrong}");
        }
        assert_eq!(RendezvousCall::and_value(&[9, 0, 0, 0, 0, 0, 0, 0, 1]), None);
        assert_eq!(RendezvousCall::and_value(b"short"), None);
    }

    #[test]
    fn calls_of_two_kinds_do_not_meet() {
        let call = |kind, name| RendezvousCall::new(kind, name, Location::caller());
        let [exchange, barrier, _] = KINDS;
        assert!(call(exchange, "a").meets(&call(exchange, "a")));
        assert!(!call(exchange, "a").meets(&call(barrier, "a")));
        assert!(!call(exchange, "a").meets(&call(exchange, "b")));
    }
}
