//! The call that work belongs to, for what is found in that work: its name, its operands under the names of the caller, and the line of the program.
//!
//! A call of a library queues kernels and copies whose names and arguments are not the caller's. The outermost call notes itself for its thread; what the thread
//! submits until it returns belongs to that call. Nothing is noted for a device that checks nothing.

use std::cell::RefCell;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{DeviceFinding, Error, ErrorKind};

/// A call with its operands.
pub(crate) struct NamedCall {
    /// Such as `blas.matmul`.
    name: &'static str,
    /// Their names and addresses.
    operands: Vec<(&'static str, Range<u64>)>,
    line: &'static Location<'static>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<NamedCall>>> = const { RefCell::new(None) };
}

/// A call is under way until this is dropped.
#[must_use = "the call is over when this is dropped"]
pub struct CallScope {
    is_outermost: bool,
}

impl Drop for CallScope {
    #[inline]
    fn drop(&mut self) {
        if self.is_outermost {
            CURRENT.with_borrow_mut(|current| *current = None);
        }
    }
}

impl CallScope {
    /// That of a call of which nothing is noted.
    #[inline]
    pub(crate) fn unnoted() -> Self {
        Self { is_outermost: false }
    }
}

/// What this thread submits until the answer is dropped belongs to the named call, or to one around it.
#[cold]
pub(crate) fn begin(
    name: &'static str,
    line: &'static Location<'static>,
    operands: impl FnOnce() -> Vec<(&'static str, Range<u64>)>,
) -> CallScope {
    let is_outermost = current().is_none();
    if is_outermost {
        let call = Arc::new(NamedCall { name, operands: operands(), line });
        CURRENT.with_borrow_mut(|current| *current = Some(call));
    }
    CallScope { is_outermost }
}

/// The call that work of this thread belongs to.
pub(super) fn current() -> Option<Arc<NamedCall>> {
    CURRENT.with_borrow(Clone::clone)
}

impl NamedCall {
    /// A finding in work of the call, with the call and the operand.
    pub(super) fn named(&self, error: Error) -> Error {
        let Some(finding) = error.finding() else { return error };
        let text = format!("{} {}", finding.text, self.sentence(finding.address.map(|address| address.0)));
        let named = Error::new(error.call(), ErrorKind::Finding(DeviceFinding { text, ..finding.clone() }));
        match error.site() {
            Some(site) => named.at(site.clone()),
            None => named,
        }
    }

    fn sentence(&self, address: Option<u64>) -> String {
        let Self { name, operands, line } = self;
        let called = format!("called at {}:{}", line.file(), line.line());
        let found = address.and_then(|address| {
            let (operand, bytes) = operands.iter().find(|(_, bytes)| bytes.contains(&address))?;
            Some(format!("byte {} of its operand `{operand}`", address - bytes.start))
        });
        match found {
            Some(place) => format!("This is work of {name}, {called}, and the first byte is {place}."),
            None => format!("This is work of {name}, {called}."),
        }
    }
}
