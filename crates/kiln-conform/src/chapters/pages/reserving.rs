//! Laws about addresses and physical memory, before anything is mapped.

use kiln_driver::{DeviceAddress, PageRequest, ReserveRequest};

use super::need_pages;
use crate::expect::{equal, holds, refused_somehow, same_bytes, too_much};
use crate::fixture::Rig;
use crate::law::{LawVerdict, fail};

pub(super) fn sizes(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    for bytes in [0, 1, granule - 1, granule + 1, 3 * granule / 2] {
        let reserved = rig.driver.reserve(ReserveRequest { bytes, at: None });
        refused_somehow(format!("a reservation of {bytes} bytes"), reserved)?;
        let created = rig.driver.create_pages(PageRequest { bytes, exportable: false });
        refused_somehow(format!("pages of {bytes} bytes"), created)?;
    }
    let reservation = rig.reservation(3)?;
    equal("the length of a reservation", reservation.bytes, 3 * granule)?;
    rig.pages(3)?;
    Ok(())
}

pub(super) fn too_many(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let total = rig.driver.info().total_memory_bytes;
    let bytes = (total + granule).next_multiple_of(granule);
    match rig.driver.create_pages(PageRequest { bytes, exportable: false }) {
        Err(error) if error.is_oom() => {}
        Err(error) => return Err(fail("pages beyond the device's memory to be out of memory", error)),
        Ok(_) => return Err(fail("pages beyond the device's memory to be out of memory", "pages")),
    }
    too_much(
        "2^63 bytes of pages",
        rig.driver.create_pages(PageRequest { bytes: 1 << 63, exportable: false }),
    )?;
    let most = u64::MAX / granule * granule;
    too_much("2^64 bytes of pages", rig.driver.create_pages(PageRequest { bytes: most, exportable: false }))?;
    too_much("2^63 bytes of addresses", rig.driver.reserve(ReserveRequest { bytes: 1 << 63, at: None }))?;
    too_much("2^64 bytes of addresses", rig.driver.reserve(ReserveRequest { bytes: most, at: None }))?;
    let reservation = rig.reservation(1)?;
    let pages = rig.pages(1)?;
    rig.map(reservation.id, 0, pages, 1)?;
    rig.put(reservation.id, &[5; 32])?;
    same_bytes("pages made after that", &rig.get(reservation.id, 32)?, &[5; 32])
}

pub(super) fn reservations_are_apart(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let mut all = Vec::new();
    for granules in [1, 5, 2, 1, 64, 3] {
        let made = rig.reservation(granules)?;
        let aligned = made.address.0.is_multiple_of(rig.granule());
        holds(aligned, "an address that is a multiple of the granularity", made.address)?;
        holds(made.address.0 != 0, "an address that is not null", made.address)?;
        all.push(made);
    }
    all.sort_by_key(|made| made.address);
    for pair in all.windows(2) {
        let apart = pair[0].address.0 + pair[0].bytes <= pair[1].address.0;
        holds(apart, "reservations not to overlap", format!("{:?} and {:?}", pair[0], pair[1]))?;
    }
    Ok(())
}

pub(super) fn fixed_address(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let first = rig.reservation(4)?;
    let taken = ReserveRequest { bytes: granule, at: Some(DeviceAddress(first.address.0 + granule)) };
    refused_somehow("a reservation inside of another", rig.driver.reserve(taken))?;
    rig.destroy(first.id)?;
    let wanted = ReserveRequest { bytes: 4 * granule, at: Some(first.address) };
    let again = rig.driver.reserve(wanted)?;
    rig.adopt(again.id);
    equal("the address that was asked for", again.address, first.address)?;
    let pages = rig.pages(1)?;
    rig.map(again.id, 1, pages, 1)?;
    let crooked = ReserveRequest { bytes: granule, at: Some(DeviceAddress(1)) };
    refused_somehow("a reservation at address 1", rig.driver.reserve(crooked))
}

pub(super) fn reservation_in_use(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let reservation = rig.reservation(2)?;
    let pages = rig.pages(1)?;
    rig.map(reservation.id, 1, pages, 1)?;
    refused_somehow("the end of a reservation in use", rig.driver.destroy(reservation.id.into()))?;
    rig.put(crate::fixture::at(reservation.id, rig.granule()), &[1; 4])?;
    rig.unmap(reservation.id, 1, 1)?;
    Ok(rig.destroy(reservation.id)?)
}

pub(super) fn physical_memory_returns(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let free = rig.driver.memory_info()?.free_bytes;
    // Three times two fifths of what is free: the third time works only if the first two came back.
    let bytes = (free / 5 * 2 / granule).max(1) * granule;
    for _ in 0..3 {
        let pages = rig.driver.create_pages(PageRequest { bytes, exportable: false })?;
        rig.driver.destroy(pages.into())?;
    }
    Ok(())
}
