//! Laws about mapping, unmapping and protecting pages.

use kiln_driver::{DeviceAddress, DeviceMemory, DriverExt, Protection, Refusal, Reservation};

use super::need_pages;
use crate::expect::{equal, refused_somehow, same_bytes, stale};
use crate::fixture::{Rig, at, noise};
use crate::kernels::Arguments;
use crate::law::{LawVerdict, Stop};

/// A reservation with one piece of so many granules mapped at its start.
fn mapped(rig: &Rig<'_>, granules: u64) -> Result<Reservation, Stop> {
    let reservation = rig.reservation(granules)?;
    let pages = rig.pages(granules)?;
    rig.map(reservation.id, 0, pages, granules)?;
    Ok(reservation)
}

pub(super) fn round_trip(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let reservation = mapped(rig, 2)?;
    let data = noise(8192, 1);
    // Across the middle, where nothing but the mapping holds the two granules together.
    let start = rig.granule() - 4096;
    rig.put(at(reservation.id, start), &data)?;
    same_bytes("copied pages", &rig.get(at(reservation.id, start), 8192)?, &data)?;
    let stream = rig.stream()?;
    let out = rig.words(2048)?;
    let arguments =
        Arguments::new().address(DeviceAddress(reservation.address.0 + start)).address(out.address).u32(2048);
    rig.launch(stream, rig.kernel("copy_words")?.id, 8, 256, &arguments)?;
    rig.driver.synchronize(stream)?;
    same_bytes("pages read by a kernel", &rig.get(out.id, 8192)?, &data)
}

pub(super) fn map_many(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let sizes = [1, 3, 2, 1];
    let reservation = rig.reservation(8)?;
    let mut pages = Vec::new();
    for granules in sizes {
        pages.push(rig.pages(granules)?);
    }
    let bytes = 7 * rig.granule();
    rig.driver.map(reservation.id, rig.granule(), &pages, Protection::ReadWrite)?;
    rig.adopt_mapping(reservation.id, rig.granule(), bytes);
    let stream = rig.stream()?;
    rig.driver.fill(stream, at(reservation.id, rig.granule()), 0, bytes)?;
    rig.driver.synchronize(stream)?;
    let mut place = 1;
    for (number, granules) in sizes.into_iter().enumerate() {
        rig.put(at(reservation.id, place * rig.granule()), &[number as u8 + 1; 16])?;
        rig.put(at(reservation.id, (place + granules) * rig.granule() - 16), &[number as u8 + 101; 16])?;
        place += granules;
    }
    // Each piece alone, at another place: its first and its last bytes tell whether it lay where it should.
    let other = rig.reservation(3)?;
    rig.unmap(reservation.id, 1, 7)?;
    for (number, granules) in sizes.into_iter().enumerate() {
        rig.map(other.id, 0, pages[number], granules)?;
        same_bytes("the first bytes of a piece", &rig.get(other.id, 16)?, &[number as u8 + 1; 16])?;
        let end = at(other.id, granules * rig.granule() - 16);
        same_bytes("the last bytes of a piece", &rig.get(end, 16)?, &[number as u8 + 101; 16])?;
        rig.unmap(other.id, 0, granules)?;
    }
    Ok(())
}

pub(super) fn survive_unmap(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let (first, second) = (rig.reservation(1)?, rig.reservation(4)?);
    let pages = rig.pages(1)?;
    let data = noise(4096, 2);
    rig.map(first.id, 0, pages, 1)?;
    rig.put(first.id, &data)?;
    rig.unmap(first.id, 0, 1)?;
    rig.map(second.id, 3, pages, 1)?;
    same_bytes("pages mapped elsewhere", &rig.get(at(second.id, 3 * rig.granule()), 4096)?, &data)?;
    rig.unmap(second.id, 3, 1)?;
    rig.map(first.id, 0, pages, 1)?;
    same_bytes("pages mapped again", &rig.get(first.id, 4096)?, &data)
}

