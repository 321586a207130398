//! The first and the last message, which go through the socket.

use kiln_driver::DeviceInfo;

use super::VERSION;
use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer};
use crate::protocol::device_spec::DeviceSpec;

/// At the start of each of these messages, so that another program at the other end is recognised.
const MAGIC: u64 = u64::from_le_bytes(*b"kilniso1");

/// The client's part of the handshake. The shared memory comes with it, as a descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// How long the worker polls for work before it sleeps.
    pub(crate) spin_ns: u64,
    /// The device to open.
    pub(crate) device: DeviceSpec,
}

/// The worker's part of the handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Welcome {
    /// The device is open.
    Ready(Box<DeviceInfo>),
    /// There is no device, and why.
    Refused {
        /// Whether there is no such device, as opposed to one that does not work.
        absent: bool,
        text: String,
    },
}

/// The last message of a worker that was told to exit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Farewell {
    /// What the device found wrong with its use; empty if nothing.
    pub(crate) findings: String,
}

fn put_head(to: &mut Writer) {
    to.u64(MAGIC);
    to.u32(VERSION);
}

fn take_head(from: &mut Reader<'_>) -> Result<(), Malformed> {
    if from.u64()? != MAGIC {
        return Err(Malformed { what: "a handshake of another program" });
    }
    if from.u32()? != VERSION {
        return Err(Malformed { what: "another version of the protocol" });
    }
    Ok(())
}

impl Put for Hello {
    fn put(&self, to: &mut Writer) {
        put_head(to);
        to.u64(self.spin_ns);
        to.slice(self.device.name().as_bytes());
        to.slice(self.device.argument());
    }
}

impl Take for Hello {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        take_head(from)?;
        let (spin_ns, name, argument) = (from.u64()?, from.text()?, from.slice()?);
        Ok(Self { spin_ns, device: DeviceSpec::custom(name, argument) })
    }
}

impl Put for Welcome {
    fn put(&self, to: &mut Writer) {
        put_head(to);
        match self {
            Self::Ready(info) => {
                to.u8(0);
                info.put(to);
            }
            Self::Refused { absent, text } => {
                to.u8(1);
                absent.put(to);
                to.text(text, 8 << 10);
            }
        }
    }
}

impl Take for Welcome {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        take_head(from)?;
        match from.u8()? {
            0 => Ok(Self::Ready(Box::new(Take::take(from)?))),
            1 => Ok(Self::Refused { absent: Take::take(from)?, text: Take::take(from)? }),
            _ => Err(Malformed { what: "an unknown answer to the handshake" }),
        }
    }
}

impl Put for Farewell {
    fn put(&self, to: &mut Writer) {
        put_head(to);
        to.text(&self.findings, 16 << 10);
    }
}

impl Take for Farewell {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        take_head(from)?;
        Ok(Self { findings: Take::take(from)? })
    }
}
