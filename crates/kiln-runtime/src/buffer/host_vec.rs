//! Vectors on the host for what is downloaded from the device.
//!
//! A new vector of megabytes has no memory yet: each page of 4 KiB comes with its first store, and then the copy spends most of its
//! time there (1.7 GB/s on one core, against 10 into memory that is there). Linux is asked for pages of 2 MiB where it gives them on
//! request, which takes far fewer steps.

use super::element::Element;
use super::try_reserve::zeros;
use crate::error::Result;

/// Below this, large pages are not worth a call.
#[cfg(any(target_os = "linux", test))]
const ADVISE_FROM_BYTES: usize = 4 << 20;
/// A large page.
#[cfg(target_os = "linux")]
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Zeros to be overwritten. Nothing touches them before the copy does.
///
/// # Errors
/// The host has no memory for them.
pub fn zeroed_vec<T: Element>(len: usize) -> Result<Vec<T>> {
    let mut data = zeros(len, "a download")?;
    advise(bytemuck::cast_slice_mut(&mut data));
    Ok(data)
}

/// Asks for large pages behind the whole ones among these bytes; other systems decide by themselves.
#[cfg(not(target_os = "linux"))]
fn advise(_: &mut [u8]) {}

/// Asks for large pages behind the whole ones among these bytes.
#[cfg(target_os = "linux")]
fn advise(bytes: &mut [u8]) {
    if bytes.len() < ADVISE_FROM_BYTES {
        return;
    }
    let skipped = bytes.as_ptr().align_offset(LARGE_PAGE_BYTES);
    let Some(whole) = bytes.get_mut(skipped..) else { return };
    let len = whole.len() / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    // SAFETY: the bytes are borrowed mutably, and the advice changes what memory is behind them and not what they hold. It is refused
    // where there are no large pages, and then nothing is lost but the call.
    let _ = unsafe { rustix::mm::madvise(whole.as_mut_ptr().cast(), len, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_of_any_size_is_zero_and_can_be_written() {
        for len in [0, 1, ADVISE_FROM_BYTES - 1, ADVISE_FROM_BYTES, 3 * ADVISE_FROM_BYTES + 5] {
            let mut data = zeroed_vec::<u8>(len).unwrap();
            assert_eq!(data.len(), len);
            assert!(data.iter().all(|byte| *byte == 0));
            data.fill(7);
        }
        assert_eq!(zeroed_vec::<[f32; 3]>(5).unwrap(), [[0.0; 3]; 5]);
    }
}
