//! Versions of libraries, from names or from the library itself.

use std::ffi::c_int;
use std::fmt;
use std::path::Path;

use kiln_driver::Version;

use crate::dynamic_library::{self, RTLD_LAZY, RTLD_NOLOAD};

/// The version of a library, as much of it as is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LibraryVersion {
    /// Before the first point.
    pub major: u32,
    /// After it, if known.
    pub minor: Option<u32>,
    /// After the second point, if known.
    pub patch: Option<u32>,
}

/// The entry point that tells a version, by its shape.
#[derive(Clone, Copy, Debug)]
pub(super) enum VersionCall {
    /// Major and minor through two pointers.
    Pair(&'static str),
    /// One part at a time, by its number.
    Property(&'static str),
    /// One number, such as 22703 for 2.27.3.
    Decimal(&'static str),
    /// None: its number is not that of CUDA.
    None,
}

impl LibraryVersion {
    /// From text such as `13.0.88` or `12.4.5.8`; what follows the third number does not matter.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map_while(|part| part.parse().ok());
        Some(Self { major: parts.next()?, minor: parts.next(), patch: parts.next() })
    }

    /// The part of a file name behind `.so.`.
    pub(super) fn of_file_name(name: &str) -> Option<Self> {
        Self::parse(name.split_once(".so.")?.1)
    }

    /// From a number such as 22703 for 2.27.3. cuDNN before 9 and NCCL before 2.9 counted in thousands: 8907 is 8.9.7.
    pub(crate) fn of_number(number: u32) -> Self {
        let (major, minor) = match number {
            0..10_000 => (number / 1000, number / 100 % 10),
            _ => (number / 10_000, number / 100 % 100),
        };
        Self { major, minor: Some(minor), patch: Some(number % 100) }
    }

    /// Whether it is older than another for certain: a part that is not known may be anything.
    pub fn is_before(self, other: Self) -> bool {
        let parts =
            [(Some(self.major), Some(other.major)), (self.minor, other.minor), (self.patch, other.patch)];
        for (own, other) in parts {
            match (own, other) {
                (Some(own), Some(other)) if own == other => {}
                (Some(own), Some(other)) => return own < other,
                _ => return false,
            }
        }
        false
    }

    /// Asks a library that the process has loaded already.
    pub(super) fn of_loaded(path: &Path, call: VersionCall) -> Option<Self> {
        // SAFETY: the flag keeps the loader from loading anything, so no initialiser runs.
        let library = unsafe { dynamic_library::open(path, RTLD_LAZY | RTLD_NOLOAD) }.ok()?;
        match call {
            VersionCall::None => None,
            VersionCall::Pair(symbol) => {
                // SAFETY: the signature is the one NVRTC's header declares; it writes two integers.
                let ask =
                    unsafe { library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(symbol) }
                        .ok()?;
                let (mut major, mut minor) = (0, 0);
                // SAFETY: both out-parameters are live locals.
                (unsafe { ask(&mut major, &mut minor) } == 0).then_some(())?;
                Some(Self { major: part(major)?, minor: part(minor), patch: None })
            }
            VersionCall::Property(symbol) => {
                // SAFETY: the signature is the one these libraries' headers declare: a part's number, and where to write.
                let ask = unsafe { library.get::<unsafe extern "C" fn(c_int, *mut c_int) -> c_int>(symbol) }
                    .ok()?;
                let number = |which: c_int| {
                    let mut value = 0;
                    // SAFETY: the out-parameter is a live local.
                    (unsafe { ask(which, &mut value) } == 0).then(|| part(value)).flatten()
                };
                Some(Self { major: number(0)?, minor: number(1), patch: number(2) })
            }
            VersionCall::Decimal(symbol) => {
                // SAFETY: the signature is the one NCCL's header declares; it writes one integer.
                let ask = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(symbol) }.ok()?;
                let mut value = 0;
                // SAFETY: the out-parameter is a live local.
                (unsafe { ask(&mut value) } == 0).then_some(())?;
                part(value).map(Self::of_number)
            }
        }
    }
}

impl From<Version> for LibraryVersion {
    fn from(Version { major, minor }: Version) -> Self {
        Self { major, minor: Some(minor), patch: None }
    }
}

impl fmt::Display for LibraryVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.major)?;
        [self.minor, self.patch].into_iter().map_while(|part| part).try_for_each(|part| write!(f, ".{part}"))
    }
}

fn part(value: c_int) -> Option<u32> {
    u32::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_as_much_as_they_say() {
        let version = |name: &str| LibraryVersion::of_file_name(name).map(|version| version.to_string());
        assert_eq!(version("libnvrtc.so.13").as_deref(), Some("13"));
        assert_eq!(version("libcublas.so.12.4.5.8").as_deref(), Some("12.4.5"));
        assert_eq!(version("libcufft.so.11.2").as_deref(), Some("11.2"));
        assert_eq!(version("libcufft.so"), None);
        assert_eq!(version("libcufft.so.x"), None);
    }

    #[test]
    fn older_is_said_of_what_is_known_alone() {
        let before = |one: &str, other: &str| {
            LibraryVersion::parse(one).unwrap().is_before(LibraryVersion::parse(other).unwrap())
        };
        assert!(
            before("8.9.7", "9.0")
                && before("8", "9.0")
                && before("11.4.1", "11.4.2")
                && before("2.17", "2.18")
        );
        assert!(!before("9", "9.0") && !before("11.4", "11.4.2") && !before("11", "11.4.2"));
        assert!(!before("9.0", "9.0") && !before("12.1", "11.4.2") && !before("2.27.3", "2.18"));
    }

    #[test]
    fn numbers_are_read_as_each_time_wrote_them() {
        let text = |number| LibraryVersion::of_number(number).to_string();
        assert_eq!(
            [22703, 21803, 2804, 8907, 90100, 91002].map(text),
            ["2.27.3", "2.18.3", "2.8.4", "8.9.7", "9.1.0", "9.10.2"]
        );
    }

    #[test]
    fn newer_is_greater() {
        let parse = |text| LibraryVersion::parse(text).unwrap();
        assert!(
            parse("13") > parse("12.9.1") && parse("12.10") > parse("12.9") && parse("12.9") > parse("12")
        );
    }
}
