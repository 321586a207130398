//! Writes messages, and the traits of values that can be written and read.

use super::reader::{Malformed, Reader};

/// Appends to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

/// A value that can be written.
pub(crate) trait Put {
    fn put(&self, to: &mut Writer);
}

/// A value that can be read.
pub(crate) trait Take: Sized {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A message of one value.
    pub(crate) fn of(value: &impl Put) -> Vec<u8> {
        let mut writer = Self::new();
        value.put(&mut writer);
        writer.bytes
    }

    /// Starts a new message in the same buffer.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A length, then the bytes.
    pub(crate) fn slice(&mut self, value: &[u8]) {
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(value);
    }

    /// A length, then the text, truncated to a limit.
    pub(crate) fn text(&mut self, value: &str, limit: usize) {
        let mut end = value.len().min(limit);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        self.slice(value.get(..end).unwrap_or_default().as_bytes());
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Put for $type {
            fn put(&self, to: &mut Writer) {
                to.bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
        impl Take for $type {
            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                from.array().map(<$type>::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32);

impl Put for bool {
    fn put(&self, to: &mut Writer) {
        to.u8(u8::from(*self));
    }
}

impl Take for bool {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed { what: "a boolean that is neither 0 nor 1" }),
        }
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, to: &mut Writer) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
}

impl<T: Take> Take for Option<T> {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        bool::take(from)?.then(|| T::take(from)).transpose()
    }
}

impl Put for String {
    fn put(&self, to: &mut Writer) {
        to.slice(self.as_bytes());
    }
}

impl Take for String {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.text().map(str::to_owned)
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, to: &mut Writer) {
        to.u32(u32::try_from(self.len()).unwrap_or(u32::MAX));
        self.iter().for_each(|item| item.put(to));
    }
}

impl<T: Take> Take for Vec<T> {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = u32::take(from)? as usize;
        // Every item has at least one byte, so a larger count is impossible.
        if count > from.left() {
            return Err(Malformed { what: "a list longer than its message" });
        }
        let mut items = Self::new();
        for _ in 0..count {
            items.push(T::take(from)?);
        }
        Ok(items)
    }
}

/// Structs whose fields are written one after the other.
macro_rules! in_order {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::protocol::wire::writer::Put for $type {
            fn put(&self, to: &mut $crate::protocol::wire::writer::Writer) {
                $($crate::protocol::wire::writer::Put::put(&self.$field, to);)*
            }
        }
        impl $crate::protocol::wire::writer::Take for $type {
            fn take(
                from: &mut $crate::protocol::wire::reader::Reader<'_>,
            ) -> Result<Self, $crate::protocol::wire::reader::Malformed> {
                Ok(Self { $($field: $crate::protocol::wire::writer::Take::take(from)?),* })
            }
        }
    )*};
}
pub(super) use in_order;
