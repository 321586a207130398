//! Laws about streams, events and waiting.

mod events;
mod native_handles;
pub(super) mod waiting;

use std::collections::HashSet;

use kiln_driver::{DriverExt, Progress, Refusal, StreamRequest, Submission, Timeout, WaitTarget, Waited};

use crate::expect::{equal, holds, refused, same_bytes, stale};
use crate::fixture::{Rig, read_host};
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "streams.numbers",
        says: "each stream numbers its submissions from 1, by itself",
        run: numbers,
    },
    Law {
        name: "streams.progress_is_a_lower_bound",
        says: "progress knows the newest submission, never runs ahead or back, and knows all after a wait",
        run: progress_is_a_lower_bound,
    },
    Law {
        name: "streams.completed_work_is_visible",
        says: "what progress says is done has happened",
        run: completed_work_is_visible,
    },
    Law { name: "streams.idle", says: "a stream with nothing to do is done", run: idle },
    Law {
        name: "streams.priorities",
        says: "priorities in the range are taken, others refused",
        run: priorities,
    },
    Law {
        name: "streams.queued_work_outlives_the_stream",
        says: "work queued before a stream was destroyed still runs",
        run: queued_work_outlives_the_stream,
    },
    Law {
        name: "streams.destroyed_is_stale",
        says: "a destroyed stream takes nothing and answers nothing",
        run: destroyed_is_stale,
    },
    Law {
        name: "streams.many",
        says: "hundreds of streams and events live side by side under different handles",
        run: many,
    },
    Law {
        name: "streams.never_signalled",
        says: "an event that was never signalled is done and holds nothing back",
        run: events::never_signalled,
    },
    Law {
        name: "streams.signalled",
        says: "an event is done when what was queued before its signal is done, and stays so",
        run: events::signalled,
    },
    Law {
        name: "streams.signalled_again",
        says: "an event means its last signal",
        run: events::signalled_again,
    },
    Law {
        name: "streams.wait_means_the_last_signal_before",
        says: "a wait on a stream means the last signal before it, not a later one",
        run: events::wait_means_the_last_signal_before,
    },
    Law {
        name: "streams.event_moves",
        says: "an event may be signalled on one stream after another",
        run: events::event_moves,
    },
    Law { name: "streams.own_event", says: "a stream may wait for its own event", run: events::own_event },
    Law {
        name: "streams.event_ends_before_its_signal",
        says: "an event without waiters may go while its signal is queued",
        run: events::event_ends_before_its_signal,
    },
    Law {
        name: "streams.elapsed",
        says: "timed events tell the time between them, in the order they were signalled",
        run: events::elapsed,
    },
    Law {
        name: "streams.elapsed_refused",
        says: "without timing, signal or end there is no time to tell",
        run: events::elapsed_refused,
    },
    Law {
        name: "streams.second_name",
        says: "a stream taken in by its native handle is the same stream, and giving that name back leaves it alone",
        run: native_handles::of_a_stream,
    },
    Law {
        name: "streams.second_name_of_an_event",
        says: "an event taken in by its native handle is the same event, signalled or waited for under either name",
        run: native_handles::of_an_event,
    },
    Law {
        name: "streams.event_of_another_device",
        says: "a stream waits for an event of another device of the process that was taken in by its native handle",
        run: native_handles::of_an_event_of_another_device,
    },
    Law {
        name: "streams.timeouts",
        says: "a poll only looks, a limited wait takes at least its time unless it is done, an unlimited one ends",
        run: waiting::timeouts,
    },
    Law {
        name: "streams.calls_do_not_wait",
        says: "submitting, asking and looking come back while a kernel runs",
        run: waiting::calls_do_not_wait,
    },
    Law {
        name: "streams.giving_back_does_not_wait",
        says: "making and giving back what a running kernel does not use waits for no stream",
        run: waiting::giving_back_does_not_wait,
    },
    Law {
        name: "streams.done_means_visible",
        says: "after a wait or a poll that says done the host sees everything",
        run: waiting::done_means_visible,
    },
    Law {
        name: "streams.wait_covers_what_was_submitted",
        says: "a wait for a stream waits for all that was submitted before",
        run: waiting::wait_covers_what_was_submitted,
    },
];

fn numbers(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let memory = rig.words(4)?;
    let event = rig.event()?;
    for number in 1..=5 {
        equal("a submission's number", rig.store(first, &memory, number as u32)?, Submission(number))?;
    }
    equal(
        "the first number of another stream",
        rig.driver.submit(second, &kiln_driver::Command::Signal(event))?,
        Submission(1),
    )?;
    equal(
        "the number of a wait",
        rig.driver.submit(second, &kiln_driver::Command::Wait(event))?,
        Submission(2),
    )?;
    equal("the next number of the first stream", rig.increment(first, &memory, 4)?, Submission(6))?;
    rig.driver.synchronize(first)?;
    equal("the number after a wait of the host", rig.increment(first, &memory, 4)?, Submission(7))
}

