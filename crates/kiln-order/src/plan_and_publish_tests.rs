//! One step: what it plans, what it publishes, and that a refused one does neither.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_driver::Access::{self, Read, ReadWrite, Write};

use crate::access_history::AccessHistory;
#[cfg(feature = "mutations")]
use crate::disabled_rule::Mutation;
use crate::history_guards;
use crate::mock_driver::QueueDriver;
use crate::plan_and_publish::{OverlappingWrites, Step, StepRefusal, Use};
use crate::rules::Rules;
use crate::stamp::Stamp;
use crate::stream_key::StreamKey;
use crate::stream_state::StreamState;
use crate::sync_shim::BiasedLock;
use crate::vector_clock::{HostClock, StreamClock};
use crate::wait_observer::Observed;
use crate::wait_planner::Waits;

const BYTES: u64 = 64;

fn stamp(stream: usize, number: u64) -> Stamp {
    Stamp { stream: StreamKey::new(stream).unwrap(), number }
}

fn block(allocated: Stamp) -> BiasedLock<AccessHistory> {
    BiasedLock::new(AccessHistory::new(BYTES, allocated))
}

fn part(history: &BiasedLock<AccessHistory>, range: Range<u64>, access: Access, argument: u16) -> Use<'_> {
    Use { history, range, access, argument }
}

fn whole(history: &BiasedLock<AccessHistory>, access: Access) -> Use<'_> {
    part(history, 0..BYTES, access, 0)
}

/// A stream that takes steps; what it waited for before is in its clock, and what the host knows in the host's.
struct Stepper {
    state: StreamState,
    clock: StreamClock,
    host: HostClock,
    rules: Rules,
}

impl Stepper {
    fn new(stream: usize) -> Self {
        let state = StreamState::new(StreamKey::new(stream).unwrap(), QueueDriver::new().stream(), 0);
        Self { state, clock: StreamClock::default(), host: HostClock::default(), rules: Rules::default() }
    }

