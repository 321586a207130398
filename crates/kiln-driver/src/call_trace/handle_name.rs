//! Handles, addresses and bytes as a trace writes them.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::handle::{DeviceKey, Handle, Kind, Object, kind};
use crate::memory::DeviceAddress;

const OTHER: &str = "other/";
const KINDS: [&str; 9] = [
    kind::Reservation::NAME,
    kind::Pages::NAME,
    kind::Memory::NAME,
    kind::Host::NAME,
    kind::Stream::NAME,
    kind::Event::NAME,
    kind::Module::NAME,
    kind::Function::NAME,
    kind::Graph::NAME,
];

/// A handle without its device: kind, slot and generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Name {
    kind: &'static str,
    slot: u32,
    generation: u32,
    /// Whether another device gave it out.
    other: bool,
}

impl Name {
    pub(crate) fn of<K: Kind>(handle: Handle<K>, here: DeviceKey) -> Self {
        let other = handle.device() != here;
        Self { kind: K::NAME, slot: handle.slot(), generation: handle.generation(), other }
    }

    pub(crate) fn of_object(object: Object, here: DeviceKey) -> Self {
        match object {
            Object::Reservation(id) => Self::of(id, here),
            Object::Pages(id) => Self::of(id, here),
            Object::Host(id) => Self::of(id, here),
            Object::Stream(id) => Self::of(id, here),
            Object::Event(id) => Self::of(id, here),
            Object::Module(id) => Self::of(id, here),
            Object::Graph(id) => Self::of(id, here),
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        self.kind
    }

    pub(crate) fn is_other(self) -> bool {
        self.other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = if self.other { OTHER } else { "" };
        write!(f, "{other}{}:{}.{}", self.kind, self.slot, self.generation)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no handle; one looks like `stream:0.1`");
        let (other, rest) = text.strip_prefix(OTHER).map_or((false, text), |rest| (true, rest));
        let (kind, numbers) = rest.split_once(':').ok_or_else(bad)?;
        let (slot, generation) = numbers.split_once('.').ok_or_else(bad)?;
        let kind = KINDS.into_iter().find(|known| *known == kind).ok_or_else(bad)?;
        let (slot, generation) = slot.parse().ok().zip(generation.parse().ok()).ok_or_else(bad)?;
        Ok(Self { kind, slot, generation, other })
    }
}

/// A device address, in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Address(pub(crate) u64);

impl From<DeviceAddress> for Address {
    fn from(address: DeviceAddress) -> Self {
        Self(address.0)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        format!("{:#x}", address.0)
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.map(Self).ok_or_else(|| format!("`{text}` is no address; one looks like `0x7f0000000000`"))
    }
}

/// Bytes, two hexadecimal digits each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl From<Hex> for String {
    fn from(bytes: Hex) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        bytes
            .0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| DIGITS[usize::from(digit)] as char)
            .collect()
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        });
        pairs.collect::<Option<_>>().map(Self).ok_or_else(|| format!("`{text}` are no hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_addresses_come_back_as_they_went() {
        let all: Vec<u8> = (0..=255).collect();
        let text = String::from(Hex(all.clone()));
        assert_eq!((text.len(), Hex::try_from(text).unwrap().0), (512, all));
        assert!(Hex::try_from("abc".to_string()).is_err() && Hex::try_from("zz".to_string()).is_err());
        for address in [0, 1, 0x7f00_0000_0000, u64::MAX] {
            assert_eq!(Address::try_from(String::from(Address(address))).unwrap(), Address(address));
        }
        for name in ["stream:0.1", "other/memory:4294967295.7"] {
            assert_eq!(name.parse::<Name>().unwrap().to_string(), name);
        }
    }
}
