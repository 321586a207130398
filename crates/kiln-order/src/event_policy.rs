//! Setting: whether an event is recorded after every submission or when another stream first waits for it.

/// When an event is recorded for work that another stream consumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recording {
    /// When it is first needed; cheap, but the wait may cover later work. A stream whose results keep being consumed
    /// elsewhere changes to recording at once.
    #[default]
    Adaptive,
    /// Only when it is needed.
    OnDemand,
    /// After every submission.
    AtOnce,
}
