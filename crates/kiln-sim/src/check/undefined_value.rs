//! Undefined values in memory, as those who read them are told.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use kiln_ptx::exec::UndefinedStore;

/// Bytes without contents: they were never written, or an undefined value was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UndefinedPart {
    pub(crate) bytes: Range<u64>,
    /// The undefined bits of each of them.
    pub(crate) bits: u8,
    /// The value that a kernel stored there, if one did.
    pub(crate) value: Option<Arc<UndefinedValue>>,
}

/// An undefined value that a kernel stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UndefinedValue {
    pub(crate) store: Arc<UndefinedStore>,
    /// The argument of the launch that it was stored through, where that is known.
    pub(crate) argument: Option<ArgumentPlace>,
}

/// An argument, and where its memory begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ArgumentPlace {
    pub(crate) name: String,
    pub(crate) address: u64,
}

impl UndefinedValue {
    /// The value after it was copied elsewhere.
    pub(crate) fn elsewhere(&self) -> Self {
        Self { store: self.store.clone(), argument: None }
    }

    /// The element at an address, as the kernel counts: `element 3 of argument 1 (`y`)`.
    pub(crate) fn element(&self, address: u64) -> Option<String> {
        let argument = self.argument.as_ref()?;
        let offset = address.checked_sub(argument.address)?;
        let bytes = u64::from(self.store.bytes.max(1));
        Some(format!("element {} of {}, counted in elements of {bytes} bytes", offset / bytes, argument.name))
    }
}

impl UndefinedPart {
    /// Whether the bytes of two parts have the same undefined bits, of the same value.
    pub(crate) fn has_same_value(&self, other: &Self) -> bool {
        self.bits == other.bits
            && self.value.as_ref().map(Arc::as_ptr) == other.value.as_ref().map(Arc::as_ptr)
    }

    /// Whether a reader of raw bytes is told. Single bits of a byte beside defined ones may be unused bits of a bit field.
    pub(crate) fn is_told(&self) -> bool {
        self.bits == 0xff || self.value.as_ref().is_some_and(|value| !value.store.may_be_padding)
    }
}

/// Bytes to which a kernel stored an undefined value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndefinedRange {
    /// The device address of the first of them.
    pub address: u64,
    /// How many there are.
    pub bytes: u64,
    /// The undefined bits of each of them.
    pub bits: u8,
    /// The store, and where its value came from.
    pub store: Arc<UndefinedStore>,
}

impl fmt::Display for UndefinedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} are undefined: {}", self.bytes, self.address, self.store.finding)
    }
}
