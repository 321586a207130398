//! The name of an entry: a digest of everything that went into it.

use std::fmt;

/// Changes whenever what is stored under a key, or how the key is made, changes meaning.
pub(super) const FORMAT_VERSION: u32 = 3;

/// A digest of everything that went into a piece of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key whose bytes these are.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key that is written so, in hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Collects what goes into a key. Each part is named and its length counted, so that no two lists of parts look the same.
///
/// ```
/// use kiln::code_cache::KeyBuilder;
///
/// let one = KeyBuilder::new().part("source", b"ab").part("options", b"c").finish();
/// let other = KeyBuilder::new().part("source", b"a").part("options", b"bc").finish();
/// assert_ne!(one, other);
/// ```
#[derive(Clone, Debug)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// A key of this version of the format, with no parts yet.
    pub fn new() -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"kiln compiled code");
        hasher.update(&FORMAT_VERSION.to_le_bytes());
        Self(hasher)
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, name: &str, value: &[u8]) -> Self {
        for each in [name.as_bytes(), value] {
            self.0.update(&(each.len() as u64).to_le_bytes());
            self.0.update(each);
        }
        self
    }

    /// The key.
    pub fn finish(self) -> Key {
        Key(*self.0.finalize().as_bytes())
    }
}

impl Default for KeyBuilder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_from_its_text() {
        let key = KeyBuilder::new().part("source", b"kernel").finish();
        assert_eq!(Key::parse(&key.to_string()), Some(key));
        assert_eq!(Key::parse("12"), None);
        assert_eq!(Key::parse(&"g".repeat(64)), None);
        assert_eq!(Key::parse(&"\u{e9}".repeat(32)), None);
    }
}
