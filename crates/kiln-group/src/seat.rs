//! What a replacement is told of the communicator that it becomes a rank of.

use kiln_operation::CommunicatorId;

use crate::rendezvous::LostRank;

/// Names what a replacement has asked for.
pub(crate) type Application = u128;

/// The place of a replacement in the communicator that takes the place of one which lost a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) id: CommunicatorId,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// Collectives that are done on all ranks that are left.
    pub(crate) done: u64,
    /// Collectives that are to be done again.
    pub(crate) repeatable: Vec<u64>,
    pub(crate) lost: Vec<LostRank>,
    /// The rank in the job of each rank.
    pub(crate) job_ranks: Vec<u32>,
    /// Communicators of all ranks that those of the job have asked for so far.
    pub(crate) meetings: u64,
}

impl Seat {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.id.bytes().to_vec();
        let number = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes());
        let counts = [self.repeatable.len(), self.lost.len(), self.job_ranks.len()].map(|count| count as u64);
        let (rank, size) = (u64::from(self.rank), u64::from(self.size));
        for value in [rank, size, self.done, self.meetings].into_iter().chain(counts) {
            number(&mut bytes, value);
        }
        self.repeatable.iter().for_each(|value| number(&mut bytes, *value));
        for LostRank { rank, cause } in &self.lost {
            number(&mut bytes, u64::from(*rank));
            number(&mut bytes, cause.len() as u64);
            bytes.extend(cause.as_bytes());
        }
        self.job_ranks.iter().for_each(|rank| number(&mut bytes, u64::from(*rank)));
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (id, mut rest) = bytes.split_at_checked(CommunicatorId::BYTES)?;
        let id = CommunicatorId::try_from(id).ok()?;
        let from = &mut rest;
        let (rank, size, done, meetings) = (small(from)?, small(from)?, number(from)?, number(from)?);
        let counts = [number(from)?, number(from)?, number(from)?];
        let repeatable = (0..counts[0]).map(|_| number(from)).collect::<Option<_>>()?;
        let lost = (0..counts[1]).map(|_| {
            let (rank, bytes) = (small(from)?, usize::try_from(number(from)?).ok()?);
            let (cause, behind) = from.split_at_checked(bytes)?;
            *from = behind;
            Some(LostRank { rank, cause: String::from_utf8(cause.to_vec()).ok()? })
        });
        let lost = lost.collect::<Option<_>>()?;
        let job_ranks = (0..counts[2]).map(|_| small(from)).collect::<Option<_>>()?;
        from.is_empty().then_some(Self { id, rank, size, done, repeatable, lost, job_ranks, meetings })
    }
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk::<8>()?;
    *from = rest;
    Some(u64::from_le_bytes(*number))
}

fn small(from: &mut &[u8]) -> Option<u32> {
    u32::try_from(number(from)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_arrives_as_it_was_and_damaged_bytes_are_none() {
        let seat = Seat {
            id: CommunicatorId::new([3; CommunicatorId::BYTES]),
            rank: 2,
            size: 4,
            done: 17,
            repeatable: vec![18, 20],
            lost: vec![LostRank { rank: 2, cause: "its process ended".into() }],
            job_ranks: vec![0, 5, 6, 7],
            meetings: 2,
        };
        let bytes = seat.to_bytes();
        assert_eq!(Seat::parse(&bytes), Some(seat));
        for end in 0..bytes.len() {
            assert_eq!(Seat::parse(&bytes[..end]), None);
        }
        let mut more = bytes.clone();
        more.push(0);
        assert_eq!(Seat::parse(&more), None);
        let mut huge = bytes;
        huge[CommunicatorId::BYTES + 32..][..8].fill(0xff);
        assert_eq!(Seat::parse(&huge), None);
    }
}
