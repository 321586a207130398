//! The memory of a lost device.
//!
//! A sticky code says that the context is gone and not which kernel took it along. The first error is kept, with
//! the submission it most likely belongs to, and is the answer to everything that comes after.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use kiln_driver::{Code, Error, Fault, FunctionId, Site};

use crate::journal::{Entry, Journal, Suspect};

/// Whether a device is lost, and what is needed to say why.
#[derive(Default)]
pub(crate) struct Faults {
    first: OnceLock<Error>,
    journals: Mutex<Vec<Weak<Journal>>>,
    kernels: Mutex<HashMap<FunctionId, Arc<str>>>,
}

impl Faults {
    /// The error that lost the device.
    pub(crate) fn first(&self) -> Option<&Error> {
        self.first.get()
    }

    /// Remembers a sticky code, unless one is remembered already, and returns the error to answer with. `asked` is the
    /// stream the call was about; its own work is suspected before that of others.
    pub(crate) fn lose(&self, call: &'static str, code: Code, asked: Option<&Journal>) -> Error {
        let first = self.first.get_or_init(|| {
            let suspect = self.suspect(asked);
            let detail = match &suspect {
                Some(_) => "was reported after the work was queued",
                None => "was reported, and no queued work is known to have caused it",
            };
            let error = Error::lost(call, Fault { code, detail: detail.into() });
            match suspect {
                Some(suspect) => error.at(self.site(&suspect)),
                None => error,
            }
        });
        first.clone().seen_by(call)
    }

    /// Watches the submissions of a stream.
    pub(crate) fn watch(&self, journal: &Arc<Journal>) {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.retain(|watched| watched.strong_count() > 0);
        journals.push(Arc::downgrade(journal));
    }

    /// Learns the name of a kernel.
    pub(crate) fn learn(&self, function: FunctionId, name: Arc<str>) {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).insert(function, name);
    }

    /// Forgets a kernel whose module is gone.
    pub(crate) fn forget(&self, function: FunctionId) {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).remove(&function);
    }

    /// The stream that was asked about if it has unfinished work, or else the only one that has.
    fn suspect(&self, asked: Option<&Journal>) -> Option<Suspect> {
        if let Some(suspect) = asked.and_then(Journal::suspect) {
            return Some(suspect);
        }
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut suspects = journals.iter().filter_map(Weak::upgrade).filter_map(|journal| journal.suspect());
        match (suspects.next(), suspects.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    fn site(&self, suspect: &Suspect) -> Site {
        let mut command = match suspect.entry {
            Some(Entry::Launch(function)) => match self.kernel(function) {
                Some(name) => format!("launch {name}"),
                None => "launch".into(),
            },
            Some(entry) => entry.word().into(),
            None => String::new(),
        };
        match suspect.others {
            0 => {}
            others if command.is_empty() => command = format!("or one of the {others} after it"),
            others => command.push_str(&format!(", or one of the {others} after it")),
        }
        Site { stream: suspect.stream, submission: suspect.submission, command }
    }

    fn kernel(&self, function: FunctionId) -> Option<Arc<str>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&function).cloned()
    }
}
