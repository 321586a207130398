//! Messages between a rank and the store, and their bytes: a length, a kind, and fields.
//!
//! Everything that arrives is bounded and checked before it is used; a message that is not one ends the connection.

use std::io::{self, Read, Write};
use std::time::Duration;

use super::told_absences::ToldAbsence;

/// Bytes of a random number that a side proves its knowledge of the token with, and of such a proof.
pub(super) const PROOF_BYTES: usize = 32;
/// The most bytes of a value.
pub(super) const MAX_VALUE: usize = 1 << 20;
/// The most bytes of a key.
pub(super) const MAX_KEY: usize = 512;
/// The most bytes of a message: a key, a value with the call that gives it, and a few numbers, or a list of ranks.
const MAX_MESSAGE: usize = MAX_VALUE + 2 * MAX_KEY + 1024;
/// The most bytes before a rank has proved that it knows the token.
const MAX_GREETING: usize = 128;
/// The first bytes of a connection, and the version of the protocol.
const MAGIC: [u8; 8] = *b"kilnrdv7";

pub(super) type Proof = [u8; PROOF_BYTES];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// The first of a rank.
    Hello {
        nonce: Proof,
    },
    /// The store's answer: it knows the token.
    Challenge {
        nonce: Proof,
        proof: Proof,
    },
    /// The rank knows the token, too.
    Join {
        rank: u32,
        size: u32,
        /// How often it shows that it is there, in milliseconds.
        heartbeat: u32,
        proof: Proof,
    },
    Accepted,
    Refused(Refusal),
    Put {
        id: u64,
        key: String,
        value: Vec<u8>,
    },
    Get {
        id: u64,
        key: String,
    },
    /// Asks for a value that this rank puts, if any does.
    GetOf {
        id: u64,
        rank: u32,
        key: String,
    },
    Remove {
        id: u64,
        key: String,
    },
    /// Asks which ranks have not joined.
    WhoIsMissing {
        id: u64,
    },
    Done {
        id: u64,
    },
    Value {
        id: u64,
        value: Vec<u8>,
    },
    Missing {
        id: u64,
        ranks: Vec<u32>,
    },
    /// The store has no room for a value: it takes so many bytes of its kind.
    Full {
        id: u64,
        limit: u64,
    },
    /// The rank that would put a value has left without it.
    Gone {
        id: u64,
    },
    /// All ranks have joined.
    Complete,
    /// A rank is gone. A rank says so of itself, and of rank 0 when it gives up the store.
    Lost {
        rank: u32,
        cause: String,
    },
    /// A rank has left as planned.
    Left {
        rank: u32,
    },
    /// A rank that was lost or has left has joined again.
    Back {
        rank: u32,
    },
    /// The sender is there.
    Alive,
    /// The sender leaves as planned.
    Leave,
    /// The host of a rank, and the thread that shows that it is there.
    Here {
        host: String,
        thread: String,
    },
    /// The rank that gets it looks whether this thread of another rank has ended; none without a thread.
    Watch {
        rank: u32,
        thread: String,
    },
    /// The thread of a rank has ended, or has begun to.
    Ended {
        rank: u32,
        thread: String,
    },
    /// A communicator of the sender failed: the store is to find out which ranks answer.
    FindLost,
    /// The rank that gets it is to answer.
    AreYouThere,
    /// The sender does not wait for a value any more.
    Cancel {
        id: u64,
        key: String,
    },
    /// Values of collectives whose keys begin so are not read any more.
    Forget {
        prefix: String,
    },
    /// A rank was told of one that has gone in order or is late, and may end because of that; or that one has come.
    Told {
        rank: u32,
        absence: ToldAbsence,
    },
}

/// Why a rank may not join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Token,
    Size {
        size: u32,
    },
    Taken,
    Range,
    /// The rank shows that it is there too seldom: the store takes it for lost after so many milliseconds.
    Heartbeat {
        silence: u32,
    },
}

impl Refusal {
    /// Its kind, and a number that belongs to it.
    fn numbers(self) -> (u8, u32) {
        match self {
            Self::Token => (0, 0),
            Self::Size { size } => (1, size),
            Self::Taken => (2, 0),
            Self::Range => (3, 0),
            Self::Heartbeat { silence } => (4, silence),
        }
    }
}

/// Whole milliseconds of a time.
pub(super) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

