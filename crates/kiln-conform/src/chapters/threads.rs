//! Laws about calls from many threads at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use kiln_driver::{Command, DriverExt, Error, Object, Refusal, Timeout, WaitTarget};

use crate::expect::{equal, holds, same_bytes};
use crate::fixture::{Rig, noise};
use crate::law::{Law, LawVerdict, Stop, fail};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "threads.one_stream",
        says: "threads that submit to one stream get different numbers, and all of it runs",
        run: one_stream,
    },
    Law {
        name: "threads.own_streams",
        says: "threads with separate streams do not disturb each other",
        run: own_streams,
    },
    Law {
        name: "threads.make_and_destroy",
        says: "threads may make and destroy objects at once, each under its own handle",
        run: make_and_destroy,
    },
    Law {
        name: "threads.one_destroy_wins",
        says: "of threads that destroy one object one succeeds",
        run: one_destroy_wins,
    },
    Law {
        name: "threads.submit_against_destroy",
        says: "a submission that races with the end of its stream is taken and runs, or is refused",
        run: submit_against_destroy,
    },
    Law {
        name: "threads.many_waiters",
        says: "threads that wait for one event all see what is behind it",
        run: many_waiters,
    },
    Law {
        name: "threads.open_anywhere",
        says: "a device may be opened on one thread, used on a second and dropped on a third",
        run: open_anywhere,
    },
    Law { name: "threads.loads", says: "threads may load code and look kernels up at once", run: loads },
];

const THREADS: u32 = 4;

/// Runs a piece of work on several threads at once; the first failure is the answer.
fn together(work: impl Fn(u32) -> LawVerdict + Sync) -> LawVerdict {
    let start = Barrier::new(THREADS as usize);
    let stops: Mutex<Vec<Stop>> = Mutex::default();
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (start, stops, work) = (&start, &stops, &work);
            scope.spawn(move || {
                start.wait();
                if let Err(stop) = work(number) {
                    stops.lock().unwrap_or_else(PoisonError::into_inner).push(stop);
                }
            });
        }
    });
    let stops = stops.into_inner().unwrap_or_else(PoisonError::into_inner);
    stops.into_iter().next().map_or(Ok(()), Err)
}

fn one_stream(rig: &Rig<'_>) -> LawVerdict {
    const EACH: u32 = 40;
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    rig.kernel("increment")?;
    let numbers: Mutex<HashSet<u64>> = Mutex::default();
    together(|_| {
        let mut last = 0;
        for _ in 0..EACH {
            let number = rig.increment(stream, &word, 1)?.0;
            holds(number > last, "a thread's numbers to grow", format!("{number} after {last}"))?;
            last = number;
            let fresh = numbers.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
            holds(fresh, "each number once", number)?;
        }
        Ok(())
    })?;
    let total = THREADS * EACH;
    let numbers = numbers.into_inner().unwrap_or_else(PoisonError::into_inner);
    equal("the largest number", numbers.iter().max().copied(), Some(u64::from(total)))?;
    equal("how many numbers there are", numbers.len(), total as usize)?;
    rig.driver.synchronize(stream)?;
    equal("launches that ran", rig.get_words(&word, 1)?, vec![total])
}

fn own_streams(rig: &Rig<'_>) -> LawVerdict {
    const BYTES: u64 = 20_000;
    together(|number| {
        let stream = rig.stream()?;
        let data = noise(BYTES, u64::from(number));
        let (from, to) = (rig.host_with(&data)?, rig.host(BYTES)?);
        let (first, second) = (rig.memory(BYTES)?, rig.memory(BYTES)?);
        for _ in 0..10 {
            rig.driver.upload(stream, &from, first.id.into(), BYTES)?;
            rig.copy(stream, first.id, second.id, BYTES)?;
            rig.driver.download(stream, second.id.into(), &to, BYTES)?;
            rig.driver.synchronize(stream)?;
            same_bytes("a thread's own bytes", &crate::fixture::read_host(&to)?, &data)?;
        }
        Ok(())
    })
}

fn make_and_destroy(rig: &Rig<'_>) -> LawVerdict {
    let live: Mutex<HashSet<Object>> = Mutex::default();
    let enter = |object: Object| {
        let fresh = live.lock().unwrap_or_else(PoisonError::into_inner).insert(object);
        holds(fresh, "a handle no other thread holds", object)
    };
    let leave = |object: Object| {
        live.lock().unwrap_or_else(PoisonError::into_inner).remove(&object);
    };
    together(|number| {
        for round in 0..25 {
            let (stream, event, block) = (rig.stream()?, rig.event()?, rig.host(64)?);
            let memory = rig.memory(64)?;
            let objects: [Object; 3] = [stream.into(), event.into(), block.id().into()];
            for object in objects {
                enter(object)?;
            }
            let byte = (number * 25 + round) as u8;
            rig.driver.fill(stream, memory.id.into(), byte, 64)?;
            rig.driver.download(stream, memory.id.into(), &block, 64)?;
            rig.driver.submit(stream, &Command::Signal(event))?;
            let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
            equal("a wait", waited.is_done(), true)?;
            same_bytes("a thread's own byte", &crate::fixture::read_host(&block)?, &[byte; 64])?;
            rig.free(memory.id, None)?;
            for object in objects {
                leave(object);
                rig.destroy(object)?;
            }
        }
        Ok(())
    })
}

