//! When a service that failed requests is asked again.
//!
//! Turns count the requests a fleet is given, so that how often a failing device is tried depends on the load and not on
//! the time. A service whose device failed is avoided for [`FIRST_PAUSE_TURNS`] requests. Then it gets one request, the
//! probe. If the probe fails, the pause doubles, up to [`LONGEST_PAUSE_TURNS`]; once a request succeeds, the service takes
//! its share again.

/// Requests that go elsewhere after a failure.
const FIRST_PAUSE_TURNS: u64 = 16;

/// Requests that go elsewhere between two probes, at most.
const LONGEST_PAUSE_TURNS: u64 = 1024;

/// What a fleet may send to a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Its share.
    Trusted,
    /// One request, to find out whether it works again.
    ProbeDue,
    /// Nothing, while another service takes requests.
    Avoided,
}

/// The account of one service.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probation {
    /// The pause, and the turn at which it ends; none while the service is trusted.
    pause: Option<(u64, u64)>,
}

impl Probation {
    /// What may be sent in that turn to a service that fails requests, or does not.
    pub(crate) fn standing(&mut self, turn: u64, is_failing: bool) -> Standing {
        match (is_failing, self.pause) {
            (false, _) => {
                self.pause = None;
                Standing::Trusted
            }
            (true, None) => {
                self.pause = Some((FIRST_PAUSE_TURNS, turn.saturating_add(FIRST_PAUSE_TURNS)));
                Standing::Avoided
            }
            (true, Some((_, end))) if turn < end => Standing::Avoided,
            (true, Some(_)) => Standing::ProbeDue,
        }
    }

    /// The probe is sent in that turn.
    pub(crate) fn probe(&mut self, turn: u64) {
        if let Some((pause, _)) = self.pause {
            let pause = pause.saturating_mul(2).min(LONGEST_PAUSE_TURNS);
            self.pause = Some((pause, turn.saturating_add(pause)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turns in which a service that always fails gets a request.
    fn probes(turns: u64) -> Vec<u64> {
        let mut probation = Probation::default();
        let due = |turn: &u64| {
            let due = probation.standing(*turn, true) == Standing::ProbeDue;
            if due {
                probation.probe(*turn);
            }
            due
        };
        (0..turns).filter(due).collect()
    }

    #[test]
    fn pauses_double_to_their_limit() {
        let probes = probes(10_000);
        let pauses: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!((probes[0], &pauses[..6]), (16, &[32, 64, 128, 256, 512, 1024][..]));
        assert!(pauses[6..].iter().all(|pause| *pause == LONGEST_PAUSE_TURNS));
    }

    #[test]
    fn a_service_that_works_again_is_trusted_at_once_and_starts_over() {
        let mut probation = Probation::default();
        assert_eq!(probation.standing(5, true), Standing::Avoided);
        assert_eq!(probation.standing(5 + FIRST_PAUSE_TURNS, true), Standing::ProbeDue);
        probation.probe(5 + FIRST_PAUSE_TURNS);
        assert_eq!(probation.standing(30, false), Standing::Trusted);
        assert_eq!(probation.standing(31, true), Standing::Avoided);
        assert_eq!(probation.standing(31 + FIRST_PAUSE_TURNS, true), Standing::ProbeDue);
    }
}