pub(super) fn two_mappings(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let (first, second) = (rig.reservation(1)?, rig.reservation(1)?);
    let pages = rig.pages(1)?;
    rig.map(first.id, 0, pages, 1)?;
    rig.map(second.id, 0, pages, 1)?;
    let data = noise(4096, 3);
    rig.put(first.id, &data)?;
    same_bytes("what was written through the other mapping", &rig.get(second.id, 4096)?, &data)?;
    let data = noise(4096, 4);
    rig.put(second.id, &data)?;
    same_bytes("what was written back", &rig.get(first.id, 4096)?, &data)
}

pub(super) fn partial_unmap_refused(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let reservation = rig.reservation(4)?;
    let (one, two) = (rig.pages(2)?, rig.pages(1)?);
    rig.map(reservation.id, 0, one, 2)?;
    rig.map(reservation.id, 2, two, 1)?;
    let data = noise(3 * 64, 5);
    for (granule_at, part) in data.chunks(64).enumerate() {
        rig.put(at(reservation.id, granule_at as u64 * granule), part)?;
    }
    for (offset, bytes) in
        [(0, granule), (granule, granule), (granule, 2 * granule), (0, 2 * granule + granule / 2)]
    {
        let answer = rig.driver.unmap(reservation.id, offset, bytes);
        refused_somehow(format!("an unmap of {bytes} bytes at {offset}, which cuts a mapping"), answer)?;
    }
    for (granule_at, part) in data.chunks(64).enumerate() {
        let found = rig.get(at(reservation.id, granule_at as u64 * granule), 64)?;
        same_bytes("what is still mapped", &found, part)?;
    }
    Ok(())
}

pub(super) fn empty_unmap_refused(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let reservation = rig.reservation(3)?;
    let pages = rig.pages(1)?;
    rig.map(reservation.id, 0, pages, 1)?;
    for (offset, bytes) in
        [(granule, granule), (granule, 0), (3 * granule, granule), (u64::MAX - granule + 1, granule)]
    {
        let answer = rig.driver.unmap(reservation.id, offset, bytes);
        refused_somehow(format!("an unmap of {bytes} bytes at {offset}, where nothing is"), answer)?;
    }
    rig.put(reservation.id, &[1; 16])?;
    same_bytes("what is still mapped", &rig.get(reservation.id, 16)?, &[1; 16])
}

pub(super) fn many_unmapped_at_once(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let reservation = rig.reservation(4)?;
    let (one, two) = (rig.pages(1)?, rig.pages(2)?);
    rig.map(reservation.id, 1, one, 1)?;
    rig.map(reservation.id, 2, two, 2)?;
    rig.driver.unmap(reservation.id, rig.granule(), 3 * rig.granule())?;
    // Both places are free again; the rig's own notes of the two mappings fit the new ones.
    rig.driver.map(reservation.id, rig.granule(), &[one, two], Protection::ReadWrite)?;
    rig.put(at(reservation.id, 3 * rig.granule()), &[9; 8])?;
    same_bytes("pages mapped again", &rig.get(at(reservation.id, 3 * rig.granule()), 8)?, &[9; 8])
}

pub(super) fn map_is_all_or_nothing(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let reservation = rig.reservation(4)?;
    let (first, second, third) = (rig.pages(1)?, rig.pages(1)?, rig.pages(1)?);
    rig.map(reservation.id, 2, third, 1)?;
    rig.put(at(reservation.id, 2 * granule), &[3; 16])?;
    let both = [first, second];
    let answer = rig.driver.map(reservation.id, granule, &both, Protection::ReadWrite);
    refused_somehow("a map onto mapped pages", answer)?;
    let gone = rig.pages(1)?;
    rig.destroy(gone)?;
    let answer = rig.driver.map(reservation.id, 0, &[first, gone], Protection::ReadWrite);
    stale("a map", answer)?;
    let answer = rig.driver.map(reservation.id, 0, &[], Protection::ReadWrite);
    if let Err(error) = answer {
        equal("what an empty list of pages is", error.is_refused(), true)?;
    }
    // Had the first of either list been mapped, its place would be taken now.
    rig.map(reservation.id, 0, first, 1)?;
    rig.map(reservation.id, 1, second, 1)?;
    same_bytes("what was mapped before", &rig.get(at(reservation.id, 2 * granule), 16)?, &[3; 16])
}

