//! Pages. The client holds a descriptor of each and knows where it is mapped, so that pages outlive the worker.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use kiln_driver::{
    Error, PageRequest, PagesId, Protection, Reservation, ReservationId, ReserveRequest, Result,
};

use super::address_proposal::TRIED;
use super::client_state::Remote;
use super::memory::{busy, take_memory};
use super::objects::{Mapping, Pages, Range};
use super::proxy::DeviceProxy;
use crate::protocol::wire::{Ask, WireObject};

impl DeviceProxy {
    pub(crate) fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        const CALL: &str = "reserve";
        let _change = self.objects.change();
        let link = self.shared.link();
        let wire = self.shared.new_id();
        let ask =
            |at| link.ask(CALL, &Ask::Reserve { id: wire, bytes: request.bytes, at }, None, take_memory);
        let mut answer = None;
        if let (None, Some(addresses)) = (request.at, &self.addresses) {
            let hints = (0..TRIED).map_while(|refused| addresses.propose(request.bytes, refused));
            answer =
                hints.map(|at| ask(Some(at))).find(|answer| !answer.as_ref().is_err_and(Error::is_refused));
        }
        let ((address, bytes), _) = answer.unwrap_or_else(|| ask(request.at))?;
        let range = Range { wire, address, bytes, changes: Mutex::default(), mappings: RwLock::default() };
        let id = self.objects.reservations.insert(Arc::new(range))?;
        self.shared.standby.objects_changed();
        Ok(Reservation { id, address, bytes })
    }

    pub(crate) fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        const CALL: &str = "create_pages";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let PageRequest { bytes, exportable } = request;
        let keep = self.info.features.page_export;
        if exportable && !keep {
            return Err(Error::unsupported(CALL, "exportable pages", "this device cannot export"));
        }
        let id = self.shared.new_id();
        let ask = Ask::CreatePages { id, bytes, keep };
        let ((), descriptor) = self.ask_for_memory(|| link.ask(CALL, &ask, None, |_| Ok(())))?;
        let remote = Remote::new(&self.shared, WireObject::Pages, id);
        let made = self.objects.pages.insert(Arc::new(Pages { remote, bytes, exportable, descriptor }));
        self.shared.standby.objects_changed();
        made
    }

    pub(crate) fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        const CALL: &str = "import_pages";
        let _change = self.objects.change();
        let link = self.shared.link();
        let id = self.shared.new_id();
        let kept = descriptor.try_clone_to_owned().map_err(|error| no_descriptor(CALL, &error))?;
        link.ask(CALL, &Ask::ImportPages { id, bytes }, Some(descriptor), |_| Ok(()))?;
        let remote = Remote::new(&self.shared, WireObject::Pages, id);
        let pages = Pages { remote, bytes, exportable: true, descriptor: Some(kept) };
        let made = self.objects.pages.insert(Arc::new(pages));
        self.shared.standby.objects_changed();
        made
    }

    pub(crate) fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        const CALL: &str = "export_pages";
        self.shared.link().check(CALL)?;
        let pinned = self.objects.pages.pin(pages).map_err(|error| error.seen_by(CALL))?;
        match &pinned.descriptor {
            Some(descriptor) if pinned.exportable => {
                descriptor.try_clone().map_err(|error| no_descriptor(CALL, &error))
            }
            _ => {
                let what = format!("{pages} were not created to be exported");
                Err(Error::invalid(CALL, what, "create them with `exportable`"))
            }
        }
    }

    pub(crate) fn map(
        &self,
        into: ReservationId,
        offset: u64,
        pages: &[PagesId],
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "map";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let seen = |error: Error| error.seen_by(CALL);
        let range = self.objects.reservations.pin(into).map_err(seen)?;
        let pin = |id: &PagesId| self.objects.pages.pin(*id).map(|pages| Arc::clone(&pages)).map_err(seen);
        let pages: Vec<Arc<Pages>> = pages.iter().map(pin).collect::<Result<_>>()?;
        let wires = pages.iter().map(|pages| pages.remote.id).collect();
        let _turn = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = Ask::Map { reservation: range.wire, offset, pages: wires, protection };
        link.ask(CALL, &ask, None, |_| Ok(()))?;
        let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
        let mut at = offset;
        for pages in pages {
            let bytes = pages.bytes;
            mappings.insert(at, Mapping { pages, protection });
            at = at.saturating_add(bytes);
        }
        drop(mappings);
        self.shared.standby.objects_changed();
        Ok(())
    }

    pub(crate) fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        const CALL: &str = "unmap";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let range = self.objects.reservations.pin(from).map_err(|error| error.seen_by(CALL))?;
        let _turn = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
        link.ask(CALL, &Ask::Unmap { reservation: range.wire, offset, bytes }, None, |_| Ok(()))?;
        let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
        let gone = keys(&mappings, offset, bytes);
        let gone: Vec<_> = gone.into_iter().filter_map(|at| mappings.remove(&at)).collect();
        // Pages whose handle was destroyed are released here, which must not happen under the lock.
        drop(mappings);
        drop(gone);
        self.shared.standby.objects_changed();
        Ok(())
    }

    pub(crate) fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "protect";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let range = self.objects.reservations.pin(reservation).map_err(|error| error.seen_by(CALL))?;
        let _turn = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = Ask::Protect { reservation: range.wire, offset, bytes, protection };
        link.ask(CALL, &ask, None, |_| Ok(()))?;
        let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
        for at in keys(&mappings, offset, bytes) {
            if let Some(mapping) = mappings.get_mut(&at) {
                mapping.protection = protection;
            }
        }
        drop(mappings);
        self.shared.standby.objects_changed();
        Ok(())
    }

    pub(crate) fn destroy_reservation(&self, id: ReservationId) -> Result<()> {
        const CALL: &str = "destroy";
        let _change = self.objects.change();
        let link = self.shared.link();
        let seen = |error: Error| error.seen_by(CALL);
        let range = self.objects.reservations.pin(id).map_err(seen)?;
        if link.lost().is_none() {
            let _turn = range.changes.lock().unwrap_or_else(PoisonError::into_inner);
            if !range.mappings.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return Err(busy(CALL, &id, "pages are mapped in it"));
            }
            link.ask(CALL, &Ask::DestroyReservation { id: range.wire }, None, |_| Ok(()))?;
        }
        drop(range);
        let removed = self.objects.reservations.remove(id).map(drop).map_err(seen);
        self.shared.standby.objects_changed();
        removed
    }
}

/// The offsets of the mappings inside of a range.
fn keys(mappings: &BTreeMap<u64, Mapping>, offset: u64, bytes: u64) -> Vec<u64> {
    let end = offset.saturating_add(bytes);
    let bounds = (Bound::Included(offset), Bound::Excluded(end.max(offset)));
    if offset == end { Vec::new() } else { mappings.range(bounds).map(|(at, _)| *at).collect() }
}

fn no_descriptor(call: &'static str, error: &std::io::Error) -> Error {
    busy(call, &"the system", &format!("it could not duplicate a descriptor ({error})"))
}
