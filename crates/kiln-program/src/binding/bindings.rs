//! `Bindings`: buffers and scalars for a program, by parameter name.

use kiln_ir::Literal;
use kiln_runtime::internal::reserve;
use kiln_runtime::{Element, GpuRef, Result};

use crate::element_kind::ElementKind;

/// What a caller gives a program: scalars and buffers, by name. Buffers may be on the host or resident on the device, each as it likes.
#[derive(Default)]
#[must_use = "bindings do nothing until they are dispatched"]
pub struct Bindings<'a> {
    pub(crate) scalars: Vec<(String, Literal)>,
    pub(crate) buffers: Vec<(String, Bound<'a>)>,
}

/// One buffer. Vectors own their elements, and saying so lets bindings that live long be used where shorter ones are wanted.
pub(crate) enum Bound<'a> {
    /// Host data to read. If the program writes it too, the result is returned.
    Input { element: ElementKind, len: u64, bytes: &'a [u8] },
    /// A host vector to read and to write back.
    InOut(&'a mut (dyn HostVector + 'static)),
    /// A host vector to write.
    Output { into: &'a mut (dyn HostVector + 'static), len: Option<u64> },
    /// Nothing but a length; the result is returned.
    Length(u64),
    /// A buffer on the device.
    Resident { element: ElementKind, len: u64, buffer: GpuRef<u8> },
    /// Something that cannot be bound; said when the plan is made.
    Wrong(kiln_runtime::Error),
}

impl Bound<'_> {
    /// The type of its elements; none where only a length was given.
    pub(crate) fn element(&self) -> Option<ElementKind> {
        match self {
            Self::Input { element, .. } | Self::Resident { element, .. } => Some(*element),
            Self::InOut(vector) | Self::Output { into: vector, .. } => Some(vector.kind()),
            Self::Length(_) | Self::Wrong(_) => None,
        }
    }

    /// How many elements the caller says there are, if it says so.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::Input { len, .. } | Self::Resident { len, .. } | Self::Length(len) => Some(*len),
            Self::InOut(vector) => Some(vector.count()),
            Self::Output { len, .. } => *len,
            Self::Wrong(_) => None,
        }
    }
}

/// A vector of some type.
pub(crate) trait HostVector: Send {
    fn kind(&self) -> ElementKind;
    fn count(&self) -> u64;
    fn bytes(&self) -> &[u8];
    /// Makes room for so many bytes; the elements stay.
    fn reserve(&mut self, bytes: usize) -> Result<()>;
    /// Makes the vector hold these bytes, a whole number of elements.
    fn replace(&mut self, bytes: &[u8]);
}

impl<T: Element> HostVector for Vec<T> {
    fn kind(&self) -> ElementKind {
        ElementKind::of::<T>()
    }

    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn reserve(&mut self, bytes: usize) -> Result<()> {
        reserve(self, bytes.checked_div(size_of::<T>()).unwrap_or(0), "the outputs of a program")
    }

    fn replace(&mut self, bytes: &[u8]) {
        let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
        self.resize(count, T::zeroed());
        bytemuck::cast_slice_mut(self).copy_from_slice(bytes);
    }
}

impl<'a> Bindings<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A scalar.
    pub fn scalar(mut self, name: &str, value: impl Into<Literal>) -> Self {
        self.scalars.push((name.to_owned(), value.into()));
        self
    }

    /// Host data the program reads. If it writes it too, the result is in [`Outputs`](crate::Outputs).
    pub fn input<T: Element>(self, name: &str, data: &'a [T]) -> Self {
        let (element, len) = (ElementKind::of::<T>(), data.len() as u64);
        self.buffer(name, Bound::Input { element, len, bytes: bytemuck::cast_slice(data) })
    }

    /// A host vector the program reads and writes; the result replaces its elements.
    pub fn in_out<T: Element>(self, name: &str, data: &'a mut Vec<T>) -> Self {
        self.buffer(name, Bound::InOut(data))
    }

    /// A host vector that receives what the program writes. Its length is what the program says.
    pub fn output<T: Element>(self, name: &str, into: &'a mut Vec<T>) -> Self {
        self.buffer(name, Bound::Output { into, len: None })
    }

    /// As [`output`](Self::output), where the program leaves the length to the caller.
    pub fn output_of<T: Element>(self, name: &str, len: usize, into: &'a mut Vec<T>) -> Self {
        self.buffer(name, Bound::Output { into, len: Some(len as u64) })
    }

    /// The length of an output that is returned in [`Outputs`](crate::Outputs).
    pub fn length(self, name: &str, len: usize) -> Self {
        self.buffer(name, Bound::Length(len as u64))
    }

    /// A buffer on the device, read and written as the program says. Nothing is copied.
    pub fn resident<T: Element>(self, name: &str, buffer: &GpuRef<T>) -> Self {
        let (element, len) = (ElementKind::of::<T>(), buffer.len() as u64);
        match buffer.cast::<u8>() {
            Ok(buffer) => self.buffer(name, Bound::Resident { element, len, buffer }),
            Err(error) => self.buffer(name, Bound::Wrong(error)),
        }
    }

    fn buffer(mut self, name: &str, bound: Bound<'a>) -> Self {
        self.buffers.push((name.to_owned(), bound));
        self
    }
}

impl std::fmt::Debug for Bindings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(", ");
        let scalars = names(self.scalars.iter().map(|(name, _)| name).collect());
        let buffers = names(self.buffers.iter().map(|(name, _)| name).collect());
        write!(f, "bindings of buffers {buffers} and scalars {scalars}")
    }
}
