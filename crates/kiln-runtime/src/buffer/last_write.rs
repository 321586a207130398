//! Which stream wrote a block last.

use kiln_order::StreamKey;

use super::element::Element;
use super::gpu_ref::GpuRef;

/// Notes that work which a crate above queued has overwritten all elements of a buffer.
pub fn note_overwritten<T: Element>(buffer: &GpuRef<T>) {
    buffer.overwritten();
}

/// Which stream wrote a block last. Made by [`GpuRef::last_write_stream`](crate::GpuRef::last_write_stream).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LastWrite {
    /// The block was never written.
    Never,
    /// This stream, which is leased still. [`StreamPool::find`](crate::StreamPool::find) gives the stream itself.
    Stream(StreamKey),
    /// A stream that was given back since. Its key may belong to another stream now.
    StreamGone,
    /// Several streams each wrote a part last.
    SeveralStreams,
}

impl LastWrite {
    /// The stream, if there is one and it is leased still.
    pub fn stream(self) -> Option<StreamKey> {
        match self {
            Self::Stream(key) => Some(key),
            Self::Never | Self::StreamGone | Self::SeveralStreams => None,
        }
    }
}
