//! The secret part of the page's address.

use std::fmt;
use std::hint::black_box;
use std::io;

/// Random bytes of a token.
const BYTES: usize = 16;

/// The secret part of the page's address: 128 random bits, in hexadecimal digits.
#[derive(Clone)]
pub(crate) struct AccessToken(String);

impl AccessToken {
    /// A new one.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub(crate) fn random() -> io::Result<Self> {
        let bytes = random_bytes()?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Whether a text is the token. How long that takes says nothing about where they differ.
    pub(crate) fn is(&self, text: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), text.as_bytes());
        let mut difference = u8::from(own.len() != other.len());
        for (at, byte) in own.iter().enumerate() {
            difference |= byte ^ black_box(other.get(at).copied().unwrap_or(0));
        }
        black_box(difference) == 0
    }
}

impl fmt::Display for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(unix)]
fn random_bytes() -> io::Result<[u8; BYTES]> {
    use std::io::Read;
    let mut bytes = [0; BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The standard library takes the keys of its hash maps from the operating system's random numbers.
#[cfg(not(unix))]
fn random_bytes() -> io::Result<[u8; BYTES]> {
    use std::hash::{BuildHasher, RandomState};
    let mut bytes = [0; BYTES];
    for (number, part) in (0_u64..).zip(bytes.chunks_mut(8)) {
        let random = RandomState::new().hash_one(number).to_le_bytes();
        part.iter_mut().zip(random).for_each(|(to, from)| *to = from);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = AccessToken::random().unwrap();
        let text = token.to_string();
        assert_eq!(text.len(), 2 * BYTES);
        assert!(token.is(&text));
        assert!(!token.is("") && !token.is(&text[1..]) && !token.is(&format!("{text}0")));
        for at in 0..text.len() {
            let mut other = text.clone();
            let digit = if &text[at..=at] == "0" { "1" } else { "0" };
            other.replace_range(at..=at, digit);
            assert!(!token.is(&other));
        }
        assert_ne!(text, AccessToken::random().unwrap().to_string());
    }
}
