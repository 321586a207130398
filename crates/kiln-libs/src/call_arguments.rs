//! The arguments of a call, in order.

use kiln_runtime::internal::BufferBytes;
use kiln_runtime::{Element, GpuRef};

use crate::Result;

/// Arguments that need no memory of the heap. Few operations have more.
const INLINE_ARGUMENTS: usize = 8;

/// One argument: memory, or a scalar.
#[derive(Clone, Debug)]
pub(crate) enum Argument<'a> {
    /// Memory that the caller holds until the call is queued.
    Borrowed(BufferBytes<'a>),
    /// Memory that the call holds.
    Memory(GpuRef<u8>),
    Scalar(f64),
}

/// The arguments of a call.
#[derive(Clone, Debug)]
pub(crate) struct Arguments<'a> {
    /// The first `len` of them count.
    first: [Argument<'a>; INLINE_ARGUMENTS],
    len: usize,
    more: Vec<Argument<'a>>,
}

impl Default for Arguments<'_> {
    fn default() -> Self {
        Self { first: [const { Argument::Scalar(0.0) }; INLINE_ARGUMENTS], len: 0, more: Vec::new() }
    }
}

impl<'a> Argument<'a> {
    /// A buffer, as its bytes, which the call holds.
    pub(crate) fn memory<T: Element>(buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self::Memory(buffer.cast::<u8>()?))
    }

    /// A buffer, as its bytes.
    #[inline]
    pub(crate) fn borrowed<T: Element>(buffer: &'a GpuRef<T>) -> Self {
        Self::Borrowed(BufferBytes::of(buffer))
    }

    /// The bytes, if it is memory.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<BufferBytes<'_>> {
        match self {
            Self::Borrowed(bytes) => Some(*bytes),
            Self::Memory(buffer) => Some(BufferBytes::of(buffer)),
            Self::Scalar(_) => None,
        }
    }

    /// The same, holding its memory.
    pub(crate) fn into_held(self) -> Argument<'static> {
        match self {
            Self::Borrowed(bytes) => Argument::Memory(bytes.to_buffer()),
            Self::Memory(buffer) => Argument::Memory(buffer),
            Self::Scalar(value) => Argument::Scalar(value),
        }
    }
}

impl<'a> Arguments<'a> {
    /// Adds one at the end.
    #[inline]
    pub(crate) fn push(&mut self, argument: Argument<'a>) {
        match self.first.get_mut(self.len) {
            Some(place) => {
                *place = argument;
                self.len += 1;
            }
            None => self.more.push(argument),
        }
    }

    /// All of them, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Argument<'a>> + Clone {
        self.inline().iter().chain(&self.more)
    }

    /// All of them side by side; none if there are too many.
    #[inline]
    pub(crate) fn as_slice(&self) -> Option<&[Argument<'a>]> {
        if self.more.is_empty() { Some(self.inline()) } else { None }
    }

    #[inline]
    fn inline(&self) -> &[Argument<'a>] {
        self.first.get(..self.len).unwrap_or_default()
    }

    /// The place of one.
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Argument<'a>> {
        match place.checked_sub(INLINE_ARGUMENTS) {
            None => self.first.get_mut(..self.len)?.get_mut(place),
            Some(place) => self.more.get_mut(place),
        }
    }

    /// The same, holding their memory.
    pub(crate) fn into_held(self) -> Arguments<'static> {
        let mut held = Arguments::default();
        let all = self.first.into_iter().take(self.len).chain(self.more);
        all.for_each(|argument| held.push(argument.into_held()));
        held
    }
}

#[cfg(test)]
mod tests {
    use super::{Argument, Arguments};

    #[test]
    fn more_arguments_than_have_a_place_keep_their_order() {
        let mut arguments = Arguments::default();
        (0..20).for_each(|at| arguments.push(Argument::Scalar(f64::from(at))));
        *arguments.get_mut(3).unwrap() = Argument::Scalar(-1.0);
        *arguments.get_mut(12).unwrap() = Argument::Scalar(-2.0);
        assert!(arguments.get_mut(20).is_none());
        let numbers = |arguments: &Arguments<'_>| -> Vec<f64> {
            let number = |argument: &Argument<'_>| match argument {
                Argument::Scalar(value) => *value,
                _ => f64::NAN,
            };
            arguments.iter().map(number).collect()
        };
        let wanted: Vec<f64> = (0..20)
            .map(|at| [f64::from(at), -1.0, -2.0][usize::from(at == 3) + 2 * usize::from(at == 12)])
            .collect();
        assert_eq!(numbers(&arguments), wanted);
        assert_eq!(numbers(&arguments.into_held()), wanted);
    }
}