    /// Takes a step with the next number, and says what it has to wait for.
    fn take(&self, uses: &mut [Use<'_>]) -> Result<Vec<Stamp>, StepRefusal> {
        let mut waits = Waits::default();
        let stamp = Stamp { stream: self.state.key, number: self.state.planned() + 1 };
        let (clock, host, rules) = (&self.clock, &self.host, self.rules);
        let observed = &Observed::new();
        Step { state: &self.state, stamp, clock, host, waits: &mut waits, rules, observed }.take(uses)?;
        assert_eq!(self.state.planned(), stamp.number, "the number is announced with the step");
        let mut waits: Vec<_> = waits.iter().collect();
        waits.sort_by_key(|wait| wait.stream);
        Ok(waits)
    }
}

fn stamps(history: &BiasedLock<AccessHistory>) -> Vec<Stamp> {
    let mut all: Vec<_> = history.lock().all().iter().collect();
    all.sort_by_key(|stamp| stamp.stream);
    all
}

#[test]
fn a_step_waits_for_what_others_did_and_leaves_its_stamp() {
    let (one, two, three) = (Stepper::new(1), Stepper::new(2), Stepper::new(3));
    let history = block(stamp(0, 7));
    assert_eq!(
        one.take(&mut [whole(&history, Write)]),
        Ok(vec![stamp(0, 7)]),
        "allocation is the first write"
    );
    assert_eq!(one.take(&mut [whole(&history, ReadWrite)]), Ok(vec![]), "its own work comes before");
    assert_eq!(two.take(&mut [whole(&history, Read)]), Ok(vec![stamp(1, 2)]));
    assert_eq!(
        three.take(&mut [whole(&history, Read)]),
        Ok(vec![stamp(1, 2)]),
        "readers do not wait for each other"
    );
    assert_eq!(stamps(&history), [stamp(1, 2), stamp(2, 1), stamp(3, 1)]);
    assert_eq!(one.take(&mut [whole(&history, Write)]), Ok(vec![stamp(2, 1), stamp(3, 1)]));
    assert_eq!(stamps(&history), [stamp(1, 3)], "waiting for the writer means waiting for the readers");
}

#[test]
fn what_is_ordered_or_done_already_is_not_waited_for() {
    let mut one = Stepper::new(1);
    let [a, b, c] = [block(stamp(2, 5)), block(stamp(3, 5)), block(stamp(4, 5))];
    one.clock.learn(stamp(2, 5));
    one.host.learn(stamp(3, 6));
    one.clock.learn(stamp(4, 4));
    let mut uses = [whole(&a, Read), whole(&b, Read), whole(&c, Read)];
    assert_eq!(one.take(&mut uses), Ok(vec![stamp(4, 5)]));
}

#[cfg(feature = "mutations")]
#[test]
fn each_rule_taken_out_loses_its_wait_and_no_other() {
    // A block that stream 1 wrote and stream 2 read, used by stream 3.
    let waits = |access, mutation| {
        let history = block(Stamp::default());
        Stepper::new(1).take(&mut [whole(&history, Write)]).unwrap();
        Stepper::new(2).take(&mut [whole(&history, Read)]).unwrap();
        Stepper { rules: Rules::without(mutation), ..Stepper::new(3) }
            .take(&mut [whole(&history, access)])
            .unwrap()
    };
    let (written, read) = (stamp(1, 1), stamp(2, 1));
    let rows = [
        (None, vec![written], vec![written, read]),
        (Some(Mutation::ReadAfterWrite), vec![], vec![written, read]),
        (Some(Mutation::WriteAfterRead), vec![written], vec![written]),
        (Some(Mutation::WriteAfterWrite), vec![written], vec![read]),
        (Some(Mutation::ReaderPerStream), vec![written], vec![written, read]),
    ];
    for (mutation, reader, writer) in rows {
        assert_eq!(waits(Read, mutation), reader, "{mutation:?}");
        assert_eq!(waits(Write, mutation), writer, "{mutation:?}");
    }
}

#[cfg(feature = "mutations")]
#[test]
fn publication_can_be_taken_out_and_so_can_the_second_reader() {
    let history = block(stamp(0, 1));
    let mutated =
        |stream, mutation| Stepper { rules: Rules::without(Some(mutation)), ..Stepper::new(stream) };
    mutated(1, Mutation::PublicationInsideStep).take(&mut [whole(&history, Write)]).unwrap();
    assert_eq!(stamps(&history), [stamp(0, 1)]);
    Stepper::new(1).take(&mut [whole(&history, Read)]).unwrap();
    mutated(2, Mutation::ReaderPerStream).take(&mut [whole(&history, Read)]).unwrap();
    assert_eq!(stamps(&history), [stamp(0, 1), stamp(2, 1)], "the first reader is forgotten");
}

#[test]
fn a_refused_step_stamps_nothing_and_uses_up_no_number() {
    let (lost, sealed, plain) = (block(stamp(0, 1)), block(stamp(0, 2)), block(stamp(0, 3)));
    lost.lock().lose();
    sealed.lock().seal();
    let one = Stepper::new(1);
    let all = || (stamps(&lost), stamps(&sealed), stamps(&plain));
    let before = all();
    let mut to_lost = [whole(&plain, Write), part(&lost, 0..8, Read, 9)];
    assert_eq!(one.take(&mut to_lost), Err(StepRefusal::Lost { argument: 9 }));
    let mut to_sealed = [whole(&plain, Write), part(&sealed, 0..8, Write, 4)];
    assert_eq!(one.take(&mut to_sealed), Err(StepRefusal::Sealed { argument: 4 }));
    // The same behind a block that occurs twice, for which all are sorted first.
    let mut twice =
        [part(&plain, 0..8, Read, 0), part(&plain, 8..16, Read, 1), part(&sealed, 0..8, Write, 2)];
    assert_eq!(one.take(&mut twice), Err(StepRefusal::Sealed { argument: 2 }));
    let mut overlapping = [part(&plain, 0..9, Write, 6), part(&plain, 8..16, ReadWrite, 5)];
    let overlap = StepRefusal::Overlap(OverlappingWrites { first: 5, second: 6 });
    assert_eq!(one.take(&mut overlapping), Err(overlap));
    assert_eq!(all(), before);
    assert_eq!(one.state.planned(), 0);
    assert_eq!(
        one.take(&mut [part(&sealed, 0..8, Read, 4)]),
        Ok(vec![stamp(0, 2)]),
        "a sealed block is read"
    );
}

#[test]
fn uses_of_one_block_in_one_step_end_with_the_write() {
    let (one, two) = (Stepper::new(1), Stepper::new(2));
    let history = block(stamp(0, 1));
    two.take(&mut [part(&history, 0..32, Read, 0)]).unwrap();
    // The write stands first, and a read of the same bytes must not stand after it.
    let mut uses = [part(&history, 0..32, Write, 0), part(&history, 16..64, Read, 1)];
    assert_eq!(one.take(&mut uses), Ok(vec![stamp(0, 1), stamp(2, 1)]));
    assert_eq!(two.take(&mut [part(&history, 16..32, Read, 0)]), Ok(vec![stamp(1, 1)]));
    assert_eq!(two.take(&mut [part(&history, 32..64, Write, 0)]), Ok(vec![stamp(0, 1), stamp(1, 1)]));
    // Two halves may be written by one step, and an empty view overlaps nothing.
    let mut halves =
        [part(&history, 32..64, Write, 0), part(&history, 0..32, Write, 1), part(&history, 8..8, Write, 2)];
    assert!(one.take(&mut halves).is_ok());
    assert_eq!(stamps(&history), [stamp(1, 2)]);
    // The readers since the last write do not include those that are part of it.
    one.take(&mut [part(&history, 0..BYTES, Write, 0), part(&history, 0..BYTES, Read, 1)]).unwrap();
    assert!(history.lock().reads().is_empty());
}

#[test]
fn as_many_blocks_as_one_likes_take_the_step_together() {
    for count in [0, 1, history_guards::MOST, history_guards::MOST + 1] {
        let one = Stepper::new(1);
        let blocks: Vec<_> = (0..count).map(|at| block(stamp(2 + at % 3, 1))).collect();
        let mut uses: Vec<_> = blocks.iter().map(|history| whole(history, Write)).collect();
        let waits = one.take(&mut uses).unwrap();
        assert_eq!(waits.len(), count.min(3), "one for each stream");
        assert!(blocks.iter().all(|history| stamps(history) == [stamp(1, 1)]), "{count}");
        assert!(blocks.iter().all(|history| history.try_lock().is_some()), "all are released");
    }
}

#[test]
fn a_step_that_finds_a_block_held_plans_anew_with_what_the_holder_left() {
    let rounds = if cfg!(miri) { 3 } else { 100 };
    for _ in 0..rounds {
        let one = Stepper::new(1);
        // Of two that are held by turns the first in memory is locked first, and the first argument is looked at first.
        let [second, first] = &[block(stamp(0, 1)), block(stamp(3, 1))];
        let holding = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut held = second.lock();
                holding.store(true, Ordering::Release);
                (0..10).for_each(|_| std::thread::yield_now());
                first.lock().publish(&(0..BYTES), Write, stamp(2, 1), |_| false);
                held.publish(&(0..BYTES), Write, stamp(2, 2), |_| false);
            });
            while !holding.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let waits = one.take(&mut [whole(first, Write), whole(second, Write)]);
            assert_eq!(waits, Ok(vec![stamp(2, 2)]), "and nothing of the first try");
        });
        assert_eq!((stamps(first), stamps(second)), (vec![stamp(1, 1)], vec![stamp(1, 1)]));
    }
}

