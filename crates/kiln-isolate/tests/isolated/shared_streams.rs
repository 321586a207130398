//! Threads that share a stream: one submits while others look how far it is.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::rig;
use kiln_driver::{Command, Driver, EventRequest, StreamRequest, Timeout, WaitTarget};
use kiln_isolate::IsolatedDevice;

/// The worker may be done with a submission before the thread that sent it has counted it.
#[test]
fn progress_is_never_ahead_of_what_threads_submit() {
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let event = device.create_event(EventRequest::Plain).unwrap();
    let go_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1500 {
                    if !go_on.load(Ordering::Relaxed) {
                        return;
                    }
                    let waited = device
                        .submit(stream, &Command::Signal(event))
                        .and_then(|_| device.progress(stream))
                        .and_then(|_| device.wait(WaitTarget::Stream(stream), Timeout::Never));
                    go_on.fetch_and(waited.is_ok(), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(go_on.into_inner() && device.cause().is_none(), "{:?}", device.cause());
}
