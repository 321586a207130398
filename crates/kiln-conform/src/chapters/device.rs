//! Laws about the properties of a device.

use std::time::Duration;

use kiln_driver::{DriverExt, Health, MemoryRequest};

use crate::expect::{equal, holds};
use crate::fixture::Rig;
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "device.info_is_fixed",
        says: "what a device is does not change while it is open",
        run: info_is_fixed,
    },
    Law {
        name: "device.limits_make_sense",
        says: "the limits fit each other and the features",
        run: limits_make_sense,
    },
    Law {
        name: "device.keys_differ",
        says: "each opened device has its key, and its handles carry it",
        run: keys_differ,
    },
    Law {
        name: "device.healthy",
        says: "a device that does its work is healthy, and says so without waiting",
        run: healthy,
    },
    Law {
        name: "device.free_memory_is_live",
        says: "what is free shrinks by an allocation and comes back with its free",
        run: free_memory_is_live,
    },
    Law {
        name: "device.clock_moves_forward",
        says: "the device's time moves forward, and a sleep takes as long as it should",
        run: clock_moves_forward,
    },
];

fn info_is_fixed(rig: &Rig<'_>) -> LawVerdict {
    let before = rig.driver.info().clone();
    let stream = rig.stream()?;
    let memory = rig.words(16)?;
    rig.increment(stream, &memory, 16)?;
    rig.driver.synchronize(stream)?;
    equal("the device's info", rig.driver.info().clone(), before)
}

fn limits_make_sense(rig: &Rig<'_>) -> LawVerdict {
    let info = rig.driver.info();
    let (limits, features) = (&info.limits, &info.features);
    let checks = [
        ("a name", !info.name.is_empty()),
        ("memory", info.total_memory_bytes > 0),
        ("blocks of at least a warp", limits.max_threads_per_block >= limits.warp_threads),
        ("a block extent of all its threads", limits.max_block.x >= limits.max_threads_per_block),
        ("a grid", limits.max_grid.x > 0 && limits.max_grid.y > 0 && limits.max_grid.z > 0),
        ("a multiprocessor", limits.multiprocessors > 0 && limits.warp_threads > 0),
        (
            "opt-in shared memory not below the plain one",
            limits.shared_bytes_per_block_optin >= limits.shared_bytes_per_block,
        ),
        (
            "clusters where it says so, and only there",
            (limits.max_cluster_blocks > 1) == features.cluster_launch,
        ),
        ("an alignment that is a power of two", limits.allocation_alignment_bytes.is_power_of_two()),
        (
            "a page size where it has pages, and only there",
            limits.page_granularity_bytes.is_power_of_two() == features.pages,
        ),
        ("pages if it can export them", features.pages || !features.page_export),
        (
            "the highest priority to be the smaller number",
            limits.priorities.highest <= limits.priorities.lowest,
        ),
        ("priority 0 in the range", limits.priorities.highest <= 0 && limits.priorities.lowest >= 0),
        ("some code it can run", features.ptx || features.cubin || features.host_kernels),
        ("room for arguments", limits.max_argument_bytes >= 256),
    ];
    for (expected, condition) in checks {
        holds(condition, expected, format!("{info:?}"))?;
    }
    Ok(())
}

fn keys_differ(rig: &Rig<'_>) -> LawVerdict {
    let another = rig.another()?;
    let (here, there) = (rig.driver.info().key, another.driver.info().key);
    holds(here != there, "two opened devices to have different keys", format!("{here} twice"))?;
    equal("the device of a stream's handle", rig.stream()?.device(), here)?;
    equal("the device of another's handle", another.event()?.device(), there)?;
    another.finish()
}

fn healthy(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let ask = || match rig.driver.health() {
        Health::Healthy => Ok(()),
        Health::Lost(error) => Err(error.into()),
    };
    ask()?;
    rig.busy(stream)?;
    ask()?;
    rig.driver.synchronize(stream)?;
    ask()
}

fn free_memory_is_live(rig: &Rig<'_>) -> LawVerdict {
    let total = rig.driver.info().total_memory_bytes;
    let bytes = (256 << 20).min(total / 8);
    let before = rig.driver.memory_info()?;
    holds(before.free_bytes <= before.total_bytes, "no more free than there is", format!("{before:?}"))?;
    let memory = rig.driver.allocate(MemoryRequest::Direct { bytes })?;
    let with = rig.driver.memory_info()?;
    rig.driver.free(memory.id, None)?;
    let after = rig.driver.memory_info()?;
    let seen =
        format!("{} free before, {} with it, {} after", before.free_bytes, with.free_bytes, after.free_bytes);
    holds(with.free_bytes < before.free_bytes, "less to be free with memory allocated", &seen)?;
    holds(after.free_bytes > with.free_bytes, "more to be free after it was freed", &seen)
}

fn clock_moves_forward(rig: &Rig<'_>) -> LawVerdict {
    const NAP: Duration = Duration::from_millis(2);
    let clock = rig.driver.clock();
    let start = clock.now();
    let again = clock.now();
    holds(again >= start, "time not to run backwards", format!("{start:?}, then {again:?}"))?;
    clock.sleep(NAP);
    let woken = clock.now();
    holds(woken >= again + NAP, "a sleep of 2 ms to take 2 ms", format!("{again:?}, then {woken:?}"))
}
