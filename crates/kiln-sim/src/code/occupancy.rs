//! Occupancy: how many blocks fit on a multiprocessor, from the device's limits.

use kiln_driver::{FunctionAttributes, Limits, Occupancy};

/// Shared memory the system keeps for each block.
const RESERVED_SHARED_BYTES: u32 = 1024;

/// None for a block no multiprocessor can hold.
pub(crate) fn occupancy(
    limits: &Limits,
    attributes: &FunctionAttributes,
    block_threads: u32,
    dynamic_shared_bytes: u32,
) -> Option<Occupancy> {
    let blocks = |threads| resident_blocks(limits, attributes, threads, dynamic_shared_bytes);
    let blocks_per_multiprocessor = blocks(block_threads).filter(|blocks| *blocks > 0)?;
    let warp = limits.warp_threads.max(1);
    let largest = attributes.max_threads_per_block.min(limits.max_threads_per_block);
    let sizes = (1..=largest / warp).map(|warps| warps * warp);
    let filled = |threads: &u32| (blocks(*threads).unwrap_or(0) * threads, *threads);
    let suggested_block_threads = sizes.max_by_key(filled).unwrap_or(block_threads);
    let suggested_blocks = blocks(suggested_block_threads).unwrap_or(0);
    Some(Occupancy {
        blocks_per_multiprocessor,
        suggested_block_threads,
        suggested_grid_blocks: suggested_blocks.saturating_mul(limits.multiprocessors),
    })
}

/// Blocks of a shape that one multiprocessor can hold; none if the shape itself is outside of the limits.
pub(crate) fn resident_blocks(
    limits: &Limits,
    attributes: &FunctionAttributes,
    block_threads: u32,
    dynamic_shared_bytes: u32,
) -> Option<u32> {
    let largest = attributes.max_threads_per_block.min(limits.max_threads_per_block);
    let shared = attributes.static_shared_bytes.checked_add(dynamic_shared_bytes)?;
    if block_threads == 0 || block_threads > largest || shared > limits.shared_bytes_per_block_optin {
        return None;
    }
    let threads = block_threads.checked_next_multiple_of(limits.warp_threads.max(1))?;
    let by_threads = limits.max_threads_per_multiprocessor / threads;
    let by_shared = limits.shared_bytes_per_multiprocessor / shared.saturating_add(RESERVED_SHARED_BYTES);
    let by_registers = match attributes.registers.saturating_mul(threads) {
        0 => u32::MAX,
        registers => limits.max_registers_per_block / registers,
    };
    Some(limits.max_blocks_per_multiprocessor.min(by_threads).min(by_shared).min(by_registers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceConfig;

    #[test]
    fn each_limit_counts() {
        let limits = DeviceConfig::default().limits;
        let attributes = |registers, static_shared_bytes| FunctionAttributes {
            max_threads_per_block: 1024,
            registers,
            static_shared_bytes,
            ..FunctionAttributes::default()
        };
        let blocks = |attributes: &FunctionAttributes, threads, dynamic| {
            resident_blocks(&limits, attributes, threads, dynamic)
        };
        assert_eq!(blocks(&attributes(0, 0), 1024, 0), Some(2));
        assert_eq!(blocks(&attributes(0, 0), 32, 0), Some(32));
        assert_eq!(blocks(&attributes(64, 0), 1024, 0), Some(1));
        assert_eq!(blocks(&attributes(0, 0), 128, 100 << 10), Some(2));
        assert_eq!(blocks(&attributes(0, 0), 1025, 0), None);
        assert_eq!(blocks(&attributes(0, 1), 32, 227 << 10), None);
    }
}
