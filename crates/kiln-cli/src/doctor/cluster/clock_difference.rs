//! How far the clocks of the ranks differ.
//!
//! Each rank in turn asks rank 0 for the time and compares the answer with the middle between its question and the answer. The difference is exact to
//! half of the time that took.

use std::time::{SystemTime, UNIX_EPOCH};

use kiln::group::{Rendezvous, RendezvousError};

use super::rank_report::RankReport;

/// Questions of each rank; the quickest answer counts.
const QUESTIONS: u32 = 3;

/// Fills in the differences.
///
/// # Errors
/// A rank or the store is lost.
pub(super) fn measure(job: &Rendezvous, ranks: &mut [RankReport]) -> Result<(), RendezvousError> {
    let mut measured = None;
    for rank in 1..job.size() {
        for question in 0..QUESTIONS {
            let key = |what: &str| format!("doctor clock {what}/{rank}/{question}");
            if job.rank() == 0 {
                job.put(&key("turn"), &[])?;
                job.get(&key("question"))?;
                job.put(&key("answer"), &now_us().to_le_bytes())?;
            } else if job.rank() == rank {
                job.get(&key("turn"))?;
                let asked = now_us();
                job.put(&key("question"), &[])?;
                let answer = job.get(&key("answer"))?;
                let answered = now_us();
                let at_zero = i64::from_le_bytes(answer.try_into().unwrap_or_default());
                measured = better(measured, difference(asked, at_zero, answered));
            }
        }
    }
    let (ahead, error) = measured.unwrap_or((0, 0));
    let own = [ahead.to_le_bytes(), error.to_le_bytes()].concat();
    let all = job.exchange("doctor clocks", &own)?;
    for (report, value) in ranks.iter_mut().zip(all.iter().flatten()) {
        let number = |bytes: Option<&[u8]>| Some(i64::from_le_bytes(bytes?.try_into().ok()?));
        report.clock_ahead_us = number(value.get(..8));
        report.clock_error_us = number(value.get(8..16));
    }
    Ok(())
}

/// How far the asking clock is ahead, and how exact that is.
fn difference(asked: i64, at_zero: i64, answered: i64) -> (i64, i64) {
    let error = answered.saturating_sub(asked).max(0) / 2;
    (asked.saturating_add(error).saturating_sub(at_zero), error)
}

fn better(before: Option<(i64, i64)>, now: (i64, i64)) -> Option<(i64, i64)> {
    match before {
        Some(before) if before.1 <= now.1 => Some(before),
        _ => Some(now),
    }
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_quickest_question_counts() {
        assert_eq!(difference(1_000, 500, 1_100), (550, 50));
        assert_eq!(difference(1_000, 2_000, 1_020), (-990, 10));
        assert_eq!(better(Some((550, 50)), (-990, 10)), Some((-990, 10)));
        assert_eq!(better(Some((550, 5)), (-990, 10)), Some((550, 5)));
    }
}