#[test]
fn a_step_keeps_the_blocks_it_has_while_it_waits_for_the_rest() {
    let one = Stepper::new(1);
    let [first, second] = &[block(stamp(0, 1)), block(stamp(0, 1))];
    let (held, started) = (second.lock(), AtomicBool::new(false));
    let stays_held = std::thread::scope(|scope| {
        scope.spawn(|| {
            started.store(true, Ordering::Release);
            one.take(&mut [whole(first, Write), whole(second, Write)]).unwrap()
        });
        while !started.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // It is held for a moment by the first try, and from the second on until the other can be had.
        let mut in_a_row = 0;
        let tries = if cfg!(miri) { 2_000 } else { 1_000_000 };
        let stays_held = (0..tries).any(|_| {
            std::thread::yield_now();
            in_a_row = if first.try_lock().is_some() { 0 } else { in_a_row + 1 };
            in_a_row == 100
        });
        drop(held);
        stays_held
    });
    assert!(stays_held, "another step could come between its planning and its stamp");
    assert_eq!((stamps(first), stamps(second)), (vec![stamp(1, 1)], vec![stamp(1, 1)]));
}

#[test]
fn two_threads_never_see_half_of_a_step() {
    let rounds = if cfg!(miri) { 8 } else { 2000 };
    let steppers = [Stepper::new(1), Stepper::new(2)];
    let [a, b] = [block(Stamp::default()), block(Stamp::default())];
    let [first, second] = std::thread::scope(|scope| {
        let run = |stepper: &'_ Stepper, backwards: bool| {
            let mut seen = Vec::new();
            for _ in 0..rounds {
                let mut uses = [whole(&a, Write), whole(&b, Write)];
                if backwards {
                    uses.reverse();
                }
                seen.push(stepper.take(&mut uses).unwrap());
            }
            seen
        };
        let [one, two] = &steppers;
        let other = scope.spawn(move || run(two, true));
        let first = run(one, false);
        [first, other.join().unwrap()]
    });
    // Both blocks always carry the same stamp. So each step saw at most one stamp, the latest of the other stream, and by what they saw the
    // steps of both stand in one line: none comes both before and after another.
    let seen = |waits: &[Stamp]| {
        assert!(waits.len() <= 1, "{waits:?}");
        waits.first().map_or(0, |stamp| stamp.number)
    };
    let first: Vec<u64> = first.iter().map(|waits| seen(waits)).collect();
    let second: Vec<u64> = second.iter().map(|waits| seen(waits)).collect();
    for (at, other) in first.iter().enumerate().filter(|(_, other)| **other > 0) {
        let (own, saw) = (at as u64 + 1, second[*other as usize - 1]);
        assert!(saw < own, "{own} of the first saw {other} of the second, which saw {saw}");
    }
    assert_eq!(stamps(&a), stamps(&b));
    assert_eq!(steppers.map(|stepper| stepper.state.planned()), [rounds, rounds]);
}
