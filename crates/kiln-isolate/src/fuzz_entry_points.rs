//! Entry points for the fuzz target: the decoders and the ring, with bytes that a peer may write.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kiln_driver::SharedBytes;

use crate::protocol::ring::{RingLayout, RingReader, RingWriter, word};
use crate::protocol::wire::samples::{read_all, requests};
use crate::protocol::wire::{Request, Writer};

/// Reads bytes with every decoder.
pub fn read(bytes: &[u8]) {
    read_all(bytes);
}

/// One message of each kind, made from the given numbers and bytes.
pub fn messages(numbers: [u64; 4], bytes: &[u8]) -> Vec<Vec<u8>> {
    requests(numbers, bytes).iter().map(Writer::of).collect()
}

/// Whether a message that can be read is written back unchanged.
pub fn is_stable(bytes: &[u8]) -> bool {
    Request::take(bytes).map_or(true, |request| Writer::of(&request) == bytes)
}

/// Reads from and writes to a ring whose memory and counts are arbitrary.
pub fn use_ring(memory: &[u8], written: u64, read: u64) {
    const PLACE: RingLayout = RingLayout { written: 0, read: 64, start: 128, capacity: 256 };
    let bytes = Arc::new(SharedBytes::zeroed(128 + 256));
    let fits = memory.get(..256).is_some_and(|memory| bytes.write(128, memory));
    word(&bytes, PLACE.written).store(written, Ordering::Release);
    word(&bytes, PLACE.read).store(read, Ordering::Release);
    let mut message = Vec::new();
    let mut reader = RingReader::new(bytes.clone(), PLACE);
    // A ring cannot hold more messages than this.
    for _ in 0..64 {
        if !fits || !reader.pop(&mut message).unwrap_or(false) {
            break;
        }
    }
    let _ = RingWriter::new(bytes, PLACE).push(memory);
}
