//! The times of work, as a worker tells them.

use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer};

/// The most that one answer tells; there may be more.
pub(crate) const MAX_TOLD: usize = 4096;

/// Times of work, with what both clocks of the worker said when they were told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ToldTimes {
    /// The time of day, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
    /// The clock of the times.
    pub(crate) now_ns: u64,
    /// Times that found no room, since the worker began to watch.
    pub(crate) dropped: u64,
    pub(crate) times: Vec<ToldTime>,
}

/// When work with a number ran, or a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ToldTime {
    pub(crate) number: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl Put for ToldTimes {
    fn put(&self, to: &mut Writer) {
        [self.unix_ns, self.now_ns, self.dropped].into_iter().for_each(|number| to.u64(number));
        to.u32(u32::try_from(self.times.len()).unwrap_or(u32::MAX));
        for time in &self.times {
            [time.number, time.begin_ns, time.end_ns].into_iter().for_each(|number| to.u64(number));
        }
    }
}

impl Take for ToldTimes {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (unix_ns, now_ns, dropped) = (from.u64()?, from.u64()?, from.u64()?);
        let count = from.u32()? as usize;
        if count > MAX_TOLD {
            return Err(Malformed { what: "more times than one answer has" });
        }
        let time = |_| Ok(ToldTime { number: from.u64()?, begin_ns: from.u64()?, end_ns: from.u64()? });
        let times = (0..count).map(time).collect::<Result<_, Malformed>>()?;
        Ok(Self { unix_ns, now_ns, dropped, times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_over_as_they_are_and_too_many_are_refused() {
        let time = ToldTime { number: 7, begin_ns: 1, end_ns: u64::MAX };
        let told = ToldTimes { unix_ns: 1, now_ns: 2, dropped: 3, times: vec![time; MAX_TOLD] };
        let bytes = Writer::of(&told);
        assert!(bytes.len() < crate::protocol::segment::REPLY_LIMIT_BYTES / 2);
        assert_eq!(ToldTimes::take(&mut Reader::new(&bytes)), Ok(told.clone()));
        for cut in 0..bytes.len() {
            assert!(ToldTimes::take(&mut Reader::new(&bytes[..cut])).is_err());
        }
        let more = ToldTimes { times: vec![time; MAX_TOLD + 1], ..told };
        assert!(ToldTimes::take(&mut Reader::new(&Writer::of(&more))).is_err());
    }
}
