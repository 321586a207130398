//! What each thread is looking at right now.
//!
//! A thread that uses an object found in a table writes the object's place into one of a few words of its own, and clears the word when
//! it is done. Whoever removes an object reads the words of all threads before the object is dropped. Writing one's own word costs
//! nothing; that the two sides see each other is the business of `asymmetric`.
//!
//! The words of a thread are kept when it ends and given to the next one, so that those who read them need no lock against it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::asymmetric;

/// Objects one thread may look at at once; a launch looks at a stream and a kernel, a copy at a stream and two blocks.
const WORDS: usize = 6;

/// The words of one thread, in a cache line of their own.
#[repr(align(64))]
struct Words {
    /// Addresses; 0 is none.
    at: [AtomicUsize; WORDS],
    /// A bit for each that is in use. Only their thread looks at it.
    used: AtomicU8,
    taken: AtomicBool,
    next: Option<&'static Words>,
}

/// The words of all threads there ever were at once.
static ALL: AtomicPtr<Words> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// This thread's words, once it has some. Without a destructor, so that looking here is a load and nothing else.
    static OWN: Cell<Option<&'static Words>> = const { Cell::new(None) };
    /// Gives them back.
    static LEASE: Lease = Lease(take_words());
}

/// The right to some words until the thread ends.
struct Lease(&'static Words);

/// A place this thread is looking at, until it is [ended](Hazard::end). It stays with its thread.
// Without a destructor: whoever holds one has one, and two in a row are more code than the way of a launch should have.
#[must_use = "the thread looks at the place until it is ended"]
pub(crate) struct Hazard {
    words: &'static Words,
    index: u8,
    stays: PhantomData<*const ()>,
}

impl Hazard {
    /// Says that this thread looks at a place. Nothing, if it looks at too many already or is ending, or where the kernel offers no
    /// fence for the other side.
    ///
    /// What is at the place has to be looked at after this, and may be gone already.
    #[inline(always)]
    pub(crate) fn at(place: usize) -> Option<Self> {
        let words = match OWN.get() {
            Some(words) => words,
            None => own_words()?,
        };
        let used = words.used.load(Ordering::Relaxed);
        let index = used.trailing_ones() as usize;
        let word = words.at.get(index)?;
        words.used.store(used | 1 << index, Ordering::Relaxed);
        word.store(place, Ordering::Relaxed);
        asymmetric::light();
        Some(Self { words, index: index as u8, stays: PhantomData })
    }
}

impl Hazard {
    /// The thread looks there no longer. What was looked at has to be asked after this whether it is to be dropped.
    #[inline(always)]
    pub(crate) fn end(self) {
        if let Some(word) = self.words.at.get(usize::from(self.index)) {
            word.store(0, Ordering::Release);
        }
        asymmetric::light();
        let used = self.words.used.load(Ordering::Relaxed);
        self.words.used.store(used & !(1 << self.index), Ordering::Relaxed);
    }
}

/// Words for a thread that has none yet.
#[cold]
fn own_words() -> Option<&'static Words> {
    if !asymmetric::is_offered() {
        return None;
    }
    let words = LEASE.try_with(|lease| lease.0).ok()?;
    OWN.set(Some(words));
    Some(words)
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

impl Drop for Lease {
    /// Something that ends later may still look at a place; the words then stay with the thread that is gone.
    fn drop(&mut self) {
        OWN.set(None);
        if self.0.used.load(Ordering::Relaxed) == 0 {
            self.0.taken.store(false, Ordering::Release);
        }
    }
}

fn first_words() -> Option<&'static Words> {
    // SAFETY: the pointer is null or came from `Box::leak` in `take_words`, published with release.
    unsafe { ALL.load(Ordering::Acquire).as_ref() }
}

fn take_words() -> &'static Words {
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
        used: AtomicU8::new(0),
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
