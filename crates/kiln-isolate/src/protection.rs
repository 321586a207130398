//! What kernels may do to physical memory, under every address it has.
//!
//! A heap maps the same pages at more than one place, and a kernel that goes astray may come upon any of them. So memory is
//! protected everywhere or not at all.

use std::collections::{BTreeMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use kiln_driver::{Error, Protection, ReservationId, Result};

use crate::device::IsolatedDevice;
use crate::link::Link;
use crate::objects::{Mapping, Range};
use crate::wire::Ask;

const CALL: &str = "protect_pages";

impl IsolatedDevice {
    /// Changes what kernels may do to the pages behind whole mappings, and at every other place of the same reservation where these
    /// pages are mapped. All of it is done or nothing is.
    ///
    /// The next worker maps them the same way. A device that is lost takes [`Protection::ReadWrite`] all the same, which then
    /// holds from its next worker on, so that memory can be given up at any time; it refuses [`Protection::Read`].
    ///
    /// No queued work may write what is to be read only.
    ///
    /// # Errors
    /// Refused for a stretch that is not of whole mappings; unsupported by devices that do not protect their memory; the cause, if
    /// the device is lost.
    pub fn protect_pages(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        let _change = self.objects.change();
        let link = self.shared.link();
        let range = self.objects.reservations.pin(reservation).map_err(|error| error.seen_by(CALL))?;
        let turn = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let places = range.places_of(offset, bytes).ok_or_else(|| cut(reservation, offset, bytes))?;
        let asked = ask_all(&link, &range, &places, protection);
        let noted = match asked {
            Ok(()) => Ok(()),
            // The mappings of a worker that is gone are gone with it, and the next one looks at what is noted here.
            Err(error) if error.is_sticky() && protection == Protection::ReadWrite => Ok(()),
            Err(error) => Err(error),
        };
        if noted.is_ok() {
            range.note(&places, protection, &turn);
            self.shared.preparation.changed();
        }
        noted
    }
}

/// Asks for every place, and takes back what was done if one is refused.
fn ask_all(link: &Link, range: &Range, places: &[Place], protection: Protection) -> Result<()> {
    let ask = |place: &Place, protection| {
        let Place { offset, bytes, .. } = *place;
        link.ask(CALL, &Ask::Protect { reservation: range.wire, offset, bytes, protection }, None, |_| Ok(()))
    };
    for (done, place) in places.iter().enumerate() {
        if let Err(error) = ask(place, protection) {
            for place in places.iter().take(done) {
                // A worker that refuses what it had a moment ago is lost, and the next one is told what is noted.
                let _ = ask(place, place.was);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// A mapping, and what kernels may do there now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    offset: u64,
    bytes: u64,
    was: Protection,
}

impl Range {
    /// Every mapping of the pages of a stretch; none if the stretch is not of whole mappings.
    fn places_of(&self, offset: u64, bytes: u64) -> Option<Vec<Place>> {
        let mappings = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        places(&mappings, offset, bytes)
    }

    /// Notes what kernels may do at places. The turn is held by whoever asked for that.
    fn note(&self, places: &[Place], protection: Protection, _turn: &MutexGuard<'_, ()>) {
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
    let what = format!("{bytes} bytes at {offset:#x} of {reservation} are no whole mappings");
    Error::invalid(CALL, what, "name whole mappings")
}