fn one_destroy_wins(rig: &Rig<'_>) -> LawVerdict {
    for _ in 0..20 {
        let (stream, event) = (rig.stream()?, rig.event()?);
        let memory = rig.memory(64)?;
        let wins = [const { AtomicU32::new(0) }; 3];
        together(|_| {
            let answers = [rig.destroy(stream), rig.destroy(event), rig.free(memory.id, None)];
            for (answer, wins) in answers.into_iter().zip(&wins) {
                match answer {
                    Ok(()) => drop(wins.fetch_add(1, Ordering::Relaxed)),
                    Err(error) if is_stale(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })?;
        let wins = wins.map(AtomicU32::into_inner);
        equal("how often stream, event and memory could be given back", wins, [1; 3])?;
    }
    Ok(())
}

fn submit_against_destroy(rig: &Rig<'_>) -> LawVerdict {
    for _ in 0..8 {
        let (stream, done) = (rig.stream()?, rig.event()?);
        let word = rig.words(1)?;
        rig.busy(stream)?;
        rig.increment(stream, &word, 1)?;
        rig.driver.submit(stream, &Command::Signal(done))?;
        together(|number| {
            if number == 0 {
                std::thread::yield_now();
                return Ok(rig.destroy(stream)?);
            }
            for _ in 0..20 {
                let event = rig.event()?;
                match rig.driver.submit(stream, &Command::Signal(event)) {
                    Err(error) if is_stale(&error) => break,
                    Err(error) => return Err(error.into()),
                    Ok(_) => {}
                }
                let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
                equal("a wait for a signal that was taken", waited.is_done(), true)?;
                let before = rig.driver.is_done(done)?;
                holds(before, "what was queued before that signal to be done", "that it is not")?;
            }
            Ok(())
        })?;
        let waited = rig.driver.wait(WaitTarget::Event(done), Timeout::Never)?;
        equal("a wait for work of a stream that is gone", waited.is_done(), true)?;
        equal("that work", rig.get_words(&word, 1)?, vec![1])?;
    }
    Ok(())
}

fn many_waiters(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.memory_with(&[0; 64])?;
    let host = rig.host(64)?;
    for (byte, target) in [(0x66, WaitTarget::Event(event)), (0x77, WaitTarget::Stream(stream))] {
        rig.busy_for(stream, 10)?;
        rig.driver.fill(stream, memory.id.into(), byte, 64)?;
        rig.driver.download(stream, memory.id.into(), &host, 64)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
        together(|_| {
            let waited = rig.driver.wait(target, Timeout::Never)?;
            equal("a wait", waited.is_done(), true)?;
            same_bytes("what each waiter sees", &crate::fixture::read_host(&host)?, &[byte; 64])
        })?;
    }
    Ok(())
}

fn open_anywhere(rig: &Rig<'_>) -> LawVerdict {
    let on_a_thread = |work: &(dyn Fn() -> LawVerdict + Sync)| {
        let ended = std::thread::scope(|scope| scope.spawn(work).join());
        ended.map_err(|_| fail("a thread to end", "a panic"))?
    };
    let opened = Mutex::new(None);
    let place = || opened.lock().unwrap_or_else(PoisonError::into_inner);
    on_a_thread(&|| {
        *place() = Some(rig.another()?);
        Ok(())
    })?;
    on_a_thread(&|| {
        let guard = place();
        let Some(other) = guard.as_ref() else { return Err(fail("an opened device", "none")) };
        let (stream, word) = (other.stream()?, other.words(1)?);
        other.store(stream, &word, 8)?;
        other.driver.synchronize(stream)?;
        equal("work on another thread", other.get_words(&word, 1)?, vec![8])?;
        other.finish()
    })?;
    on_a_thread(&|| {
        drop(place().take());
        Ok(())
    })
}

fn loads(rig: &Rig<'_>) -> LawVerdict {
    together(|number| {
        for round in 0..3 {
            let module = rig.load()?;
            let kernel = rig.driver.function(module, "store_value")?;
            let (stream, word) = (rig.stream()?, rig.words(1)?);
            let value = number * 3 + round;
            let arguments = crate::kernels::Arguments::new().address(word.address).u32(value);
            rig.launch(stream, kernel.id, 1, 1, &arguments)?;
            rig.driver.synchronize(stream)?;
            equal("a launch from a module of a thread's own", rig.get_words(&word, 1)?, vec![value])?;
            rig.destroy(module)?;
            match rig.driver.function(module, "store_value") {
                Err(error) if is_stale(&error) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Err(fail("a module to be gone", "a kernel of it")),
            }
        }
        Ok(())
    })
}

fn is_stale(error: &Error) -> bool {
    matches!(error.refusal(), Some(Refusal::Stale { .. }))
}
