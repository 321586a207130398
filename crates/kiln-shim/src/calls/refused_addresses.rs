//! Notes about copies, fills and frees that were refused for their addresses: programs that do not look at codes would hear nothing of them.

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::calls::copy_rows::Side;
use crate::calls::process_state::ProcessState;
use crate::records;

/// Notes what is wrong with the ends of a copy that was refused.
pub(crate) fn note_copy(
    state: &ProcessState,
    answered: Answer,
    ends: [(Side, u64); 2],
    bytes: u64,
) -> Answer {
    if answered == Err(Code::INVALID_VALUE) {
        for (side, address) in ends {
            // Other addresses of the host are those of pageable memory.
            let is_ours = side == Side::Device || state.memory.around(address).is_some();
            if is_ours && state.memory.find(address, bytes).is_err() {
                note_range(state, "a copy", address, bytes);
            }
        }
        let [(_, to), (_, from)] = ends;
        let is_known = |address: u64| state.memory.find(address, bytes).is_ok();
        if to.abs_diff(from) < bytes && is_known(to) && is_known(from) {
            note(
                "a copy",
                &format!(
                    "its {bytes} bytes from {from:#x} to {to:#x} overlap; copy them by way of other memory"
                ),
            );
        }
    }
    answered
}

/// Notes what is wrong with bytes that a call would have used.
pub(crate) fn note_range(state: &ProcessState, what: &str, address: u64, bytes: u64) {
    let why = match state.memory.around(address) {
        Some((allocation, offset)) => format!(
            "{bytes} bytes from byte {offset} of {} on, which has {}; stay within the block",
            allocation.name_below(),
            allocation.bytes
        ),
        None => no_memory(state, address),
    };
    note(what, &why);
}

/// Notes what is wrong with an address that was to be freed.
pub(crate) fn note_free(state: &ProcessState, address: u64) {
    let why = match state.memory.around(address) {
        Some((allocation, 0)) => {
            format!("{} at {address:#x} is freed by another function", allocation.name_below())
        }
        Some((allocation, offset)) => format!(
            "{address:#x} is byte {offset} of {}; give the address at which the block begins",
            allocation.name_below()
        ),
        None => no_memory(state, address),
    };
    note("a free", &why);
}

fn no_memory(state: &ProcessState, address: u64) -> String {
    match state.memory.freed(address) {
        Some(freed) => format!(
            "no memory is at {address:#x}: {}, with {} bytes, was there and has been freed; free a block after its last use, and once",
            freed.name(),
            freed.bytes
        ),
        None => format!("no memory of a device is at {address:#x}; give an address that cuMemAlloc gave"),
    }
}

fn note(what: &str, why: &str) {
    let text = format!("{what} was refused with CUDA_ERROR_INVALID_VALUE: {why}");
    records::note_once(&text, &text);
}