impl Message {
    /// Writes the message whole.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        self.put(&mut bytes);
        let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        to.write_all(&bytes)
    }

    /// Reads a message of the handshake.
    pub(super) fn receive_greeting(from: &mut impl Read) -> io::Result<Self> {
        Self::receive_up_to(from, MAX_GREETING)
    }

    /// Reads a message.
    pub(super) fn receive(from: &mut impl Read) -> io::Result<Self> {
        Self::receive_up_to(from, MAX_MESSAGE)
    }

    fn receive_up_to(from: &mut impl Read, most: usize) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > most {
            return Err(invalid("a message that is too long"));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| invalid("something that is no message"))
    }

    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Hello { nonce } => {
                to.push(0);
                to.extend(MAGIC);
                to.extend(nonce);
            }
            Self::Challenge { nonce, proof } => {
                to.push(1);
                to.extend(nonce);
                to.extend(proof);
            }
            Self::Join { rank, size, heartbeat, proof } => {
                to.push(2);
                to.extend(rank.to_le_bytes());
                to.extend(size.to_le_bytes());
                to.extend(heartbeat.to_le_bytes());
                to.extend(proof);
            }
            Self::Accepted => to.push(3),
            Self::Refused(refusal) => {
                let (kind, number) = refusal.numbers();
                to.extend([4, kind]);
                to.extend(number.to_le_bytes());
            }
            Self::Put { id, key, value } => {
                put_with_id(to, 5, *id, key.as_bytes());
                to.push(0);
                to.extend(value);
            }
            Self::Get { id, key } => put_with_id(to, 6, *id, key.as_bytes()),
            Self::Remove { id, key } => put_with_id(to, 7, *id, key.as_bytes()),
            Self::WhoIsMissing { id } => put_with_id(to, 8, *id, &[]),
            Self::Done { id } => put_with_id(to, 9, *id, &[]),
            Self::Value { id, value } => put_with_id(to, 10, *id, value),
            Self::Missing { id, ranks } => {
                put_with_id(to, 11, *id, &[]);
                to.extend(ranks.iter().flat_map(|rank| rank.to_le_bytes()));
            }
            Self::Full { id, limit } => put_with_id(to, 12, *id, &limit.to_le_bytes()),
            Self::Complete => to.push(13),
            Self::Lost { rank, cause } => put_with_rank(to, 14, *rank, cause.as_bytes()),
            Self::Back { rank } => put_with_rank(to, 15, *rank, &[]),
            Self::Alive => to.push(16),
            Self::Leave => to.push(17),
            Self::GetOf { id, rank, key } => {
                put_with_id(to, 18, *id, &rank.to_le_bytes());
                to.extend(key.as_bytes());
            }
            Self::Gone { id } => put_with_id(to, 19, *id, &[]),
            Self::Left { rank } => put_with_rank(to, 20, *rank, &[]),
            Self::Here { host, thread } => {
                to.push(21);
                to.extend(host.as_bytes());
                to.push(0);
                to.extend(thread.as_bytes());
            }
            Self::Watch { rank, thread } => put_with_rank(to, 22, *rank, thread.as_bytes()),
            Self::Ended { rank, thread } => put_with_rank(to, 23, *rank, thread.as_bytes()),
            Self::FindLost => to.push(24),
            Self::AreYouThere => to.push(25),
            Self::Cancel { id, key } => put_with_id(to, 26, *id, key.as_bytes()),
            Self::Forget { prefix } => {
                to.push(27);
                to.extend(prefix.as_bytes());
            }
            Self::Told { rank, absence } => put_with_rank(to, 28, *rank, &absence.to_bytes()),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        Some(match kind {
            0 => Self::Hello { nonce: rest.strip_prefix(&MAGIC)?.try_into().ok()? },
            1 => {
                let (nonce, proof) = rest.split_at_checked(PROOF_BYTES)?;
                Self::Challenge { nonce: nonce.try_into().ok()?, proof: proof.try_into().ok()? }
            }
            2 => {
                let (rank, rest) = number(rest)?;
                let (size, rest) = number(rest)?;
                let (heartbeat, proof) = number(rest)?;
                Self::Join { rank, size, heartbeat, proof: proof.try_into().ok()? }
            }
            3 => Self::Accepted,
            4 => {
                let (kind, rest) = rest.split_first()?;
                let size = number(rest)?.0;
                Self::Refused(match kind {
                    0 => Refusal::Token,
                    1 => Refusal::Size { size },
                    2 => Refusal::Taken,
                    3 => Refusal::Range,
                    4 => Refusal::Heartbeat { silence: size },
                    _ => return None,
                })
            }
            14 => {
                let (rank, cause) = number(rest)?;
                Self::Lost { rank, cause: text(cause)? }
            }
            15 => Self::Back { rank: number(rest)?.0 },
            13 => Self::Complete,
            16 => Self::Alive,
            17 => Self::Leave,
            20 => Self::Left { rank: number(rest)?.0 },
            21 => {
                let end = rest.iter().position(|byte| *byte == 0)?;
                Self::Here { host: text(&rest[..end])?, thread: text(&rest[end + 1..])? }
            }
            22 => {
                let (rank, thread) = number(rest)?;
                Self::Watch { rank, thread: text(thread)? }
            }
            23 => {
                let (rank, thread) = number(rest)?;
                Self::Ended { rank, thread: text(thread)? }
            }
            24 => Self::FindLost,
            25 => Self::AreYouThere,
            27 => Self::Forget { prefix: text(rest)? },
            28 => {
                let (rank, absence) = number(rest)?;
                Self::Told { rank, absence: ToldAbsence::parse(absence)? }
            }
            5..=12 | 18..=19 | 26 => return Self::parse_with_id(*kind, rest),
            _ => return None,
        })
    }

    fn parse_with_id(kind: u8, rest: &[u8]) -> Option<Self> {
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let id = u64::from_le_bytes(*id);
        Some(match kind {
            5 => {
                let end = rest.iter().position(|byte| *byte == 0)?;
                Self::Put { id, key: text(&rest[..end])?, value: rest[end + 1..].to_vec() }
            }
            6 => Self::Get { id, key: text(rest)? },
            7 => Self::Remove { id, key: text(rest)? },
            8 => Self::WhoIsMissing { id },
            9 => Self::Done { id },
            10 => Self::Value { id, value: rest.to_vec() },
            11 => {
                let (ranks, rest) = rest.as_chunks::<4>();
                if !rest.is_empty() {
                    return None;
                }
                Self::Missing { id, ranks: ranks.iter().map(|rank| u32::from_le_bytes(*rank)).collect() }
            }
            12 => Self::Full { id, limit: u64::from_le_bytes(rest.try_into().ok()?) },
            18 => {
                let (rank, key) = number(rest)?;
                Self::GetOf { id, rank, key: text(key)? }
            }
            19 => Self::Gone { id },
            26 => Self::Cancel { id, key: text(rest)? },
            _ => return None,
        })
    }
}

