//! Where the streams of a context are in the order with its default stream.
//!
//! Streams are found by their slots, which are small numbers, because every submission asks.

use kiln_driver::StreamId;

/// Where a stream is in the order.
pub(crate) struct StreamPlace {
    pub(crate) is_blocking: bool,
    /// Whether it got work that the legacy stream does not wait for yet.
    pub(crate) has_work: bool,
    /// The turn of the legacy stream that it waits for.
    pub(crate) seen_turns: u64,
}

/// The places of all streams, in the order of their slots.
#[derive(Default)]
pub(crate) struct StreamPlaces {
    slots: Vec<Option<(StreamId, StreamPlace)>>,
}

impl StreamPlaces {
    pub(crate) fn insert(&mut self, stream: StreamId, place: StreamPlace) {
        let slot = stream.slot() as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        if let Some(room) = self.slots.get_mut(slot) {
            *room = Some((stream, place));
        }
    }

    /// The place of a stream; nothing for one that is gone.
    pub(crate) fn get_mut(&mut self, stream: StreamId) -> Option<&mut StreamPlace> {
        match self.slots.get_mut(stream.slot() as usize) {
            Some(Some((known, place))) if *known == stream => Some(place),
            _ => None,
        }
    }

    /// Whether a stream is there and takes part in the order of the default stream.
    pub(crate) fn is_blocking(&self, stream: StreamId) -> bool {
        let room = self.slots.get(stream.slot() as usize).and_then(Option::as_ref);
        room.is_some_and(|(known, place)| *known == stream && place.is_blocking)
    }

    pub(crate) fn remove(&mut self, stream: StreamId) -> Option<StreamPlace> {
        let room = self.slots.get_mut(stream.slot() as usize)?;
        room.take_if(|(known, _)| *known == stream).map(|(_, place)| place)
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.slots.iter().flatten().map(|(stream, _)| *stream)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (StreamId, StreamPlace)> {
        self.slots.iter_mut().flatten()
    }
}
