//! The sticky error of a lost device.
//!
//! A sticky code says that the context is lost, and not which kernel caused it. The first error is kept, with the submission that most likely caused it, and
//! every later call returns it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use kiln_driver::{Code, Error, Fault, FunctionId, Site};

use crate::stream_progress::{SubmissionKind, SubmissionLog, Suspect};

/// Whether a device is lost, and what is needed to say why.
#[derive(Default)]
#[repr(C)]
pub(crate) struct StickyError {
    first: OnceLock<Error>,
    journals: Mutex<Vec<Weak<SubmissionLog>>>,
    kernels: Mutex<HashMap<FunctionId, Arc<str>>>,
}

impl StickyError {
    /// The error that lost the device.
    pub(crate) fn first(&self) -> Option<&Error> {
        self.first.get()
    }

    /// Records a sticky code, unless there is one already, and returns the error of the call. `asked` is the stream the call was about; its work is
    /// suspected before that of others.
    pub(crate) fn lose(&self, call: &'static str, code: Code, asked: Option<&SubmissionLog>) -> Error {
        let first = self.first.get_or_init(|| {
            let suspect = self.suspect(asked);
            let detail = match &suspect {
                Some(_) => "was reported after the work was queued",
                None => "was reported, and no queued work is known to have caused it",
            };
            let error = Error::lost(call, Fault { code, detail: detail.into() });
            match suspect {
                Some((suspect, elsewhere)) => error.at(self.site(&suspect, elsewhere)),
                None => error,
            }
        });
        first.clone().seen_by(call)
    }

    /// Watches the submissions of a stream.
    pub(crate) fn watch(&self, submissions: &Arc<SubmissionLog>) {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.retain(|watched| watched.strong_count() > 0);
        journals.push(Arc::downgrade(submissions));
    }

    /// Records the name of a kernel.
    pub(crate) fn learn(&self, function: FunctionId, name: Arc<str>) {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).insert(function, name);
    }

    /// Removes a kernel whose module was unloaded.
    pub(crate) fn forget(&self, function: FunctionId) {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).remove(&function);
    }

    /// The work of the stream that was asked about if some is unfinished, or else that of the only stream with any; and
    /// whether another stream may be to blame as well.
    fn suspect(&self, asked: Option<&SubmissionLog>) -> Option<(Suspect, bool)> {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let watched =
            journals.iter().filter_map(Weak::upgrade).filter_map(|submissions| submissions.suspect());
        let mut suspects: Vec<Suspect> = watched.collect();
        let asked = asked.and_then(SubmissionLog::suspect);
        let at = match &asked {
            Some(asked) => suspects.iter().position(|suspect| suspect.stream == asked.stream),
            None => (suspects.len() == 1).then_some(0),
        };
        let found = at.map(|at| suspects.swap_remove(at)).or(asked)?;
        Some((found, !suspects.is_empty()))
    }

    fn site(&self, suspect: &Suspect, elsewhere: bool) -> Site {
        let name = match suspect.kind {
            Some(SubmissionKind::Launch(function)) => match self.kernel(function) {
                Some(name) => format!("launch {name}"),
                None => "launch".into(),
            },
            Some(entry) => entry.word().into(),
            None => String::new(),
        };
        let later = match suspect.others {
            0 => String::new(),
            others => format!("or one of the {others} after it"),
        };
        let other = if elsewhere { "or work on another stream" } else { "" };
        let parts: Vec<&str> =
            [name.as_str(), &later, other].into_iter().filter(|part| !part.is_empty()).collect();
        Site { stream: suspect.stream, submission: suspect.submission, command: parts.join(", ") }
    }

    fn kernel(&self, function: FunctionId) -> Option<Arc<str>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&function).cloned()
    }
}
