//! Places in the table of streams: a key each, given out again when their stream is gone.
//!
//! A stamp names its stream by the key, so a key changes hands only where that loses no edge: when everything the last stream did is known
//! to be done, or when the next one waits for it.

use std::sync::{Arc, PoisonError};

use kiln_driver::{Command, Error, Refusal, StreamId};
use smallvec::SmallVec;

use crate::lane::{Lane, Point};
use crate::stamp::{MAX_STREAMS, Stamp, StreamKey};
use crate::stream_counters::StreamCount;
use crate::sync::Ordering;
use crate::tracker::Tracker;

/// Streams that were given back and are asked whether their work is done, before one is waited for.
const LOOK_AT: usize = 4;

impl Tracker {
    /// Takes a stream in. The key of a stream that went away is used again: once all its work is known to be done, or, if there is no
    /// other left, at once, and then the new stream comes after that work.
    ///
    /// # Errors
    /// Refused past [`MAX_STREAMS`] at once; what the driver says.
    pub fn add(&self, stream: StreamId) -> Result<Arc<Lane>, Error> {
        self.take_in(stream, |lane| lane)
    }

    /// As [`add`](Self::add), for a stream that is never [retired](Self::retire).
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn add_lasting(&self, stream: StreamId) -> Result<Arc<Lane>, Error> {
        self.take_in(stream, Lane::lasting)
    }

    fn take_in(&self, stream: StreamId, make: fn(Lane) -> Lane) -> Result<Arc<Lane>, Error> {
        match self.take_place(stream, make) {
            Some(lane) => Ok(lane),
            None => self.take_over(stream, make),
        }
    }

    /// A place in the table that nobody has.
    fn take_place(&self, stream: StreamId, make: fn(Lane) -> Lane) -> Option<Arc<Lane>> {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let reusable = lanes.iter().position(|lane| {
            is_abandoned(lane) && self.host.covers(Stamp { stream: lane.key, number: lane.submitted() })
        });
        if let Some(index) = reusable {
            let lane = Arc::new(make(lanes[index].heir(stream, None)));
            lanes[index] = lane.clone();
            return Some(lane);
        }
        let lane = Arc::new(make(Lane::new(StreamKey::new(lanes.len())?, stream, 0)));
        lanes.push(lane.clone());
        Some(lane)
    }

    /// The place of a stream that was given back with work that nobody has waited for. A few are asked whether it is done by now; else
    /// the new stream is made to wait for one of them, which holds up nobody here. They take turns, so that it is an old one.
    #[cold]
    fn take_over(&self, stream: StreamId, make: fn(Lane) -> Lane) -> Result<Arc<Lane>, Error> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) as usize;
        for stamp in self.ends(turn) {
            if self.is_done(stamp)?
                && let Some(lane) = self.take_place(stream, make)
            {
                return Ok(lane);
            }
        }
        let (index, old) = self.claim(turn).ok_or_else(|| {
            let limit = Refusal::Limit { what: "streams of one runtime at once", limit: MAX_STREAMS as u64 };
            Error::refused("create_stream", limit)
        })?;
        let end = self.wait_for_all_of(&old, stream).inspect_err(|_| old.unclaim())?;
        let heir = Arc::new(make(old.heir(stream, end.as_deref())));
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        lanes[index] = heir.clone();
        Ok(heir)
    }

    /// Makes a stream wait for everything another one did before it was given back; none if that is known to be done.
    fn wait_for_all_of(&self, old: &Lane, stream: StreamId) -> Result<Option<Point>, Error> {
        let last = Stamp { stream: old.key, number: old.submitted() };
        if self.host.covers(last) {
            return Ok(None);
        }
        let end = self.point(old, last.number)?;
        self.driver.submit(stream, &Command::Wait(end.event.event()))?;
        old.counters().add(StreamCount::StreamWaits, 1);
        Ok(Some(end))
    }

    /// Where the work of a few streams ends that were given back.
    fn ends(&self, turn: usize) -> SmallVec<[Stamp; LOOK_AT]> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let retired = in_turn(&lanes, turn).filter(|(_, lane)| lane.is_retired());
        retired.map(|(_, lane)| Stamp { stream: lane.key, number: lane.submitted() }).take(LOOK_AT).collect()
    }

    /// A stream that was given back, for whoever asks first. Blocks may still call it their home; what they were used for on it comes
    /// before whatever its heir does, so they lose nothing.
    fn claim(&self, turn: usize) -> Option<(usize, Arc<Lane>)> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        in_turn(&lanes, turn).find(|(_, lane)| lane.claim()).map(|(index, lane)| (index, lane.clone()))
    }
}

/// Whether nobody but the table holds a stream, so that nothing new comes of it.
fn is_abandoned(lane: &Arc<Lane>) -> bool {
    Arc::strong_count(lane) == 1
}

/// All places of the table, beginning somewhere else each time.
fn in_turn(lanes: &[Arc<Lane>], turn: usize) -> impl Iterator<Item = (usize, &Arc<Lane>)> {
    let places = lanes.iter().enumerate();
    places.cycle().skip(turn % lanes.len().max(1)).take(lanes.len())
}
