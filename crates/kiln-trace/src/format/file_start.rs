//! The first bytes of a recording.

use super::checksum::checksum;

/// The version of the format that this crate writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 10;

/// How many bytes the start has.
pub(crate) const START_BYTES: usize = 16;

const MARK: [u8; 8] = *b"KILNREC\n";

/// What the first bytes of a file say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileStart {
    /// A recording of this version.
    Known,
    /// A recording of another version.
    Other(u32),
    /// Too short, and what is there could be the start of a recording.
    Cut,
    /// The mark is there and the checksum is not right.
    Damaged,
    /// Something else.
    Foreign,
}

impl FileStart {
    /// The bytes to write.
    pub(crate) fn bytes() -> [u8; START_BYTES] {
        let mut bytes = [0; START_BYTES];
        let version = FORMAT_VERSION.to_le_bytes();
        let sum = checksum(&[&MARK, &version]).to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(MARK.iter().chain(&version).chain(&sum)) {
            *to = *from;
        }
        bytes
    }

    /// Reads up to [`START_BYTES`].
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mark = bytes.get(..MARK.len()).unwrap_or(bytes);
        if !MARK.starts_with(mark) {
            return Self::Foreign;
        }
        let Some((start, rest)) = bytes.split_at_checked(MARK.len() + 4) else { return Self::Cut };
        let number = |at: usize| start.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        let (Some(version), Some(sum)) =
            (number(MARK.len()), rest.get(..4).and_then(|bytes| bytes.try_into().ok()))
        else {
            return Self::Cut;
        };
        match (u32::from_le_bytes(version), u32::from_le_bytes(sum) == checksum(&[start])) {
            (_, false) => Self::Damaged,
            (FORMAT_VERSION, true) => Self::Known,
            (version, true) => Self::Other(version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_known_and_every_other_one_is_told_apart() {
        let start = FileStart::bytes();
        assert_eq!(FileStart::read(&start), FileStart::Known);
        for cut in 0..START_BYTES {
            assert_eq!(FileStart::read(&start[..cut]), FileStart::Cut);
        }
        assert_eq!(FileStart::read(b"{\"traceEvents\":[]}"), FileStart::Foreign);
        let mut other = start;
        other[8] = 11;
        assert_eq!(FileStart::read(&other), FileStart::Damaged);
        let sum = checksum(&[&other[..12]]).to_le_bytes();
        other[12..].copy_from_slice(&sum);
        assert_eq!(FileStart::read(&other), FileStart::Other(11));
    }
}
