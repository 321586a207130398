//! Reserved addresses, and what is mapped there.
//!
//! A mapping has no access at first. Below it is there only while the program gave its device access, so that kernels that use it without fault, as
//! on a GPU.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Code, Protection, Reservation, ReservationId};

use crate::boundary::{Answer, OrCode};
use crate::calls::physical_memory::PhysicalMemory;

/// Addresses of `cuMemAddressReserve`.
pub(crate) struct AddressRange {
    pub(crate) reservation: Reservation,
    /// By the offset of their first byte.
    mappings: Mutex<BTreeMap<u64, AddressMapping>>,
}

/// Memory at some of the addresses.
struct AddressMapping {
    memory: Arc<PhysicalMemory>,
    access: Option<Protection>,
}

impl AddressRange {
    pub(crate) fn new(reservation: Reservation) -> Arc<Self> {
        Arc::new(Self { reservation, mappings: Mutex::default() })
    }

    pub(crate) fn id(&self) -> ReservationId {
        self.reservation.id
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Puts memory at an offset, without access.
    pub(crate) fn map(&self, offset: u64, memory: &Arc<PhysicalMemory>) -> Answer {
        let mut mappings = self.lock();
        let end = offset.checked_add(memory.bytes).ok_or(Code::INVALID_VALUE)?;
        let before = mappings.range(..end).next_back();
        if end > self.reservation.bytes || before.is_some_and(|(at, other)| at + other.memory.bytes > offset)
        {
            return Err(Code::INVALID_VALUE);
        }
        memory.add_mapping();
        mappings.insert(offset, AddressMapping { memory: memory.clone(), access: None });
        Ok(())
    }

    /// Takes whole mappings out. Work that may still use them is found below.
    pub(crate) fn unmap(&self, offset: u64, bytes: u64) -> Answer {
        let mut mappings = self.lock();
        for at in whole(&mappings, offset, bytes)? {
            if let Some(gone) = mappings.remove(&at) {
                if gone.access.is_some() {
                    gone.memory.driver.unmap(self.id(), at, gone.memory.bytes).or_code()?;
                }
                gone.memory.remove_mapping();
            }
        }
        Ok(())
    }

    /// Says what a device may do to whole mappings of its memory.
    pub(crate) fn set_access(&self, offset: u64, bytes: u64, access: Option<Protection>) -> Answer {
        let mut mappings = self.lock();
        let id = self.id();
        for at in whole(&mappings, offset, bytes)? {
            let Some(AddressMapping { memory, access: now }) = mappings.get_mut(&at) else { continue };
            match (*now, access) {
                (Some(_), None) => memory.driver.unmap(id, at, memory.bytes).or_code()?,
                (None, Some(access)) => memory.driver.map(id, at, &[memory.pages], access).or_code()?,
                (Some(_), Some(access)) => memory.driver.protect(id, at, memory.bytes, access).or_code()?,
                (None, None) => {}
            }
            *now = access;
        }
        Ok(())
    }

    /// What is mapped at an offset, and the access that its device has.
    pub(crate) fn at(&self, offset: u64) -> Option<(Arc<PhysicalMemory>, Option<Protection>)> {
        let mappings = self.lock();
        let (start, mapping) = mappings.range(..=offset).next_back()?;
        (offset - start < mapping.memory.bytes).then(|| (mapping.memory.clone(), mapping.access))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, AddressMapping>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mappings that fill a range without a hole and without being cut.
fn whole(mappings: &BTreeMap<u64, AddressMapping>, offset: u64, bytes: u64) -> Answer<Vec<u64>> {
    let end = offset.checked_add(bytes).filter(|_| bytes > 0).ok_or(Code::INVALID_VALUE)?;
    let (mut reached, mut list) = (offset, Vec::new());
    while reached < end {
        let mapping = mappings.get(&reached).ok_or(Code::INVALID_VALUE)?;
        list.push(reached);
        reached += mapping.memory.bytes;
    }
    if reached == end { Ok(list) } else { Err(Code::INVALID_VALUE) }
}
