//! The primitives an [`Account`](crate::account::Account) is made of; a model checker puts its own here.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::thread::yield_now;
