//! Laws about addresses, physical memory, and mappings between them.

mod descriptors;
mod mapping;
mod reserving;

use kiln_driver::{PageRequest, ReserveRequest};

use crate::expect::unsupported;
use crate::fixture::Rig;
use crate::law::{Law, Stop};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "pages.round_trip",
        says: "copies and kernels reach mapped pages at their addresses",
        run: mapping::round_trip,
    },
    Law {
        name: "pages.map_many",
        says: "one call maps many pages one after the other, in the order of the list",
        run: mapping::map_many,
    },
    Law {
        name: "pages.survive_unmap",
        says: "contents stay with the pages when they are mapped elsewhere",
        run: mapping::survive_unmap,
    },
    Law { name: "pages.two_mappings", says: "pages mapped twice are one memory", run: mapping::two_mappings },
    Law {
        name: "pages.partial_unmap_refused",
        says: "a range that cuts a mapping is not unmapped, and nothing is",
        run: mapping::partial_unmap_refused,
    },
    Law {
        name: "pages.empty_unmap_refused",
        says: "a range that holds no mapping is not unmapped",
        run: mapping::empty_unmap_refused,
    },
    Law {
        name: "pages.many_unmapped_at_once",
        says: "one call takes several mappings out",
        run: mapping::many_unmapped_at_once,
    },
    Law {
        name: "pages.map_is_all_or_nothing",
        says: "pages that would lie on a mapping are refused, and none of the list is mapped",
        run: mapping::map_is_all_or_nothing,
    },
    Law {
        name: "pages.map_past_the_end_refused",
        says: "pages that do not fit a reservation are refused, and none is mapped",
        run: mapping::map_past_the_end_refused,
    },
    Law {
        name: "pages.read_only",
        says: "pages can be protected for reading, read, and opened again",
        run: mapping::read_only,
    },
    Law {
        name: "pages.protect_whole_mappings",
        says: "protection changes for whole mappings only",
        run: mapping::protect_whole_mappings,
    },
    Law {
        name: "pages.mapped_pages_outlive_their_handle",
        says: "destroyed pages live on while they are mapped",
        run: mapping::mapped_pages_outlive_their_handle,
    },
    Law {
        name: "pages.sizes",
        says: "sizes that are zero or no multiple of the granularity are refused",
        run: reserving::sizes,
    },
    Law {
        name: "pages.too_many",
        says: "more pages than there is memory are out of memory, and nothing is lost by asking",
        run: reserving::too_many,
    },
    Law {
        name: "pages.reservations_are_apart",
        says: "no two reservations share an address",
        run: reserving::reservations_are_apart,
    },
    Law {
        name: "pages.fixed_address",
        says: "a reservation at a given address is there or refused",
        run: reserving::fixed_address,
    },
    Law {
        name: "pages.reservation_in_use",
        says: "a reservation with pages in it is not destroyed",
        run: reserving::reservation_in_use,
    },
    Law {
        name: "pages.physical_memory_returns",
        says: "destroyed pages are memory again",
        run: reserving::physical_memory_returns,
    },
    Law {
        name: "pages.export_and_import",
        says: "imported pages are the exported memory",
        run: descriptors::export_and_import,
    },
    Law {
        name: "pages.descriptor_keeps_memory",
        says: "a descriptor keeps memory and contents alive",
        run: descriptors::descriptor_keeps_memory,
    },
    Law {
        name: "pages.export_must_be_asked_for",
        says: "pages not made to be exported are not",
        run: descriptors::export_must_be_asked_for,
    },
    Law {
        name: "pages.import_of_something_else",
        says: "a descriptor that is no memory is refused",
        run: descriptors::import_of_something_else,
    },
    Law {
        name: "pages.import_size",
        says: "an import of another size is refused",
        run: descriptors::import_size,
    },
];

/// Ends a law where there are no pages, after a look at what the calls say then.
fn need_pages(rig: &Rig<'_>) -> Result<(), Stop> {
    if rig.driver.info().features.pages {
        return Ok(());
    }
    let bytes = 2 << 20;
    unsupported("reserve", rig.driver.reserve(ReserveRequest { bytes, at: None }))?;
    unsupported("create_pages", rig.driver.create_pages(PageRequest { bytes, exportable: false }))?;
    Err(Stop::Inapplicable("the device has no pages".into()))
}

/// Likewise for export.
fn need_export(rig: &Rig<'_>) -> Result<(), Stop> {
    need_pages(rig)?;
    if rig.driver.info().features.page_export {
        return Ok(());
    }
    let request = PageRequest { bytes: rig.granule(), exportable: true };
    unsupported("create_pages to be exported", rig.driver.create_pages(request))?;
    Err(Stop::Inapplicable("the device exports no pages".into()))
}
