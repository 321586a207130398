//! An entry of the disk cache as bytes.
//!
//! ```text
//! magic 8 | format 4 | kind 4 | key 32 | compile time 8 | kernels length 8 | payload length 8 | checksum 32 | kernels | payload
//! ```
//!
//! All numbers are little-endian; times are nanoseconds. The names of kernels are lines of text. The checksum covers everything but itself.

use std::time::Duration;

use super::key::{FORMAT_VERSION, Key};

const MAGIC: &[u8; 8] = b"kilncode";
const KIND_AT: usize = 12;
const KEY_AT: usize = 16;
const COMPILE_TIME_AT: usize = 48;
const KERNELS_LENGTH_AT: usize = 56;
const LENGTH_AT: usize = 64;
const CHECKSUM_AT: usize = 72;
/// Bytes before the names of the kernels.
pub(super) const HEADER_BYTES: usize = CHECKSUM_AT + 32;

/// Compiled code as the cache keeps it.
///
/// ```
/// use std::time::Duration;
/// use kiln::code_cache::{CacheEntry, EntryKind};
///
/// let entry = CacheEntry {
///     kind: EntryKind::Ptx,
///     compile_time: Duration::from_millis(30),
///     kernels: vec!["axpy".into()],
///     payload: b"code".to_vec(),
/// };
/// assert_eq!(entry.kind.name(), "ptx");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// What it holds.
    pub kind: EntryKind,
    /// How long it took to make, and so how much time a hit saves.
    pub compile_time: Duration,
    /// The names of its kernels, for lists.
    pub kernels: Vec<String>,
    /// The code.
    pub payload: Vec<u8>,
}

/// What an entry holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// Machine code for one architecture, with the PTX it came from.
    CubinWithPtx,
    /// Machine code for one architecture; the PTX it came from is the program's own.
    Cubin,
    /// Which algorithm of a library was the fastest for an operation.
    Algorithm,
}

impl EntryKind {
    fn number(self) -> u32 {
        match self {
            Self::Ptx => 1,
            Self::CubinWithPtx => 2,
            Self::Cubin => 3,
            Self::Algorithm => 4,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ptx),
            2 => Some(Self::CubinWithPtx),
            3 => Some(Self::Cubin),
            4 => Some(Self::Algorithm),
            _ => None,
        }
    }

    /// One word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::CubinWithPtx | Self::Cubin => "cubin",
            Self::Algorithm => "algorithm",
        }
    }
}

/// Why a file is no entry that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EntryDamage {
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
pub(super) fn encode(key: &Key, entry: &CacheEntry) -> Vec<u8> {
    let CacheEntry { kind, compile_time, kernels, payload } = entry;
    let nanoseconds = u64::try_from(compile_time.as_nanos()).unwrap_or(u64::MAX);
    let kernels = kernels.join("\n");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + kernels.len() + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&kind.number().to_le_bytes());
    bytes.extend_from_slice(key.bytes());
    bytes.extend_from_slice(&nanoseconds.to_le_bytes());
    bytes.extend_from_slice(&(kernels.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&checksum(&bytes, &[kernels.as_bytes(), payload]));
    bytes.extend_from_slice(kernels.as_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The entry that these bytes are, if it is that of a key and whole.
pub(super) fn decode(key: &Key, bytes: &[u8]) -> Result<CacheEntry, EntryDamage> {
    let header = Header::read(bytes)?;
    let rest = bytes.get(HEADER_BYTES..).ok_or(EntryDamage::Length)?;
    let kernels_length = usize::try_from(header.kernels_length).map_err(|_| EntryDamage::Length)?;
    let (kernels, payload) = rest.split_at_checked(kernels_length).ok_or(EntryDamage::Length)?;
    if header.length != payload.len() as u64 {
        return Err(EntryDamage::Length);
    }
    if header.checksum != checksum(&bytes[..CHECKSUM_AT], &[kernels, payload]) {
        return Err(EntryDamage::Checksum);
    }
    if header.key != *key {
        return Err(EntryDamage::Key);
    }
    let kind = EntryKind::from_number(header.kind).ok_or(EntryDamage::Format)?;
    let kernels = read_kernels(kernels).ok_or(EntryDamage::Format)?;
    Ok(CacheEntry { kind, compile_time: header.compile_time, kernels, payload: payload.to_vec() })
}

/// The names of kernels from their lines.
pub(super) fn read_kernels(lines: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(lines).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// What stands before the names of the kernels. It is not known to be right before the checksum was looked at.
pub(super) struct Header {
    kind: u32,
    key: Key,
    pub(super) compile_time: Duration,
    /// Bytes of the names of the kernels.
    pub(super) kernels_length: u64,
    length: u64,
    checksum: [u8; 32],
}

impl Header {
    /// Reads what this version of kiln wrote.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, EntryDamage> {
        // The headers of other versions may be shorter than this one's.
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(EntryDamage::Length)?;
        if magic != MAGIC {
            return Err(EntryDamage::Magic);
        }
        match rest.first_chunk::<4>() {
            Some(format) if u32::from_le_bytes(*format) == FORMAT_VERSION => {}
            Some(_) => return Err(EntryDamage::Format),
            None => return Err(EntryDamage::Length),
        }
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(EntryDamage::Length)?;
        Ok(Self {
            kind: u32::from_le_bytes(field(header, KIND_AT)),
            key: Key::from_bytes(field(header, KEY_AT)),
            compile_time: Duration::from_nanos(u64::from_le_bytes(field(header, COMPILE_TIME_AT))),
            kernels_length: u64::from_le_bytes(field(header, KERNELS_LENGTH_AT)),
            length: u64::from_le_bytes(field(header, LENGTH_AT)),
            checksum: field(header, CHECKSUM_AT),
        })
    }
}

/// A field of the header; every place and size used here lies inside of it.
fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|byte| header[at + byte])
}

fn checksum(header: &[u8], rest: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header);
    for part in rest {
        hasher.update(part);
    }
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
        let compile_time = Duration::from_nanos(0x0123_4567_89ab);
        let kernels = vec!["axpy".to_owned(), "scale<float>".to_owned()];
        let whole =
            CacheEntry { kind: EntryKind::Ptx, compile_time, kernels, payload: b"some code".to_vec() };
        let bytes = encode(&key(b"a"), &whole);
        assert_eq!(decode(&key(b"a"), &bytes), Ok(whole));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&key(b"a"), &damaged).is_err(), "byte {at}");
            assert!(decode(&key(b"a"), &bytes[..at]).is_err(), "cut at {at}");
        }
        assert_eq!(decode(&key(b"b"), &bytes), Err(EntryDamage::Key));
        assert!(decode(&key(b"a"), &[bytes, vec![0]].concat()).is_err());
    }
}
