//! What each stream is already ordered after: one vector clock per stream, and one for the host.
//!
//! An edge joins clocks: what the source was ordered after, the target now is too, so later edges between the same
//! streams often turn out to exist already. Pure arithmetic; tested against reachability in a graph.

use crate::stamp::{Stamp, StreamKey};

/// Clocks that are kept of the past of a stream. Of one that is far behind its submissions there would be more and more.
const HISTORY_LIMIT: usize = 64;

/// Vector clocks of streams.
///
/// ```
/// use kiln_mem::{Clocks, Stamp, StreamKey};
///
/// let (a, b, c) = (StreamKey::new(0), StreamKey::new(1), StreamKey::new(2));
/// let mut clocks = Clocks::default();
/// clocks.submit(Stamp { stream: a, number: 1 });
/// clocks.order(b, Stamp { stream: a, number: 1 });
/// clocks.submit(Stamp { stream: b, number: 1 });
/// clocks.order(c, Stamp { stream: b, number: 1 });
/// assert!(clocks.is_ordered(c, Stamp { stream: a, number: 1 }), "by way of b");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    submitted: u64,
    completed: u64,
    /// For each stream, the number up to which this one runs after it.
    after: Vec<u64>,
    /// What `after` was when submissions were made that others may name: number and clock, newest last.
    history: Vec<(u64, Vec<u64>)>,
}

impl Clocks {
    /// A submission was made.
    pub fn submit(&mut self, stamp: Stamp) {
        let row = self.row(stamp.stream);
        row.submitted = row.submitted.max(stamp.number);
    }

    /// Everything on a stream up to a number is done.
    pub fn complete(&mut self, stamp: Stamp) {
        let row = self.row(stamp.stream);
        row.submitted = row.submitted.max(stamp.number);
        row.completed = row.completed.max(stamp.number);
        let completed = row.completed;
        row.history.retain(|(number, _)| *number > completed);
    }

    /// From now on `stream` runs after `stamp`, and after everything that `stamp` ran after.
    pub fn order(&mut self, stream: StreamKey, stamp: Stamp) {
        let mut joined = self.clock_at(stamp);
        let source = stamp.stream.number() as usize;
        if joined.len() <= source {
            joined.resize(source + 1, 0);
        }
        joined[source] = joined[source].max(stamp.number);
        let row = self.row(stream);
        if row.history.last().is_none_or(|(number, _)| *number < row.submitted) {
            row.history.push((row.submitted, row.after.clone()));
        }
        if row.history.len() > HISTORY_LIMIT {
            // Of the oldest two the later one is taken to have run after no more than the earlier one did.
            let (number, _) = row.history.remove(1);
            row.history[0].0 = number;
        }
        if row.after.len() < joined.len() {
            row.after.resize(joined.len(), 0);
        }
        row.after.iter_mut().zip(joined).for_each(|(known, new)| *known = (*known).max(new));
    }

    /// The newest submission.
    pub fn latest(&self, stream: StreamKey) -> u64 {
        self.rows.get(stream.number() as usize).map_or(0, |row| row.submitted)
    }

