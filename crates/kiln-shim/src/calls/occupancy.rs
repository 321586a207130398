//! How many blocks of a kernel fit.

use std::ffi::{c_int, c_uint};

use kiln_driver::{Code, Occupancy};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::functions::function;
use crate::calls::launch::Configuration;
use crate::calls::process_state::state;
use crate::handle_table::RawHandle;

type SharedOfBlock = Option<extern "C" fn(c_int) -> usize>;

fn occupancy(handle: RawHandle, block: c_int, shared_bytes: usize) -> Answer<Occupancy> {
    let state = state()?;
    let function = function(state, handle)?;
    let block = u32::try_from(block).ok().filter(|block| *block > 0).ok_or(Code::INVALID_VALUE)?;
    let shared = u32::try_from(shared_bytes).map_err(|_| Code::INVALID_VALUE)?;
    let driver = &state.device(function.device as c_int)?.driver;
    driver.occupancy(function.below.id, block, shared).or_code()
}

fn blocks(out: Out<c_int>, handle: RawHandle, block: c_int, shared_bytes: usize) -> Answer {
    out.check()?;
    let state = state()?;
    let limits = &state.device(function(state, handle)?.device as c_int)?.driver.info().limits;
    let is_too_much = block > limits.max_threads_per_block as c_int
        || shared_bytes > limits.shared_bytes_per_block_optin as usize;
    // A block that no multiprocessor holds is an answer and no error.
    let found =
        if is_too_much { 0 } else { occupancy(handle, block, shared_bytes)?.blocks_per_multiprocessor };
    out.set(found as c_int)
}

/// The block size with the most resident threads, and the grid that fills the device with it.
fn best(
    (grid, block): (Out<c_int>, Out<c_int>),
    handle: RawHandle,
    shared_of: SharedOfBlock,
    shared_bytes: usize,
    limit: c_int,
) -> Answer {
    grid.check()?;
    block.check()?;
    let state = state()?;
    let found = function(state, handle)?;
    let limits = &state.device(found.device as c_int)?.driver.info().limits;
    let most = found.below.attributes.max_threads_per_block.min(limits.max_threads_per_block) as c_int;
    let most = if limit > 0 { most.min(limit) } else { most };
    let warp = limits.warp_threads as c_int;
    let sizes = (1..=most / warp).map(|warps| warps * warp).chain((most % warp != 0).then_some(most));
    let mut best = (0, 0, 0);
    for size in sizes {
        let shared = shared_of.map_or(shared_bytes, |of| of(size));
        let resident = occupancy(handle, size, shared).map_or(0, |o| o.blocks_per_multiprocessor as c_int);
        // Of equal ones the largest block is the one the driver chooses.
        if resident > 0 && resident * size >= best.0 {
            best = (resident * size, size, resident);
        }
    }
    if best.1 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    block.set(best.1)?;
    grid.set(best.2 * limits.multiprocessors as c_int)
}

driver_api! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: Out<c_int>, handle: RawHandle, block: c_int, shared_bytes: usize) {
        blocks(out, handle, block, shared_bytes)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: Out<c_int>, handle: RawHandle, block: c_int, shared_bytes: usize, flags: c_uint
    ) {
        if flags > 1 { Err(Code::INVALID_VALUE) } else { blocks(out, handle, block, shared_bytes) }
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, handle: RawHandle, shared_of: SharedOfBlock, shared_bytes: usize, limit: c_int
    ) {
        best((grid, block), handle, shared_of, shared_bytes, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        handle: RawHandle,
        shared_of: SharedOfBlock,
        shared_bytes: usize,
        limit: c_int,
        flags: c_uint
    ) {
        if flags > 1 { Err(Code::INVALID_VALUE) } else { best((grid, block), handle, shared_of, shared_bytes, limit) }
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(out: Out<usize>, handle: RawHandle, blocks: c_int, block: c_int) {
        out.check()?;
        let state = state()?;
        let found = function(state, handle)?;
        let limits = &state.device(found.device as c_int)?.driver.info().limits;
        let most = limits.shared_bytes_per_block_optin.saturating_sub(found.below.attributes.static_shared_bytes);
        let fits = |bytes: u32| {
            occupancy(handle, block, bytes as usize).is_ok_and(|o| o.blocks_per_multiprocessor as c_int >= blocks)
        };
        if !fits(0) {
            return Err(Code::INVALID_VALUE);
        }
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        out.set(low as usize)
    }

    fn cuOccupancyMaxPotentialClusterSize(out: Out<c_int>, handle: RawHandle, configuration: In<Configuration>) {
        let state = state()?;
        configuration.get()?;
        let found = function(state, handle)?;
        out.set(state.device(found.device as c_int)?.driver.info().limits.max_cluster_blocks as c_int)
    }
}