fn progress_is_a_lower_bound(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(64)?;
    let zero = Progress { submitted: Submission(0), completed: Submission(0) };
    equal("the progress of a new stream", rig.driver.progress(stream)?, zero)?;
    let mut last = Submission(0);
    for number in 1..=20 {
        rig.increment(stream, &memory, 64)?;
        let now = rig.driver.progress(stream)?;
        equal("the newest submission", now.submitted, Submission(number))?;
        holds(now.completed <= now.submitted, "no more done than submitted", format!("{now:?}"))?;
        holds(
            now.completed >= last,
            "progress not to go back",
            format!("{:?} after {last:?}", now.completed),
        )?;
        last = now.completed;
    }
    rig.driver.synchronize(stream)?;
    equal("progress after a wait", rig.driver.progress(stream)?.completed, Submission(20))
}

fn completed_work_is_visible(rig: &Rig<'_>) -> LawVerdict {
    const LOOKS: u32 = 200;
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[0x77; 256])?;
    let to = rig.host(256)?;
    rig.busy(stream)?;
    let copy = rig.driver.download(stream, memory.id.into(), &to, 256)?;
    rig.busy(stream)?;
    for _ in 0..LOOKS {
        if rig.driver.progress(stream)?.completed >= copy {
            break;
        }
        rig.driver.clock().sleep(std::time::Duration::from_micros(50));
    }
    if rig.driver.progress(stream)?.completed < copy {
        rig.driver.synchronize(stream)?;
    }
    same_bytes("a copy that is said to be done", &read_host(&to)?, &[0x77; 256])
}

fn idle(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let waited = rig.driver.wait(WaitTarget::Stream(stream), Timeout::Poll)?;
    equal("a look at a new stream", waited, Waited::Done)?;
    equal(
        "a wait for a new stream",
        rig.driver.wait(WaitTarget::Stream(stream), Timeout::Never)?,
        Waited::Done,
    )?;
    let memory = rig.words(1)?;
    rig.store(stream, &memory, 1)?;
    rig.driver.synchronize(stream)?;
    equal(
        "a look at a stream that is done",
        rig.driver.wait(WaitTarget::Stream(stream), Timeout::Poll)?,
        Waited::Done,
    )
}

fn priorities(rig: &Rig<'_>) -> LawVerdict {
    let range = rig.driver.info().limits.priorities;
    let memory = rig.words(64)?;
    for priority in [range.lowest, range.highest] {
        let stream = rig.driver.create_stream(StreamRequest::New { priority })?;
        rig.adopt(stream);
        rig.increment(stream, &memory, 64)?;
        rig.driver.synchronize(stream)?;
    }
    for priority in [range.lowest + 1, range.highest - 1, i32::MAX, i32::MIN] {
        let answer = rig.driver.create_stream(StreamRequest::New { priority });
        refused(format!("priority {priority}"), answer, |reason| {
            matches!(reason, Refusal::Invalid { .. } | Refusal::Limit { .. })
        })?;
    }
    equal("work on streams of both priorities", rig.get_words(&memory, 64)?, vec![2; 64])
}

fn queued_work_outlives_the_stream(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.words(256)?;
    rig.busy(stream)?;
    rig.increment(stream, &memory, 256)?;
    rig.driver.submit(stream, &kiln_driver::Command::Signal(event))?;
    rig.destroy(stream)?;
    let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
    equal("a wait for work of a destroyed stream", waited, Waited::Done)?;
    equal("that work", rig.get_words(&memory, 256)?, vec![1; 256])
}

fn destroyed_is_stale(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (memory, event) = (rig.memory_with(&[4; 16])?, rig.event()?);
    rig.destroy(stream)?;
    stale("a fill", rig.driver.fill(stream, memory.id.into(), 1, 16))?;
    stale("a signal", rig.driver.submit(stream, &kiln_driver::Command::Signal(event)))?;
    stale("progress", rig.driver.progress(stream))?;
    stale("a look", rig.driver.wait(WaitTarget::Stream(stream), Timeout::Poll))?;
    stale("a wait", rig.driver.wait(WaitTarget::Stream(stream), Timeout::Never))?;
    stale("a second destroy", rig.driver.destroy(stream.into()))?;
    let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Poll)?;
    equal("an event whose signal was refused", waited, Waited::Done)?;
    same_bytes("memory a refused fill named", &rig.get(memory.id, 16)?, &[4; 16])
}

fn many(rig: &Rig<'_>) -> LawVerdict {
    let memory = rig.words(128)?;
    let mut streams = HashSet::new();
    let mut events = HashSet::new();
    for _ in 0..128 {
        let (stream, event) = (rig.stream()?, rig.event()?);
        holds(streams.insert(stream), "a separate handle for each stream", stream)?;
        holds(events.insert(event), "a separate handle for each event", event)?;
        rig.driver.submit(stream, &kiln_driver::Command::Signal(event))?;
    }
    let last = rig.stream()?;
    for event in &events {
        rig.driver.submit(last, &kiln_driver::Command::Wait(*event))?;
    }
    rig.increment(last, &memory, 128)?;
    rig.driver.synchronize(last)?;
    equal("work behind all of them", rig.get_words(&memory, 128)?, vec![1; 128])
}
