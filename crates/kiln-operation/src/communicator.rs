//! A communicator, as one of its ranks loads it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::OperationError;
use crate::field::{Field, Fields};

const NAME: &str = "communicator";
const KEYS: &[&str] = &["id", "rank", "size", "deadline_ms"];

/// The function of a communicator that ends its rank. It takes no arguments, and a launch of it takes effect when it is submitted: what the rank has queued
/// ends without having been done, and it takes nothing more. The device goes on.
///
/// It is no variable either: looking it up as one is unsupported while an abort is under way, and not found otherwise.
pub const ABORT: &str = "abort";

/// How the name of a function begins that reduces on one device what all ranks brought, where their devices are simulated and in several processes. The name of the collective
/// follows. It takes the blocks of all ranks in one buffer, in their order, a buffer for the result, and the count.
pub const FOLD: &str = "fold ";

/// How the name of a function begins that reads what one rank brings, where the devices are simulated and in several processes. The name of the collective follows. It takes the
/// buffer, another one of the same size that it copies it to, and the number of bytes.
pub const BRING: &str = "bring ";

/// A variable that no communicator has. Looking it up says how a communicator is: unsupported while its ranks have not all joined, refused by the library that failed, or
/// not found.
pub const FAILURE: &str = "failure";

/// A variable that no communicator has. Looking it up tells a simulated machine that the program has given the rank up: it calls nothing more, and what it has called goes on. So the ranks that wait for a
/// later call are told at once, and not when the work is done that keeps the rank loaded. It is not found.
pub const DEPARTURE: &str = "departure";

/// Names one communicator among all of a job. All ranks are given the same; NCCL's ids have the same size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunicatorId([u8; Self::BYTES]);

impl CommunicatorId {
    /// Bytes of an id.
    pub const BYTES: usize = 128;

    /// An id of these bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Eight digits that tell it from others in messages.
    pub fn short(&self) -> String {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = self.0.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
    }
}

impl TryFrom<&[u8]> for CommunicatorId {
    type Error = OperationError;

    fn try_from(bytes: &[u8]) -> Result<Self, OperationError> {
        bytes.try_into().map(Self).map_err(|_| {
            let what = format!("an id of {} bytes", bytes.len());
            OperationError::shape(NAME, what, "pass all 128 bytes of the id on")
        })
    }
}

impl fmt::Display for CommunicatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CommunicatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Field for CommunicatorId {
    const WANTED: &'static str = "256 hexadecimal digits";

    fn parse(text: &str) -> Option<Self> {
        if text.len() != 2 * Self::BYTES || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * at..2 * at + 2];
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl FromStr for CommunicatorId {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        <Self as Field>::parse(text).ok_or_else(|| OperationError::Value {
            operation: NAME,
            key: "id",
            value: text.to_owned(),
            wanted: Self::WANTED,
        })
    }
}

/// The most ranks of a communicator and of a job: more than any machine has, and few enough to keep a record of each.
pub const MAX_RANKS: u32 = 1 << 16;

/// One rank of a communicator. Its text is what `kiln_driver::Image::Communicator` carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommunicatorRank {
    /// The communicator.
    pub id: CommunicatorId,
    /// This rank, counted from 0.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// How long a rank waits for the others before it fails.
    pub deadline: Duration,
}

impl CommunicatorRank {
    /// Whether there can be such a rank.
    ///
    /// # Errors
    /// A communicator of no ranks, or of more than [`MAX_RANKS`]; a rank that is not below the size; several ranks with an id that no rank made; a deadline of less than a millisecond.
    pub fn check(&self) -> Result<(), OperationError> {
        let Self { rank, size, deadline, .. } = *self;
        if size == 0 {
            return Err(OperationError::shape(
                NAME,
                "a communicator of no ranks",
                "give the number of ranks",
            ));
        }
        if size > MAX_RANKS {
            let what = format!("a communicator of {size} ranks, where there can be {MAX_RANKS}");
            return Err(OperationError::shape(NAME, what, "give the number of ranks"));
        }
        if rank >= size {
            let what = format!("rank {rank} of a communicator of {size} ranks");
            return Err(OperationError::shape(NAME, what, "count ranks from 0"));
        }
        if size > 1 {
            self.check_id()?;
        }
        if deadline < Duration::from_millis(1) {
            let what = format!("a deadline of {deadline:?}");
            return Err(OperationError::shape(NAME, what, "wait for a millisecond at least"));
        }
        Ok(())
    }

    /// Whether a rank can have made its id. One that is alone needs none.
    ///
    /// # Errors
    /// An id of zeros.
    pub fn check_id(&self) -> Result<(), OperationError> {
        match self.id.0 == [0; CommunicatorId::BYTES] {
            true => {
                let next = "make an id on one rank, and pass its 128 bytes on to the others";
                Err(OperationError::shape(NAME, "an id of zeros, which no rank made", next))
            }
            false => Ok(()),
        }
    }
}

impl fmt::Display for CommunicatorRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, rank, size, deadline } = self;
        // Longer than that is as good as for ever.
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        write!(f, "{NAME} id={id} rank={rank} size={size} deadline_ms={deadline_ms}")
    }
}

impl FromStr for CommunicatorRank {
    type Err = OperationError;

    /// Parses a rank and checks it. Keys may stand in any order.
    fn from_str(text: &str) -> Result<Self, OperationError> {
        let mut words = text.split_ascii_whitespace();
        let name = words.next().unwrap_or("");
        if name != NAME {
            return Err(OperationError::Name { name: name.to_owned(), known: NAME.to_owned() });
        }
        let mut fields = Fields::new(NAME, KEYS, words)?;
        let mut number = |key: &'static str| -> Result<u32, OperationError> {
            let value: u64 = fields.take(key)?;
            u32::try_from(value).map_err(|_| OperationError::Value {
                operation: NAME,
                key,
                value: value.to_string(),
                wanted: "a number below 2^32",
            })
        };
        let (rank, size) = (number("rank")?, number("size")?);
        let deadline = Duration::from_millis(fields.take("deadline_ms")?);
        let parsed = Self { id: fields.take("id")?, rank, size, deadline };
        parsed.check()?;
        Ok(parsed)
    }
}
