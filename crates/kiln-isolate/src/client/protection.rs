//! Protection of pages at every address they are mapped at.
//!
//! A heap maps the same pages at more than one address, and a stray write may hit any of them. So pages are protected at all of their
//! addresses or at none.

use std::collections::{BTreeMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use kiln_driver::{Error, Protection, ReservationId, Result};

use super::connection::Link;
use super::objects::{Mapping, Range};
use super::proxy::DeviceProxy;
use crate::protocol::wire::Ask;

const CALL: &str = "protect_pages";

impl DeviceProxy {
    /// See [`IsolatedDevice::protect_pages`](crate::IsolatedDevice::protect_pages).
    pub(crate) fn protect_pages(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        let _change = self.objects.change();
        let link = self.shared.link();
        let range = self.objects.reservations.pin(reservation).map_err(|error| error.seen_by(CALL))?;
        let changes = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let places = range.places_of(offset, bytes).ok_or_else(|| cut(reservation, offset, bytes))?;
        let asked = ask_all(&link, &range, &places, protection);
        let recorded = match asked {
            Ok(()) => Ok(()),
            // The mappings were lost with the worker, and the next one uses what is recorded here.
            Err(error) if error.is_sticky() && protection == Protection::ReadWrite => Ok(()),
            Err(error) => Err(error),
        };
        if recorded.is_ok() {
            range.record(&places, protection, &changes);
            self.shared.standby.objects_changed();
        }
        recorded
    }
}

/// Changes every place; if one is refused, restores those that were changed.
fn ask_all(link: &Link, range: &Range, places: &[Place], protection: Protection) -> Result<()> {
    let ask = |place: &Place, protection| {
        let Place { offset, bytes, .. } = *place;
        link.ask(CALL, &Ask::Protect { reservation: range.wire, offset, bytes, protection }, None, |_| Ok(()))
    };
    for (done, place) in places.iter().enumerate() {
        if let Err(error) = ask(place, protection) {
            for place in places.iter().take(done) {
                // A worker that refuses this is lost, and the next one uses what is recorded.
                let _ = ask(place, place.was);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// A mapping, and its protection before the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    offset: u64,
    bytes: u64,
    was: Protection,
}

impl Range {
    /// Every mapping of the pages in a range; `None` if the range does not consist of whole mappings.
    fn places_of(&self, offset: u64, bytes: u64) -> Option<Vec<Place>> {
        let mappings = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        places(&mappings, offset, bytes)
    }

    /// Records the protection of mappings. The caller holds the lock under which it asked the worker.
    fn record(&self, places: &[Place], protection: Protection, _changes: &MutexGuard<'_, ()>) {
        let mut mappings = self.mappings.write().unwrap_or_else(PoisonError::into_inner);
        for place in places {
            if let Some(mapping) = mappings.get_mut(&place.offset) {
                mapping.protection = protection;
            }
        }
    }
}

fn places(mappings: &BTreeMap<u64, Mapping>, offset: u64, bytes: u64) -> Option<Vec<Place>> {
    let end = offset.checked_add(bytes)?;
    let (mut at, mut pages) = (offset, HashSet::new());
    for (start, mapping) in mappings.range(offset..end) {
        if *start != at {
            return None;
        }
        at = start.checked_add(mapping.pages.bytes)?;
        pages.insert(mapping.pages.remote.id);
    }
    if at != end || bytes == 0 {
        return None;
    }
    let all = mappings.iter().filter(|(_, mapping)| pages.contains(&mapping.pages.remote.id));
    Some(
        all.map(|(offset, mapping)| Place {
            offset: *offset,
            bytes: mapping.pages.bytes,
            was: mapping.protection,
        })
        .collect(),
    )
}

fn cut(reservation: ReservationId, offset: u64, bytes: u64) -> Error {
    let what = format!("{bytes} bytes at {offset:#x} of {reservation} are not whole mappings");
    Error::invalid(CALL, what, "name whole mappings")
}
