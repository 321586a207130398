//! How much a rank has called and what it waits in, as it says that to the others.

use std::collections::BTreeMap;

use crate::called_collective::CalledCollective;
use crate::noted_call::{CallCounts, MeetingNumber, NotedCall};

/// How much a rank has called, and what it waits in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct RankCalls {
    pub(super) counts: CallCounts,
    /// Where each collective of its oldest unfinished call meets those of others, what it is, and its line.
    pub(super) oldest: Vec<[String; 3]>,
}

impl RankCalls {
    pub(super) fn new(rank: u32, counts: &CallCounts, oldest: Option<&NotedCall>) -> Self {
        let part =
            |(number, called): (MeetingNumber, CalledCollective)| [number.text(), called.what, called.place];
        let oldest = oldest.map_or_else(Vec::new, |call| call.parts(rank));
        Self { counts: counts.clone(), oldest: oldest.into_iter().map(part).collect() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let pairs = |known: &BTreeMap<u32, u64>| {
            let one = |(peer, count): (&u32, &u64)| format!("{peer}:{count}");
            known.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        let CallCounts { collectives, sent, received } = &self.counts;
        let head = [collectives.to_string(), pairs(sent), pairs(received)].into_iter();
        let oldest = self.oldest.iter().map(|part| part.join("\t"));
        head.chain(oldest).collect::<Vec<_>>().join("\n").into_bytes()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.split('\n');
        let collectives = lines.next()?.parse().ok()?;
        let mut pairs = || {
            let one = |pair: &str| {
                let (peer, count) = pair.split_once(':')?;
                Some((peer.parse().ok()?, count.parse().ok()?))
            };
            lines.next()?.split_whitespace().map(one).collect::<Option<BTreeMap<u32, u64>>>()
        };
        let counts = CallCounts { collectives, sent: pairs()?, received: pairs()? };
        let part = |line: &str| {
            let mut words = line.splitn(3, '\t').map(str::to_owned);
            Some([words.next()?, words.next()?, words.next()?])
        };
        Some(Self { counts, oldest: lines.map(part).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_says_is_read_as_it_was() {
        let counts = CallCounts { collectives: 7, sent: [(1, 2), (3, 4)].into(), received: BTreeMap::new() };
        let oldest = vec![["collective 6".to_owned(), "barrier".to_owned(), "src/a b.rs:1:2".to_owned()]];
        for calls in [RankCalls { counts, oldest }, RankCalls::default()] {
            assert_eq!(RankCalls::parse(&calls.to_bytes()).unwrap(), calls);
        }
        for wrong in ["", "x\n\n", "1", "1\n2:x\n", "1\n\n\ncollective"] {
            assert_eq!(RankCalls::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
