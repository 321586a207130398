//! Which ranks were late, where another one is lost because it waited for them in vain.

/// What a simulated machine says of a rank that others wait for and that is there: in `kiln-sim`, `missing_text`.
const LATE: [&str; 2] = ["which has not called it", "which has queued it behind other work"];

/// The late ranks in the cause of a loss of simulated devices of one machine. The device of a rank that waits for longer than its deadline is lost, and its cause has a sentence that says who waits for whom.
pub(crate) fn late_ranks(cause: &str, lost: u32, communicator: &str) -> Vec<u32> {
    let who = format!("rank {lost} of communicator {communicator} (device ");
    let sentence = cause.split_once(&who).and_then(|(_, from)| from.split(';').next());
    let waits = sentence.and_then(|sentence| sentence.split_once(" waits in ")).map(|(_, waits)| waits);
    let late = |part: &str| {
        let (number, why) = part.split_once(", ")?;
        let is_late = LATE.iter().any(|late| why.starts_with(late));
        number.parse().ok().filter(|_| is_late)
    };
    waits.into_iter().flat_map(|waits| waits.split("rank ").skip(1)).filter_map(late).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ranks_are_found_in_the_sentence_of_the_rank_that_is_lost() {
        let cause = "LAUNCH_TIMEOUT: rank 0 of communicator ab (device 0) waits in collective 3, reduce of f32 to rank 0, for rank 3, which has not called it and rank 5, which has queued it behind other work; \
                     rank 1 of communicator ab (device 1) waits in collective 3, reduce of f32 to rank 0, for rank 2, which is lost: gone and rank 4, which has not called it; next";
        assert_eq!(late_ranks(cause, 0, "ab"), [3, 5]);
        assert_eq!(late_ranks(cause, 1, "ab"), [4]);
        for (cause, lost, communicator) in
            [(cause, 2, "ab"), (cause, 1, "cd"), ("its thread panicked", 1, "ab")]
        {
            assert_eq!(late_ranks(cause, lost, communicator), [0_u32; 0]);
        }
    }
}
