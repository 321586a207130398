//! Distances between an access and the memory it missed, in words.

/// `1 byte`, `4 bytes`.
pub fn byte_count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// Where an access begins that lies so many bytes past the end: `just past the end`, `4 bytes past the end`.
pub fn past_end(bytes: u64) -> String {
    if bytes == 0 { "just past the end".to_owned() } else { format!("{} past the end", byte_count(bytes)) }
}

/// How far an address in 32 or 64 bits lies below zero, if it does.
pub(crate) fn below_zero(address: u64) -> Option<u64> {
    let narrow = u32::try_from(address).map(|address| i64::from(address as i32)).unwrap_or(address as i64);
    (narrow < 0).then(|| narrow.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_and_none_have_words() {
        assert_eq!(
            [0, 1, 4].map(past_end),
            ["just past the end", "1 byte past the end", "4 bytes past the end"]
        );
    }

    #[test]
    fn negative_addresses_of_both_widths_lie_below_zero() {
        assert_eq!([u64::MAX - 3, 0xffff_fff8].map(below_zero), [Some(4), Some(8)]);
        assert_eq!([0, 0x7fff_ffff, 1 << 32].map(below_zero), [None; 3]);
    }
}
