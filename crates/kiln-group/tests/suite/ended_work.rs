//! Work that is ended before it is done: what a caller was told to be done stays done.

use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, Stream, Ticket};
use kiln_runtime::internal::{EndedWork, end_work};

#[derive(Debug, thiserror::Error)]
#[error("ended by this test")]
struct Ended;

fn end(gpu: &DeviceRuntime, ended: EndedWork<'_>) {
    assert!(end_work(gpu, ended, Arc::new(Ended)));
}

fn is_ended(ticket: &Ticket) -> bool {
    ticket.wait().is_err_and(|error| error.downcast_ref::<Ended>().is_some())
}

/// Fills of two streams in turn.
struct Fills {
    gpu: DeviceRuntime,
    streams: [Stream; 2],
    buffers: Vec<GpuRef<u32>>,
    tickets: Vec<Ticket>,
}

impl Fills {
    fn new(count: usize) -> Self {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        let buffers: Vec<GpuRef<u32>> = (0..count).map(|_| gpu.zeros(4).unwrap()).collect();
        gpu.synchronize().unwrap();
        let fill = |(at, buffer): (usize, &GpuRef<u32>)| buffer.fill_on(&streams[at % 2], 7).unwrap();
        let tickets = buffers.iter().enumerate().map(fill).collect();
        Self { gpu, streams, buffers, tickets }
    }

    fn ended(&self) -> Vec<bool> {
        self.tickets.iter().map(is_ended).collect()
    }
}

// The stamps are of a moment at which none of them was known to be done.
#[test]
fn what_was_told_to_be_done_since_the_work_was_listed_stays_done() {
    for done in 0..6_usize {
        let fills = Fills::new(6);
        let listed: Vec<_> = fills.tickets.iter().map(Ticket::stamp).collect();
        if let Some(last) = done.checked_sub(1) {
            // Those before it on the other stream are not known to be done. Listed work is done in its order, so they are.
            fills.tickets[last].wait().unwrap();
        }
        end(&fills.gpu, EndedWork::Submissions(&listed));
        let ended = fills.ended();
        // The device may have said of more than one that they are done.
        let kept = ended.iter().filter(|is_ended| !**is_ended).count();
        assert!(ended.is_sorted() && (done..=6).contains(&kept), "{done} were done: {ended:?}");
        assert!(done > 0 || kept == 0, "{ended:?}");
        for (at, buffer) in fills.buffers.iter().enumerate() {
            assert_eq!(buffer.download().is_ok(), at < kept, "{at} of {kept}");
        }
    }
}

#[test]
fn work_behind_what_was_done_since_goes_on() {
    let fills = Fills::new(2);
    let listed: Vec<_> = fills.tickets.iter().map(Ticket::stamp).collect();
    let (behind, apart) = (fills.gpu.zeros::<u32>(4).unwrap(), fills.gpu.stream().unwrap());
    let copied = behind.copy_from_on(&apart, &fills.buffers[0]).unwrap();
    fills.tickets[0].wait().unwrap();
    end(&fills.gpu, EndedWork::Submissions(&listed));
    copied.wait().unwrap();
    assert_eq!(behind.download().unwrap(), [7; 4]);
    assert!(is_ended(&fills.tickets[1]));
    let _streams = &fills.streams;
}

// A submission that came after the end of the others: the device may have ended it already, which looks as if it were done.
#[test]
fn a_late_submission_is_ended_in_any_case() {
    let fills = Fills::new(1);
    fills.tickets[0].wait().unwrap();
    end(&fills.gpu, EndedWork::Late(fills.tickets[0].stamp()));
    assert_eq!(fills.ended(), [true]);
}
