//! An entry as bytes.
//!
//! ```text
//! magic 8 | format 4 | kind 4 | key 32 | payload length 8 | checksum of all before and the payload 32 | payload
//! ```

use super::key::{FORMAT_VERSION, Key};

const MAGIC: &[u8; 8] = b"kilncode";
const CHECKSUM_AT: usize = 56;
const HEADER_BYTES: usize = CHECKSUM_AT + 32;

/// What an entry holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// Machine code for one architecture, with the PTX it came from.
    CubinWithPtx,
}

impl EntryKind {
    fn number(self) -> u32 {
        match self {
            Self::Ptx => 1,
            Self::CubinWithPtx => 2,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ptx),
            2 => Some(Self::CubinWithPtx),
            _ => None,
        }
    }

    /// One word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::CubinWithPtx => "cubin",
        }
    }
}

/// Why a file is no entry that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// It ends too early or too late.
    #[error("it is cut off, or has bytes behind its end")]
    Length,
    /// It does not begin as an entry does.
    #[error("it is no entry of this cache")]
    Magic,
    /// Another version of kiln wrote it.
    #[error("another version of kiln wrote it")]
    Format,
    /// It is the entry of another key.
    #[error("it belongs to another key")]
    Key,
    /// Some byte is not what was written.
    #[error("its checksum does not match")]
    Checksum,
}

/// The bytes of an entry.
pub(super) fn encode(key: &Key, kind: EntryKind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&kind.number().to_le_bytes());
    bytes.extend_from_slice(key.bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&checksum(&bytes, payload));
    bytes.extend_from_slice(payload);
    bytes
}

/// The kind and payload of an entry, if it is that of a key and whole.
pub(super) fn decode<'a>(key: &Key, bytes: &'a [u8]) -> Result<(EntryKind, &'a [u8]), Damage> {
    let (header, payload) = bytes.split_at_checked(HEADER_BYTES).ok_or(Damage::Length)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if &header[..8] != MAGIC {
        return Err(Damage::Magic);
    }
    if word(8) != FORMAT_VERSION {
        return Err(Damage::Format);
    }
    let length = u64::from(word(48)) | u64::from(word(52)) << 32;
    if length != payload.len() as u64 {
        return Err(Damage::Length);
    }
    if header[CHECKSUM_AT..] != checksum(&header[..CHECKSUM_AT], payload) {
        return Err(Damage::Checksum);
    }
    if &header[16..48] != key.bytes() {
        return Err(Damage::Key);
    }
    let kind = EntryKind::from_number(word(12)).ok_or(Damage::Format)?;
    Ok((kind, payload))
}

fn checksum(header: &[u8], payload: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyBuilder;
    use super::*;

    fn key(text: &[u8]) -> Key {
        KeyBuilder::new().part("source", text).finish()
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let entry = encode(&key(b"a"), EntryKind::Ptx, b"some code");
        assert_eq!(decode(&key(b"a"), &entry), Ok((EntryKind::Ptx, &b"some code"[..])));
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&key(b"a"), &damaged).is_err(), "byte {at}");
            assert!(decode(&key(b"a"), &entry[..at]).is_err(), "cut at {at}");
        }
        assert_eq!(decode(&key(b"b"), &entry), Err(Damage::Key));
        assert!(decode(&key(b"a"), &[entry, vec![0]].concat()).is_err());
    }
}
