//! Assigns each stream a key, and reuses the key after the stream is destroyed.
//!
//! A stamp names its stream by the key, so a key changes hands only where that loses no edge: when everything the last stream did is known
//! to be done, or when the next one waits for it.

use std::sync::{Arc, PoisonError};

use kiln_driver::{Command, Error, Refusal, StreamId};
use smallvec::SmallVec;

use crate::dependency_tracker::DependencyTracker;
use crate::stamp::Stamp;
use crate::stream_counters::StreamCount;
use crate::stream_key::{MAX_STREAMS, StreamKey};
use crate::stream_state::{Point, StreamState};
use crate::sync_shim::Ordering;

/// Streams that were given back and are asked whether their work is done, before one is waited for.
const LOOK_AT: usize = 4;

impl DependencyTracker {
    /// Takes a stream in. The key of a stream that went away is used again: once all its work is known to be done, or, if there is no
    /// other left, at once, and then the new stream comes after that work.
    ///
    /// # Errors
    /// Refused past [`MAX_STREAMS`] at once; what the driver says.
    pub fn add(&self, stream: StreamId) -> Result<Arc<StreamState>, Error> {
        self.take_in(stream, |state| state)
    }

    /// As [`add`](Self::add), for a stream that is never [retired](Self::retire).
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn add_lasting(&self, stream: StreamId) -> Result<Arc<StreamState>, Error> {
        self.take_in(stream, StreamState::lasting)
    }

    fn take_in(
        &self,
        stream: StreamId,
        make: fn(StreamState) -> StreamState,
    ) -> Result<Arc<StreamState>, Error> {
        match self.take_place(stream, make) {
            Some(state) => Ok(state),
            None => self.take_over(stream, make),
        }
    }

    /// A free place in the table.
    fn take_place(&self, stream: StreamId, make: fn(StreamState) -> StreamState) -> Option<Arc<StreamState>> {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let reusable = streams.iter().position(|state| {
            is_abandoned(state) && self.host.covers(Stamp { stream: state.key, number: state.submitted() })
        });
        if let Some(index) = reusable {
            let state = Arc::new(make(streams[index].successor(stream, None)));
            streams[index] = state.clone();
            return Some(state);
        }
        let state = Arc::new(make(StreamState::new(StreamKey::new(streams.len()).ok()?, stream, 0)));
        streams.push(state.clone());
        Some(state)
    }

    /// The place of a stream that was given back with work that the host has not waited for. A few are asked whether it is done by now; else
    /// the new stream is made to wait for one of them, which does not block the host. They take turns, so that it is an old one.
    #[cold]
    fn take_over(
        &self,
        stream: StreamId,
        make: fn(StreamState) -> StreamState,
    ) -> Result<Arc<StreamState>, Error> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) as usize;
        for stamp in self.ends(turn) {
            if self.is_done(stamp)?
                && let Some(state) = self.take_place(stream, make)
            {
                return Ok(state);
            }
        }
        let (index, old) = self.claim(turn).ok_or_else(|| {
            let limit = Refusal::Limit { what: "streams of one runtime at once", limit: MAX_STREAMS as u64 };
            Error::refused("create_stream", limit)
        })?;
        let end = self.wait_for_all_of(&old, stream).inspect_err(|_| old.unclaim())?;
        let successor = Arc::new(make(old.successor(stream, end.as_deref())));
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        streams[index] = successor.clone();
        Ok(successor)
    }

    /// Makes a stream wait for everything another one did before it was given back; none if that is known to be done.
    fn wait_for_all_of(&self, old: &StreamState, stream: StreamId) -> Result<Option<Point>, Error> {
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
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        let retired = in_turn(&streams, turn).filter(|(_, state)| state.is_retired());
        retired
            .map(|(_, state)| Stamp { stream: state.key, number: state.submitted() })
            .take(LOOK_AT)
            .collect()
    }

    /// A stream that was given back, for the first caller. Blocks may still call it their home; what they were used for on it comes
    /// before whatever its successor does, so they lose nothing.
    fn claim(&self, turn: usize) -> Option<(usize, Arc<StreamState>)> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        in_turn(&streams, turn).find(|(_, state)| state.claim()).map(|(index, state)| (index, state.clone()))
    }
}

/// Whether only the table holds a stream, so that nothing new comes of it.
fn is_abandoned(state: &Arc<StreamState>) -> bool {
    Arc::strong_count(state) == 1
}

/// All places of the table, beginning somewhere else each time.
fn in_turn(streams: &[Arc<StreamState>], turn: usize) -> impl Iterator<Item = (usize, &Arc<StreamState>)> {
    let places = streams.iter().enumerate();
    places.cycle().skip(turn % streams.len().max(1)).take(streams.len())
}
