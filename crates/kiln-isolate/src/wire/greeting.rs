//! The first and the last messages, which go through the socket.

use kiln_driver::DeviceInfo;

use super::VERSION;
use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer};

/// In front of every greeting, so that a stranger on the other end is known at once.
const MAGIC: u64 = u64::from_le_bytes(*b"kilniso1");

/// What a client says first; the shared memory comes along.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// How long the worker looks for work before it sleeps.
    pub(crate) spin_ns: u64,
    /// Which kind of device to open.
    pub(crate) backend: String,
    /// Which one, in the words of that kind.
    pub(crate) argument: Vec<u8>,
}

/// What a worker answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Welcome {
    /// The device is open.
    Ready(Box<DeviceInfo>),
    /// There is none, and why.
    Refused {
        /// Whether there simply is no such device, as opposed to one that does not work.
        absent: bool,
        text: String,
    },
}

/// What a worker says last, if it ends because it was told to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Farewell {
    /// What the device had to say against its use; empty if nothing.
    pub(crate) findings: String,
}

fn put_head(to: &mut Writer) {
    to.u64(MAGIC);
    to.u32(VERSION);
}

fn take_head(from: &mut Reader<'_>) -> Result<(), Malformed> {
    if from.u64()? != MAGIC {
        return Err(Malformed { what: "a greeting of another program" });
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
        self.backend.put(to);
        to.slice(&self.argument);
    }
}

impl Take for Hello {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        take_head(from)?;
        Ok(Self { spin_ns: from.u64()?, backend: Take::take(from)?, argument: from.slice()?.to_vec() })
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
            _ => Err(Malformed { what: "an unknown answer to a greeting" }),
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