    /// Whether what is submitted to `stream` from now on runs after `stamp`.
    pub fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        let after = || {
            let row = self.rows.get(stream.number() as usize)?;
            row.after.get(stamp.stream.number() as usize).copied()
        };
        stream == stamp.stream
            || self.is_complete(stamp)
            || after().is_some_and(|after| after >= stamp.number)
    }

    /// Whether a submission is known to be done.
    pub fn is_complete(&self, stamp: Stamp) -> bool {
        let completed = self.rows.get(stamp.stream.number() as usize).map_or(0, |row| row.completed);
        stamp.number <= completed
    }

    /// What a submission ran after, itself not included.
    fn clock_at(&self, stamp: Stamp) -> Vec<u64> {
        let Some(row) = self.rows.get(stamp.stream.number() as usize) else { return Vec::new() };
        let earlier = row.history.iter().find(|(number, _)| *number >= stamp.number);
        earlier.map_or(&row.after, |(_, clock)| clock).clone()
    }

    fn row(&mut self, stream: StreamKey) -> &mut Row {
        let at = stream.number() as usize;
        if at >= self.rows.len() {
            self.rows.resize_with(at + 1, Row::default);
        }
        &mut self.rows[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_of_a_stream_that_is_never_done_stays_small_and_claims_nothing() {
        let [a, b, c] = [0, 1, 2].map(StreamKey::new);
        let mut clocks = Clocks::default();
        for number in 1..=1000 {
            clocks.submit(Stamp { stream: a, number });
            clocks.order(b, Stamp { stream: a, number });
            clocks.order(b, Stamp { stream: a, number });
            clocks.submit(Stamp { stream: b, number });
        }
        assert!(clocks.row(b).history.len() <= HISTORY_LIMIT);
        for number in [1, 2, 500, 990, 1000] {
            let mut clocks = clocks.clone();
            clocks.order(c, Stamp { stream: b, number });
            let is_after = |number| clocks.is_ordered(c, Stamp { stream: a, number });
            assert!(!is_after(number + 1), "submission {number} ran after nothing later");
            // What lies near is known exactly.
            assert!(number < 990 || is_after(number));
        }
    }

    /// Submissions as nodes, with an edge to what each directly runs after.
    #[derive(Default)]
    struct Graph {
        after: std::collections::HashMap<(u32, u64), Vec<(u32, u64)>>,
    }

    impl Graph {
        fn reaches(&self, from: (u32, u64), to: (u32, u64)) -> bool {
            let same_stream = from.0 == to.0 && from.1 >= to.1;
            same_stream
                || self.after.get(&from).is_some_and(|next| next.iter().any(|next| self.reaches(*next, to)))
        }
    }

    #[test]
    fn clocks_agree_with_reachability() {
        const STREAMS: u64 = 4;
        let (seeds, turns) = if cfg!(miri) { (2, 20) } else { (200, 60) };
        for seed in 0..seeds {
            let mut random = crate::heap::lcg(seed);
            let (mut clocks, mut graph) = (Clocks::default(), Graph::default());
            let mut numbers = [0_u64; STREAMS as usize];
            let mut edges: Vec<Vec<(u32, u64)>> = vec![Vec::new(); STREAMS as usize];
            for _ in 0..turns {
                let stream = (random() % STREAMS) as usize;
                let key = StreamKey::new(stream as u32);
                let other = (random() % STREAMS) as usize;
                if random().is_multiple_of(3) && numbers[other] > 0 && other != stream {
                    let number = random() % numbers[other] + 1;
                    clocks.order(key, Stamp { stream: StreamKey::new(other as u32), number });
                    edges[stream].push((other as u32, number));
                } else {
                    numbers[stream] += 1;
                    let node = (stream as u32, numbers[stream]);
                    let mut after = std::mem::take(&mut edges[stream]);
                    after.extend((node.1 > 1).then_some((node.0, node.1 - 1)));
                    graph.after.insert(node, after);
                    clocks.submit(Stamp { stream: key, number: node.1 });
                }
            }
            for (from, to) in
                (0..STREAMS as u32).flat_map(|from| (0..STREAMS as u32).map(move |to| (from, to)))
            {
                for number in 1..=numbers[to as usize] {
                    let stamp = Stamp { stream: StreamKey::new(to), number };
                    // The next submission to `from`, with the edges it would have.
                    let mut next = edges[from as usize].clone();
                    next.extend((numbers[from as usize] > 0).then_some((from, numbers[from as usize])));
                    let truth = from == to || next.iter().any(|next| graph.reaches(*next, (to, number)));
                    let said = clocks.is_ordered(StreamKey::new(from), stamp);
                    assert_eq!(said, truth, "seed {seed}: is {from} after {stamp}?");
                }
            }
        }
    }
}
