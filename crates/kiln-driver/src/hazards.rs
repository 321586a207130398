//! What each thread is looking at right now.
//!
//! A thread that uses an object found in a table writes the object's place into one of a few words of its own, and clears the word when
//! it is done. Whoever removes an object reads the words of all threads before the object is dropped. Writing one's own word costs
//! nothing; that the two sides see each other is the business of `asymmetric`.
//!
//! The words of a thread are kept when it ends and given to the next one, so that those who read them need no lock against it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::asymmetric;

/// Objects one thread may look at at once; a launch looks at a stream and a kernel, a copy at a stream and two blocks.
const WORDS: usize = 6;

/// The words of one thread.
struct Words {
    /// Addresses; 0 is none.
    at: [AtomicUsize; WORDS],
    taken: AtomicBool,
    next: Option<&'static Words>,
}

/// The words of all threads there ever were at once.
static ALL: AtomicPtr<Words> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static OWN: Own = Own { words: take_words(), used: Cell::new(0) };
}

/// This thread's words, and which of them are in use.
struct Own {
    words: &'static Words,
    used: Cell<u8>,
}

/// A place this thread is looking at, until dropped. It stays with its thread.
pub(crate) struct Hazard {
    word: &'static AtomicUsize,
    index: u8,
    stays: PhantomData<*const ()>,
}

impl Hazard {
    /// Says that this thread looks at a place. Nothing, if it looks at too many already or is ending.
    ///
    /// What is at the place has to be looked at after this, and may be gone already.
    #[inline(always)]
    pub(crate) fn at(place: usize) -> Option<Self> {
        OWN.try_with(|own| {
            let index = own.used.get().trailing_ones() as usize;
            let word = own.words.at.get(index)?;
            own.used.set(own.used.get() | 1 << index);
            word.store(place, Ordering::Relaxed);
            asymmetric::light();
            Some(Self { word, index: index as u8, stays: PhantomData })
        })
        .ok()?
    }
}

impl Drop for Hazard {
    /// What was looked at has to be asked after this whether it is to be dropped.
    #[inline(always)]
    fn drop(&mut self) {
        self.word.store(0, Ordering::Release);
        asymmetric::light();
        // A thread that is ending has given its words back; the bit went with them.
        let _ = OWN.try_with(|own| own.used.set(own.used.get() & !(1 << self.index)));
    }
}

/// Whether some thread looks at a place. Whoever asks has made it unfindable before.
pub(crate) fn is_looked_at(place: usize) -> bool {
    asymmetric::heavy();
    let mut next = first_words();
    while let Some(words) = next {
        if words.at.iter().any(|word| word.load(Ordering::Acquire) == place) {
            return true;
        }
        next = words.next;
    }
    false
}

impl Drop for Own {
    fn drop(&mut self) {
        self.words.taken.store(false, Ordering::Release);
    }
}

fn first_words() -> Option<&'static Words> {
    // SAFETY: the pointer is null or came from `Box::leak` in `take_words`, published with release.
    unsafe { ALL.load(Ordering::Acquire).as_ref() }
}

fn take_words() -> &'static Words {
    asymmetric::prepare();
    let mut next = first_words();
    while let Some(words) = next {
        if words.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return words;
        }
        next = words.next;
    }
    let mut head = ALL.load(Ordering::Acquire);
    let words: *mut Words = Box::into_raw(Box::new(Words {
        at: [const { AtomicUsize::new(0) }; WORDS],
        taken: AtomicBool::new(true),
        next: None,
    }));
    loop {
        // SAFETY: the box was leaked just now and nobody else knows of it before the exchange below; `head` is null or leaked.
        unsafe { (*words).next = head.as_ref() };
        match ALL.compare_exchange_weak(head, words, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked, and never written again but through its atomics.
            Ok(_) => return unsafe { &*words },
            Err(now) => head = now,
        }
    }
}
