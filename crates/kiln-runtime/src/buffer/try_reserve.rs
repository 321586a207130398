//! Host allocations whose size a program decides; failure is an error and not an abort.

use super::element::Element;
use crate::error::{Error, OutOfHostMemory, Result};

fn missing<T>(len: usize, what: &'static str) -> Error {
    OutOfHostMemory { bytes: (len as u64).saturating_mul(size_of::<T>() as u64), what }.into()
}

/// `len` zeros.
pub(crate) fn zeros<T: Element>(len: usize, what: &'static str) -> Result<Vec<T>> {
    bytemuck::try_zeroed_vec(len).map_err(|()| missing::<T>(len, what))
}

/// A copy of elements.
///
/// # Errors
/// The host has no memory for it.
pub fn copied<T: Element>(from: &[T], what: &'static str) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    reserve(&mut copy, from.len(), what)?;
    copy.extend_from_slice(from);
    Ok(copy)
}

/// Makes room for `len` elements in all; what the vector holds stays.
///
/// # Errors
/// The host has no memory for them.
pub fn reserve<T: Element>(vector: &mut Vec<T>, len: usize, what: &'static str) -> Result<()> {
    let more = len.saturating_sub(vector.len());
    vector.try_reserve_exact(more).map_err(|_| missing::<T>(len, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn memory_that_no_host_has_is_an_error_with_its_size() {
        let (len, bytes) = (usize::MAX / 16, usize::MAX as u64 / 16 * 8);
        let missing = |result: Result<()>| {
            let error = result.unwrap_err();
            assert!(error.is_oom() && error.to_string().contains(&bytes.to_string()), "{error}");
            assert!(matches!(error.kind(), ErrorKind::HostMemory(found) if found.bytes == bytes));
        };
        missing(zeros::<u64>(len, "a test").map(drop));
        let mut some = vec![7_u64; 3];
        missing(reserve(&mut some, len, "a test"));
        assert_eq!((some.as_slice(), copied(&some, "a test").unwrap()), ([7; 3].as_slice(), vec![7; 3]));
        assert_eq!(zeros::<u64>(2, "a test").unwrap(), [0; 2]);
    }
}