pub(super) fn map_past_the_end_refused(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let reservation = rig.reservation(2)?;
    let (one, two) = (rig.pages(1)?, rig.pages(2)?);
    let list = [one, two];
    for (offset, pages) in [
        (granule, &list[1..]),
        (2 * granule, &list[..1]),
        (0, &list[..]),
        (u64::MAX - granule + 1, &list[..1]),
        (1, &list[..1]),
    ] {
        let answer = rig.driver.map(reservation.id, offset, pages, Protection::ReadWrite);
        refused_somehow(format!("{} pages at {offset}, which do not fit", pages.len()), answer)?;
    }
    rig.map(reservation.id, 0, two, 2)?;
    Ok(())
}

pub(super) fn read_only(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let reservation = mapped(rig, 1)?;
    let data = noise(256, 6);
    rig.put(reservation.id, &data)?;
    rig.driver.protect(reservation.id, 0, rig.granule(), Protection::Read)?;
    same_bytes("read-only pages, copied", &rig.get(reservation.id, 256)?, &data)?;
    let stream = rig.stream()?;
    let out = rig.words(64)?;
    let arguments = Arguments::new().address(reservation.address).address(out.address).u32(64);
    rig.launch(stream, rig.kernel("copy_words")?.id, 1, 64, &arguments)?;
    rig.driver.synchronize(stream)?;
    same_bytes("read-only pages, read by a kernel", &rig.get(out.id, 256)?, &data)?;
    rig.driver.protect(reservation.id, 0, rig.granule(), Protection::ReadWrite)?;
    rig.put(reservation.id, &[0; 256])?;
    // The memory of the rig's short words is a block; here it is the start of the reservation.
    let words = DeviceMemory { id: out.id, address: reservation.address, bytes: 256 };
    rig.increment(stream, &words, 64)?;
    rig.driver.synchronize(stream)?;
    let ones: Vec<u8> = [1, 0, 0, 0].repeat(64);
    same_bytes("pages opened again, written by a kernel", &rig.get(reservation.id, 256)?, &ones)
}

pub(super) fn protect_whole_mappings(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let granule = rig.granule();
    let reservation = rig.reservation(4)?;
    let (one, two) = (rig.pages(2)?, rig.pages(1)?);
    rig.map(reservation.id, 0, one, 2)?;
    rig.map(reservation.id, 2, two, 1)?;
    for (offset, bytes) in
        [(0, granule), (granule, 2 * granule), (2 * granule, 2 * granule), (3 * granule, granule)]
    {
        let answer = rig.driver.protect(reservation.id, offset, bytes, Protection::Read);
        refused_somehow(
            format!("protection of {bytes} bytes at {offset}, which are no whole mappings"),
            answer,
        )?;
    }
    rig.driver.protect(reservation.id, 0, 3 * granule, Protection::Read)?;
    Ok(rig.driver.protect(reservation.id, 0, 3 * granule, Protection::ReadWrite)?)
}

pub(super) fn mapped_pages_outlive_their_handle(rig: &Rig<'_>) -> LawVerdict {
    need_pages(rig)?;
    let (reservation, other) = (rig.reservation(1)?, rig.reservation(1)?);
    let pages = rig.pages(1)?;
    rig.map(reservation.id, 0, pages, 1)?;
    let data = noise(4096, 7);
    rig.put(reservation.id, &data)?;
    rig.destroy(pages)?;
    stale("a map", rig.driver.map(other.id, 0, &[pages], Protection::ReadWrite))?;
    same_bytes("pages whose handle is gone", &rig.get(reservation.id, 4096)?, &data)?;
    rig.put(reservation.id, &[1; 64])?;
    same_bytes("pages whose handle is gone, written", &rig.get(reservation.id, 64)?, &[1; 64])?;
    rig.unmap(reservation.id, 0, 1)?;
    let again = rig.driver.unmap(reservation.id, 0, rig.granule());
    crate::expect::refused("a second unmap", again, |reason| !matches!(reason, Refusal::Stale { .. }))
}
