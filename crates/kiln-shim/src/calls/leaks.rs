//! What the program did not give back, at the end of its process.

use kiln_driver::FindingRule;

use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::ProcessState;
use crate::{records, run_settings};

/// A kind of memory, and the call that gives it back.
type Kind = (&'static str, &'static str, fn(&Backing) -> bool);

const MEMORY: [Kind; 6] = [
    ("device memory", "cuMemFree", |backing| matches!(backing, Backing::Direct(_))),
    ("memory of pools", "cuMemFreeAsync", |backing| {
        matches!(backing, Backing::Pool(..) | Backing::SharedPool(..))
    }),
    ("managed memory", "cuMemFree", |backing| matches!(backing, Backing::Managed(_))),
    ("pinned memory", "cuMemFreeHost", |backing| matches!(backing, Backing::Pinned(..))),
    ("registered memory", "cuMemHostUnregister", |backing| matches!(backing, Backing::Registered(..))),
    ("reserved addresses", "cuMemAddressFree", |backing| matches!(backing, Backing::Reserved(_))),
];

/// Tells it, if the run asks for that: one finding for each kind of object.
pub(crate) fn report(state: &ProcessState) {
    if !run_settings::reports_leaks() {
        return;
    }
    let allocations = state.memory.all();
    for (what, call, is_meant) in MEMORY {
        let left: Vec<&Allocation> =
            allocations.iter().map(|allocation| &**allocation).filter(|of| is_meant(&of.backing)).collect();
        let bytes: u64 = left.iter().map(|allocation| allocation.bytes).sum();
        if let Some(first) = left.first() {
            let blocks = if left.len() == 1 { "block" } else { "blocks" };
            let text = format!(
                "{} {blocks} of {what}, {bytes} bytes, the first at {:#x}, not given back at the end of the process; call {call}",
                left.len(),
                first.address
            );
            records::find(FindingRule::Leak, false, &text);
        }
    }
    let contexts = state.contexts.objects().iter().filter(|of| !of.is_primary && of.is_there()).count();
    let libraries = state.libraries.objects();
    let of_libraries: usize = libraries.iter().map(|library| library.loaded_modules(state)).sum();
    let objects = [
        ("contexts", "cuCtxDestroy", contexts),
        ("streams", "cuStreamDestroy", state.streams.objects().len()),
        ("events", "cuEventDestroy", state.events.objects().len()),
        ("modules", "cuModuleUnload", state.modules.objects().len().saturating_sub(of_libraries)),
        ("libraries", "cuLibraryUnload", libraries.len()),
        ("links", "cuLinkDestroy", state.links.objects().len()),
        ("graphs", "cuGraphDestroy", state.graphs.objects().len()),
        ("executable graphs", "cuGraphExecDestroy", state.executables.objects().len()),
        ("arrays", "cuArrayDestroy", state.arrays.objects().len()),
        ("texture and surface objects", "cuTexObjectDestroy or cuSurfObjectDestroy", state.bound.len()),
        ("pools", "cuMemPoolDestroy", state.pools.objects().len().saturating_sub(state.devices.len())),
        ("pieces of physical memory", "cuMemRelease", state.physical.objects().len()),
    ];
    for (what, call, count) in objects.into_iter().filter(|(_, _, count)| *count > 0) {
        let text = format!("{what} not given back at the end of the process: {count}; call {call}");
        records::find(FindingRule::Leak, false, &text);
    }
}
