//! Laws about pages as file descriptors.

use std::os::fd::AsFd;

use kiln_driver::{PageRequest, PagesId};

use super::need_export;
use crate::expect::{refused_somehow, same_bytes};
use crate::fixture::{Rig, noise};
use crate::law::{LawVerdict, Stop, fail};

/// Pages that can be exported.
fn exportable(rig: &Rig<'_>, granules: u64) -> Result<PagesId, Stop> {
    Ok(rig.pages_of(PageRequest { bytes: granules * rig.granule(), exportable: true })?)
}

pub(super) fn export_and_import(rig: &Rig<'_>) -> LawVerdict {
    need_export(rig)?;
    let (first, second) = (rig.reservation(2)?, rig.reservation(2)?);
    let pages = exportable(rig, 2)?;
    rig.map(first.id, 0, pages, 2)?;
    let data = noise(4096, 1);
    rig.put(first.id, &data)?;
    let descriptor = rig.driver.export_pages(pages)?;
    let imported = rig.driver.import_pages(descriptor.as_fd(), 2 * rig.granule())?;
    rig.adopt(imported);
    rig.map(second.id, 0, imported, 2)?;
    same_bytes("imported pages", &rig.get(second.id, 4096)?, &data)?;
    let data = noise(4096, 2);
    rig.put(second.id, &data)?;
    same_bytes("exported pages written through the import", &rig.get(first.id, 4096)?, &data)
}

pub(super) fn descriptor_keeps_memory(rig: &Rig<'_>) -> LawVerdict {
    need_export(rig)?;
    let reservation = rig.reservation(1)?;
    let pages = exportable(rig, 1)?;
    rig.map(reservation.id, 0, pages, 1)?;
    let data = noise(4096, 3);
    rig.put(reservation.id, &data)?;
    let descriptor = rig.driver.export_pages(pages)?;
    rig.unmap(reservation.id, 0, 1)?;
    rig.destroy(pages)?;
    let imported = rig.driver.import_pages(descriptor.as_fd(), rig.granule())?;
    rig.adopt(imported);
    drop(descriptor);
    rig.map(reservation.id, 0, imported, 1)?;
    same_bytes("memory only a descriptor held", &rig.get(reservation.id, 4096)?, &data)
}

pub(super) fn export_must_be_asked_for(rig: &Rig<'_>) -> LawVerdict {
    need_export(rig)?;
    let pages = rig.pages(1)?;
    refused_somehow("an export of pages not made for it", rig.driver.export_pages(pages))
}

pub(super) fn import_of_something_else(rig: &Rig<'_>) -> LawVerdict {
    need_export(rig)?;
    let (reader, _writer) = std::io::pipe().map_err(|error| fail("a pipe", error))?;
    let answer = rig.driver.import_pages(reader.as_fd(), rig.granule());
    refused_somehow("an import of a pipe", answer)
}

pub(super) fn import_size(rig: &Rig<'_>) -> LawVerdict {
    need_export(rig)?;
    let granule = rig.granule();
    let pages = exportable(rig, 2)?;
    let descriptor = rig.driver.export_pages(pages)?;
    for bytes in [0, granule, granule / 2, 3 * granule, 1 << 63] {
        let answer = rig.driver.import_pages(descriptor.as_fd(), bytes);
        refused_somehow(format!("an import of {bytes} bytes from {} bytes", 2 * granule), answer)?;
    }
    let imported = rig.driver.import_pages(descriptor.as_fd(), 2 * granule)?;
    rig.adopt(imported);
    Ok(())
}
