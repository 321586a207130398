//! `Selection`: which of several devices is used.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use kiln_driver::Uuid;

use crate::devices::{DeviceSummary, Devices};
use crate::error::{ProbeError, Result};

/// A choice among the devices of a platform.
///
/// ```
/// use kiln::probe::Selection;
///
/// assert_eq!("1".parse::<Selection>()?, Selection::Ordinal(1));
/// assert_eq!("best".parse::<Selection>()?, Selection::Best);
/// let uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
/// assert_eq!(uuid.parse::<Selection>()?.to_string(), uuid);
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Selection {
    /// The working device with the highest [score](DeviceSummary::score); then the one with more memory, then the
    /// first. Where it cannot be opened, the next one takes its place.
    #[default]
    Best,
    /// The device with that number, working or not.
    Ordinal(u32),
    /// The device with that identity.
    Uuid(Uuid),
}

impl Selection {
    /// The chosen device.
    ///
    /// # Errors
    /// No such device; or the chosen one does not answer.
    pub fn choose<'a>(&self, devices: &'a Devices) -> Result<&'a DeviceSummary> {
        match self {
            Self::Ordinal(ordinal) => devices.device(*ordinal),
            Self::Uuid(uuid) => devices
                .working()
                .find(|device| device.uuid == *uuid)
                .ok_or_else(|| devices.unknown(uuid.to_string())),
            Self::Best => best_by(devices, DeviceSummary::score),
        }
    }
}

/// The working device with the highest score; then the one with more memory, then the first.
///
/// # Errors
/// No device works; the error is that of the first one, or unknown if there is none at all.
pub fn best_by<K: Ord>(devices: &Devices, score: impl Fn(&DeviceSummary) -> K) -> Result<&DeviceSummary> {
    devices.working().max_by_key(|device| merit(device, &score)).ok_or_else(|| no_working(devices))
}

/// The working devices in the order of [`Selection::Best`], the best first.
pub fn ranked(devices: &Devices) -> Vec<&DeviceSummary> {
    let mut working: Vec<&DeviceSummary> = devices.working().collect();
    working.sort_by_key(|device| Reverse(merit(device, DeviceSummary::score)));
    working
}

/// Why there is no best device among these.
pub fn no_working(devices: &Devices) -> ProbeError {
    match devices.broken().next() {
        Some((_, error)) => error.clone().into(),
        None => devices.unknown("the best device".into()),
    }
}

/// What devices are compared by.
fn merit<K: Ord>(device: &DeviceSummary, score: impl Fn(&DeviceSummary) -> K) -> (K, u64, Reverse<u32>) {
    (score(device), device.total_memory_bytes, Reverse(device.ordinal))
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Best => f.write_str("best"),
            Self::Ordinal(ordinal) => ordinal.fmt(f),
            Self::Uuid(uuid) => uuid.fmt(f),
        }
    }
}

impl FromStr for Selection {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("best") {
            return Ok(Self::Best);
        }
        let ordinal = trimmed.parse().ok().map(Self::Ordinal);
        ordinal
            .or_else(|| parse_uuid(trimmed).map(Self::Uuid))
            .ok_or_else(|| ProbeError::UnknownSelection { text: text.into() })
    }
}

/// As [`Uuid`] prints itself; the dashes and the prefix may be missing.
fn parse_uuid(text: &str) -> Option<Uuid> {
    let digits = text.strip_prefix("GPU-").or_else(|| text.strip_prefix("MIG-")).unwrap_or(text);
    let nibbles: Vec<u8> = digits
        .chars()
        .filter(|digit| *digit != '-')
        .map(|digit| digit.to_digit(16).and_then(|nibble| u8::try_from(nibble).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (nibbles.len() == 32).then(|| bytes.try_into().ok().map(Uuid)).flatten()
}