fn put_with_id(to: &mut Vec<u8>, kind: u8, id: u64, rest: &[u8]) {
    to.push(kind);
    to.extend(id.to_le_bytes());
    to.extend(rest);
}

fn put_with_rank(to: &mut Vec<u8>, kind: u8, rank: u32, rest: &[u8]) {
    to.push(kind);
    to.extend(rank.to_le_bytes());
    to.extend(rest);
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::super::told_absences::WhyAbsent;
    use super::*;

    fn all() -> Vec<Message> {
        let (nonce, proof) = ([7; PROOF_BYTES], [9; PROOF_BYTES]);
        vec![
            Message::Hello { nonce },
            Message::Challenge { nonce, proof },
            Message::Join { rank: 3, size: 8, heartbeat: 1000, proof },
            Message::Accepted,
            Message::Refused(Refusal::Token),
            Message::Refused(Refusal::Size { size: 4 }),
            Message::Refused(Refusal::Taken),
            Message::Refused(Refusal::Range),
            Message::Refused(Refusal::Heartbeat { silence: 1000 }),
            Message::Put { id: 1, key: "a".into(), value: vec![0, 1, 0] },
            Message::Get { id: 2, key: "b".into() },
            Message::GetOf { id: 9, rank: 1, key: "d".into() },
            Message::Remove { id: 3, key: "c".into() },
            Message::WhoIsMissing { id: 4 },
            Message::Done { id: 5 },
            Message::Value { id: 6, value: vec![] },
            Message::Missing { id: 7, ranks: vec![1, 2] },
            Message::Full { id: 8, limit: 1 << 34 },
            Message::Gone { id: 10 },
            Message::Complete,
            Message::Left { rank: 2 },
            Message::Lost { rank: 1, cause: "closed".into() },
            Message::Back { rank: 1 },
            Message::Alive,
            Message::Leave,
            Message::Here { host: "a b".into(), thread: "1 2 3".into() },
            Message::Watch { rank: 4, thread: "1 2 3".into() },
            Message::Ended { rank: 4, thread: "1 2 3".into() },
            Message::FindLost,
            Message::AreYouThere,
            Message::Cancel { id: 11, key: "e".into() },
            Message::Forget { prefix: "f/".into() },
            Message::Told {
                rank: 2,
                absence: ToldAbsence { ranks: vec![1], why: WhyAbsent::EndedPart("ab".into()) },
            },
        ]
    }

    #[test]
    fn messages_arrive_as_they_were() {
        for message in all() {
            let mut bytes = Vec::new();
            message.send(&mut bytes).unwrap();
            assert_eq!(Message::receive(&mut bytes.as_slice()).unwrap(), message);
        }
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_no_panic_and_no_large_allocation() {
        for message in all() {
            let mut bytes = Vec::new();
            message.send(&mut bytes).unwrap();
            for end in 0..bytes.len() {
                assert!(Message::receive(&mut &bytes[..end]).is_err());
            }
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    let _ = Message::receive(&mut changed.as_slice());
                }
            }
        }
        let huge = [0xff_u8; 64];
        assert!(Message::receive(&mut huge.as_slice()).is_err());
    }

    #[test]
    fn a_greeting_is_short() {
        let mut bytes = Vec::new();
        Message::Put { id: 1, key: "a".into(), value: vec![0; 4096] }.send(&mut bytes).unwrap();
        assert!(Message::receive_greeting(&mut bytes.as_slice()).is_err());
    }
}
