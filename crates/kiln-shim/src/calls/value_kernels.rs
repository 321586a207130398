//! The kernels that write values to memory and wait for them, in the order of a stream.
//!
//! A write is atomic, and so is the look of a wait: they do not race with each other. A wait holds back its stream alone, until memory has the
//! value; what follows it comes after the work whose value it saw.

use std::sync::atomic::Ordering;

use kiln_driver::{Access, Code, Driver, FunctionId, Image};
use kiln_sim::{HostKernel, KernelFault, KernelLibrary, LaunchContext, LaunchReadiness, MemoryView};

use crate::boundary::{Answer, OrCode};
use crate::calls::interprocess_event;

const LIBRARY: &str = "values in memory";
const WRITE: &str = "stream_write_value";
const WAIT: &str = "stream_wait_value";
const WAIT_FOR_PROCESS: &str = "stream_wait_interprocess_event";

/// How a value in memory is compared with the one that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    /// At least, on a circle: a difference of less than half of all values.
    AtLeast,
    Equal,
    /// A bit of both is set.
    And,
    /// A bit is set in neither.
    Nor,
}

impl Comparison {
    /// The comparison with a number of the API.
    pub(crate) fn of(number: u32) -> Answer<Self> {
        Ok(match number {
            0 => Self::AtLeast,
            1 => Self::Equal,
            2 => Self::And,
            3 => Self::Nor,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Whether it holds for values of so many bytes.
    fn holds(self, bytes: u64, is: u64, value: u64) -> bool {
        let mask = if bytes == 8 { u64::MAX } else { u64::from(u32::MAX) };
        let sign = 1 << (8 * bytes - 1);
        match self {
            Self::AtLeast => is.wrapping_sub(value) & sign == 0,
            Self::Equal => is == value,
            Self::And => is & value != 0,
            Self::Nor => !(is | value) & mask != 0,
        }
    }

    fn words(self, value: u64) -> String {
        match self {
            Self::AtLeast => format!("at least {value}"),
            Self::Equal => value.to_string(),
            Self::And => format!("a number with a bit of {value:#x}"),
            Self::Nor => format!("a number without a bit that {value:#x} does not have either"),
        }
    }
}

/// The kernels on a device.
#[derive(Clone, Copy)]
pub(crate) struct ValueKernels {
    pub(crate) write: FunctionId,
    pub(crate) wait: FunctionId,
    pub(crate) wait_for_process: FunctionId,
}

impl ValueKernels {
    pub(crate) fn load(driver: &dyn Driver) -> Answer<Self> {
        let module = driver.load(&Image::HostKernels(LIBRARY)).or_code()?;
        let of = |name: &str| driver.function(module, name).or_code().map(|function| function.id);
        Ok(Self { write: of(WRITE)?, wait: of(WAIT)?, wait_for_process: of(WAIT_FOR_PROCESS)? })
    }
}

/// All of them.
pub(crate) fn library() -> KernelLibrary {
    let write = HostKernel::new(WRITE).pointer(Access::ReadWrite).value::<u64>().value::<u64>().body(write);
    let wait = HostKernel::new(WAIT)
        .pointer(Access::ReadWrite)
        .value::<u64>()
        .value::<u64>()
        .value::<u64>()
        .when(readiness)
        .body(look);
    let process = HostKernel::new(WAIT_FOR_PROCESS).value::<u64>().value::<u64>().when(|arguments, _| {
        match words(arguments) {
            Some([event, number]) => interprocess_event::readiness(event, number),
            None => LaunchReadiness::Ready,
        }
    });
    KernelLibrary::new(LIBRARY).kernel(write).kernel(wait).kernel(process)
}

fn write(launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
    let (address, value) = (launch.address(0)?, launch.value::<u64>(1)?);
    // What lay there is not looked at.
    launch.reads_nothing();
    match launch.value::<u64>(2)? {
        8 => launch.port().atomic_u64(address)?.store(value, Ordering::Release),
        _ => launch.port().atomic_u32(address)?.store(value as u32, Ordering::Release),
    }
    Ok(())
}

/// Reads what was waited for, so that the checks see it.
fn look(launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
    let address = launch.address(0)?;
    match launch.value::<u64>(2)? {
        8 => drop(launch.port().atomic_u64(address)?),
        _ => drop(launch.port().atomic_u32(address)?),
    }
    Ok(())
}

fn readiness(arguments: &[u8], memory: &MemoryView) -> LaunchReadiness {
    let Some([address, value, bytes, number]) = words(arguments) else { return LaunchReadiness::Ready };
    let Ok(comparison) = Comparison::of(number as u32) else { return LaunchReadiness::Ready };
    let mut port = memory.port();
    let is = match bytes {
        8 => port.load_u64(address),
        _ => port.load_u32(address).map(u64::from),
    };
    match is {
        Ok(is) if !comparison.holds(bytes, is, value) => LaunchReadiness::Waiting(format!(
            "it waits until the {bytes} bytes at {address:#x} are {}; they are {is}",
            comparison.words(value)
        )),
        // Without memory there the launch fails.
        Ok(_) | Err(_) => LaunchReadiness::Ready,
    }
}

/// The packed arguments of a launch.
fn words<const COUNT: usize>(arguments: &[u8]) -> Option<[u64; COUNT]> {
    let words: Vec<u64> = arguments.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::Comparison::{And, AtLeast, Equal, Nor};

    #[test]
    fn comparisons_are_those_of_the_api() {
        let holds = [
            (AtLeast, 4, 7, 7),
            (AtLeast, 4, 8, 7),
            (AtLeast, 4, 0, 0xffff_ffff),
            (AtLeast, 4, 7, 0x8000_0010),
            (AtLeast, 8, 0, u64::MAX),
            (Equal, 4, 5, 5),
            (And, 8, 0x1_0000_0000, 0x1_0000_0000),
            (Nor, 4, 0xffff_fffe, 0),
            (Nor, 8, 0xffff_ffff, 0),
        ];
        for (comparison, bytes, is, value) in holds {
            assert!(comparison.holds(bytes, is, value), "{comparison:?} of {bytes}: {is:#x} {value:#x}");
        }
        let fails = [
            (AtLeast, 4, 6, 7),
            (AtLeast, 4, 0x8000_0010, 7),
            (AtLeast, 8, 6, 7),
            (Equal, 8, 5, 6),
            (And, 4, 5, 2),
            (Nor, 4, 0xffff_fffe, 1),
            (Nor, 8, u64::MAX, 0),
        ];
        for (comparison, bytes, is, value) in fails {
            assert!(!comparison.holds(bytes, is, value), "{comparison:?} of {bytes}: {is:#x} {value:#x}");
        }
    }
}
