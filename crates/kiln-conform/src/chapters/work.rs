//! Laws about copies, fills and launches on one stream.

mod launches;
mod transfers;

use kiln_driver::DriverExt;

use crate::expect::{equal, same_bytes};
use crate::fixture::{Rig, read_host};
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "work.in_order",
        says: "commands on one stream run in the order they were submitted",
        run: in_order,
    },
    Law {
        name: "work.reads_see_the_past",
        says: "a copy reads what was there at its place in the order, not what came later",
        run: reads_see_the_past,
    },
    Law {
        name: "work.copies",
        says: "a copy moves exactly its bytes, for every size and offset",
        run: transfers::copies,
    },
    Law {
        name: "work.copies_inside_a_block",
        says: "two ranges of one block copy into each other",
        run: transfers::copies_inside_a_block,
    },
    Law {
        name: "work.fills",
        says: "a fill writes its pattern as often as asked and nothing else",
        run: transfers::fills,
    },
    Law {
        name: "work.zero_bytes",
        says: "a copy or fill of nothing is counted and does nothing",
        run: transfers::zero_bytes,
    },
    Law {
        name: "work.copy_past_the_end",
        says: "a copy past the end of either block is refused and nothing is changed",
        run: transfers::copy_past_the_end,
    },
    Law {
        name: "work.fill_past_the_end",
        says: "a fill past the end of its block is refused and nothing is changed",
        run: transfers::fill_past_the_end,
    },
    Law {
        name: "work.peer_copies",
        says: "copies between two devices move exactly their bytes",
        run: transfers::peer_copies,
    },
    Law { name: "work.large_copy", says: "many megabytes arrive whole", run: transfers::large_copy },
    Law { name: "work.kernels", says: "kernels compute what they should", run: launches::kernels },
    Law { name: "work.shapes", says: "every thread of a grid of any shape runs once", run: launches::shapes },
    Law {
        name: "work.arguments_are_taken_at_once",
        says: "the packed arguments may change once submit has returned",
        run: launches::arguments_are_taken_at_once,
    },
    Law {
        name: "work.shapes_refused",
        says: "grids and blocks outside of the limits are refused and nothing is changed",
        run: launches::shapes_refused,
    },
    Law {
        name: "work.dynamic_shared",
        says: "a kernel gets the shared memory it asks for, up to the opt-in limit",
        run: launches::dynamic_shared,
    },
    Law {
        name: "work.dynamic_shared_refused",
        says: "more shared memory than the opt-in limit is refused",
        run: launches::dynamic_shared_refused,
    },
    Law {
        name: "work.cooperative",
        says: "blocks of a cooperative launch are resident together",
        run: launches::cooperative,
    },
    Law {
        name: "work.cooperative_refused",
        says: "a cooperative launch that cannot be resident is refused with both numbers",
        run: launches::cooperative_refused,
    },
    Law {
        name: "work.clusters",
        says: "clusters run, and those that are too large or do not divide the grid are refused",
        run: launches::clusters,
    },
];

fn in_order(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (memory, other) = (rig.words(256)?, rig.words(256)?);
    let to = rig.host(1024)?;
    rig.busy(stream)?;
    // Each step reads what the one before wrote: +1, copy, +1, copy back.
    for _ in 0..8 {
        rig.increment(stream, &memory, 256)?;
        rig.copy(stream, memory.id, other.id, 1024)?;
        rig.increment(stream, &other, 256)?;
        rig.copy(stream, other.id, memory.id, 1024)?;
    }
    rig.driver.download(stream, memory.id.into(), &to, 1024)?;
    rig.driver.synchronize(stream)?;
    same_bytes("the end of the chain", &read_host(&to)?, &[16, 0, 0, 0].repeat(256))
}

fn reads_see_the_past(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(1)?;
    let hosts = [rig.host(4)?, rig.host(4)?, rig.host(4)?];
    rig.busy(stream)?;
    for (value, host) in (1..).zip(&hosts) {
        rig.store(stream, &memory, value)?;
        rig.driver.download(stream, memory.id.into(), host, 4)?;
    }
    rig.store(stream, &memory, 99)?;
    rig.driver.synchronize(stream)?;
    for (value, host) in (1u32..).zip(&hosts) {
        same_bytes("a copy between two writes", &read_host(host)?, &value.to_le_bytes())?;
    }
    equal("the last write", rig.get_words(&memory, 1)?, vec![99])
}
