//! The streams of a device that links share.

use std::sync::{Mutex, PoisonError};

use kiln_runtime::{DeviceRuntime, Error, Stream};

/// The most streams on which copies leave a device, and the most on which they arrive. Groups of up to nine devices have one for each link.
const MAX_STREAMS: usize = 8;

/// Streams on which copies leave one device, or arrive at it. They are leased when links need them, and given back with the group.
///
/// Each link has its own as long as there are few; then links take turns on those that there are. A transfer is queued on both of its streams at once, so all streams have the transfers in one
/// order and none of them waits in a circle.
#[derive(Default)]
pub(crate) struct LinkStreams {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    leased: Vec<Stream>,
    /// Links that were given a stream.
    links: usize,
}

impl LinkStreams {
    /// The stream of another link.
    ///
    /// # Errors
    /// A lost device; a device without a stream to lease, if this is its first link.
    pub(crate) fn choose(&self, runtime: &DeviceRuntime) -> Result<Stream, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { leased, links } = &mut *state;
        if leased.len() < MAX_STREAMS {
            match runtime.stream() {
                Ok(stream) => leased.push(stream),
                Err(error) if leased.is_empty() || error.is_lost() || error.is_sticky() => return Err(error),
                // The program has leased the others; the links share what there is.
                Err(_) => {}
            }
        }
        let chosen = leased.get(*links % leased.len().max(1)).cloned();
        *links += 1;
        match chosen {
            Some(stream) => Ok(stream),
            None => runtime.stream(),
        }
    }
}
