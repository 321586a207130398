//! The addresses of the arrays of a launch, so that findings can name the argument.

use serde::Serialize;

use crate::plural::counted;

/// An address farther than this from every array belongs to none of them.
const NEAR_BYTES: u64 = 64 << 10;

/// The arrays of a launch.
#[derive(Clone, Default, Debug)]
pub(crate) struct ArrayMap {
    arrays: Vec<Placed>,
}

#[derive(Clone, Debug)]
struct Placed {
    argument: usize,
    address: u64,
    bytes: u64,
}

/// The array nearest to an access.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct Allocation {
    /// The index of the argument.
    pub(crate) argument: usize,
    pub(crate) bytes: u64,
    /// Bytes from the start of the array to the access.
    pub(crate) offset: i64,
}

impl ArrayMap {
    /// Adds an array.
    pub(crate) fn add(&mut self, argument: usize, address: u64, bytes: u64) {
        self.arrays.push(Placed { argument, address, bytes });
    }

    /// The array that an address lies in or is nearest to.
    pub(crate) fn nearest(&self, address: u64) -> Option<Allocation> {
        let distance = |placed: &Placed| match address.checked_sub(placed.address) {
            Some(offset) => offset.saturating_sub(placed.bytes.saturating_sub(1)),
            None => placed.address - address,
        };
        let nearest = self.arrays.iter().min_by_key(|placed| distance(placed))?;
        (distance(nearest) < NEAR_BYTES).then(|| Allocation {
            argument: nearest.argument,
            bytes: nearest.bytes,
            offset: address.wrapping_sub(nearest.address).cast_signed(),
        })
    }
}

impl ArrayMap {
    /// Whether an access of so many bytes is where an index of 32 bits leads that wrapped below zero.
    pub(crate) fn is_wrapped_below(&self, address: u64, bytes: u32) -> bool {
        let range = u64::from(bytes) << 32;
        let is_below = |placed: &Placed| {
            let offset = address.checked_sub(placed.address);
            offset.is_some_and(|offset| offset < range && range - offset <= NEAR_BYTES)
        };
        self.arrays.iter().any(is_below)
    }
}

impl std::fmt::Display for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { argument, bytes, offset } = *self;
        let array = format!("argument {argument}, an array of {}", counted(bytes, "byte"));
        match u64::try_from(offset) {
            Err(_) => write!(f, "{} before {array}", counted(offset.unsigned_abs(), "byte")),
            Ok(0) if bytes > 0 => write!(f, "at the start of {array}"),
            Ok(offset) if offset < bytes => write!(f, "{} into {array}", counted(offset, "byte")),
            Ok(offset) if offset == bytes => write!(f, "just past the end of {array}"),
            Ok(offset) => write!(f, "{} past the end of {array}", counted(offset - bytes, "byte")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_by_the_nearest_array() {
        let mut map = ArrayMap::default();
        map.add(1, 0x10_0000, 64);
        map.add(3, 0x20_0000, 0);
        let told = |address| map.nearest(address).map(|found| found.to_string());
        assert_eq!(told(0x10_0008).as_deref(), Some("8 bytes into argument 1, an array of 64 bytes"));
        assert_eq!(told(0x10_0000).as_deref(), Some("at the start of argument 1, an array of 64 bytes"));
        assert_eq!(told(0x10_0040).as_deref(), Some("just past the end of argument 1, an array of 64 bytes"));
        assert_eq!(told(0xf_fffc).as_deref(), Some("4 bytes before argument 1, an array of 64 bytes"));
        assert_eq!(
            told(0x20_0004).as_deref(),
            Some("4 bytes past the end of argument 3, an array of 0 bytes")
        );
        assert_eq!((told(0), told(u64::MAX)), (None, None));
    }
}
