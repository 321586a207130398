//! What each stream is already ordered after: one vector clock for each, and how far each is known to be done.
//!
//! An edge joins clocks: what the source was ordered after, the target now is too, so later edges between the same streams often turn out
//! to exist already. Pure arithmetic; tested against reachability in a graph.

use crate::stamp::Stamp;
use crate::stream_key::StreamKey;
use crate::vector_clock::StreamClock;

/// Clocks that are kept of the past of a stream. Of one that is far behind its submissions there would be more and more.
const HISTORY_LIMIT: usize = 64;

/// Vector clocks of streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockTable {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    submitted: u64,
    completed: u64,
    /// What it runs after.
    after: StreamClock,
    /// What `after` was when submissions were made that others may name: number and clock, newest last.
    history: Vec<(u64, StreamClock)>,
}

impl ClockTable {
    /// A submission was made.
    pub(crate) fn submit(&mut self, stamp: Stamp) {
        let row = self.row_mut(stamp.stream);
        row.submitted = row.submitted.max(stamp.number);
    }

    /// Everything on a stream up to a number is done.
    pub(crate) fn complete(&mut self, stamp: Stamp) {
        let row = self.row_mut(stamp.stream);
        row.submitted = row.submitted.max(stamp.number);
        row.completed = row.completed.max(stamp.number);
        let completed = row.completed;
        row.history.retain(|(number, _)| *number > completed);
    }

    /// From now on `stream` runs after `stamp`, and after everything that `stamp` ran after.
    pub(crate) fn order(&mut self, stream: StreamKey, stamp: Stamp) {
        let mut joined = self.clock_at(stamp);
        joined.learn(stamp);
        let row = self.row_mut(stream);
        if row.history.last().is_none_or(|(number, _)| *number < row.submitted) {
            row.history.push((row.submitted, row.after.clone()));
        }
        if row.history.len() > HISTORY_LIMIT {
            // Of the oldest two the later one is taken to have run after no more than the earlier one did.
            let (number, _) = row.history.remove(1);
            row.history[0].0 = number;
        }
        row.after.join(&joined);
    }

    /// Whether what is submitted to `stream` from now on runs after `stamp`.
    pub(crate) fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        let is_after = || self.rows.get(stream.index()).is_some_and(|row| row.after.covers(stamp));
        stream == stamp.stream || self.is_complete(stamp) || is_after()
    }

    /// Whether a submission is known to be done.
    pub(crate) fn is_complete(&self, stamp: Stamp) -> bool {
        let completed = self.rows.get(stamp.stream.index()).map_or(0, |row| row.completed);
        stamp.number <= completed
    }

    /// What a submission ran after, itself not included.
    fn clock_at(&self, stamp: Stamp) -> StreamClock {
        let Some(row) = self.rows.get(stamp.stream.index()) else { return StreamClock::default() };
        let earlier = row.history.iter().find(|(number, _)| *number >= stamp.number);
        earlier.map_or(&row.after, |(_, clock)| clock).clone()
    }

    fn row_mut(&mut self, stream: StreamKey) -> &mut Row {
        let at = stream.index();
        if at >= self.rows.len() {
            self.rows.resize_with(at + 1, Row::default);
        }
        &mut self.rows[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(stream: usize, number: u64) -> Stamp {
        Stamp { stream: StreamKey::new(stream).unwrap(), number }
    }

    #[test]
    fn an_edge_brings_along_what_its_source_came_after() {
        let mut clocks = ClockTable::default();
        clocks.submit(stamp(0, 1));
        clocks.order(stamp(1, 0).stream, stamp(0, 1));
        clocks.submit(stamp(1, 1));
        clocks.order(stamp(2, 0).stream, stamp(1, 1));
        assert!(clocks.is_ordered(stamp(2, 0).stream, stamp(0, 1)), "by way of stream 1");
    }

    #[test]
    fn the_past_of_a_stream_that_is_never_done_stays_small_and_claims_nothing() {
        let [a, b, c] = [0, 1, 2].map(|stream| StreamKey::new(stream).unwrap());
        let mut clocks = ClockTable::default();
        for number in 1..=1000 {
            clocks.submit(Stamp { stream: a, number });
            clocks.order(b, Stamp { stream: a, number });
            clocks.order(b, Stamp { stream: a, number });
            clocks.submit(Stamp { stream: b, number });
        }
        assert!(clocks.row_mut(b).history.len() <= HISTORY_LIMIT);
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
        after: std::collections::HashMap<(usize, u64), Vec<(usize, u64)>>,
    }

    impl Graph {
        fn reaches(&self, from: (usize, u64), to: (usize, u64)) -> bool {
            let same_stream = from.0 == to.0 && from.1 >= to.1;
            same_stream
                || self.after.get(&from).is_some_and(|next| next.iter().any(|next| self.reaches(*next, to)))
        }
    }

    /// Numbers from a seed.
    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 42;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn clocks_agree_with_reachability() {
        const STREAMS: usize = 4;
        let (seeds, turns) = if cfg!(miri) { (2, 20) } else { (200, 60) };
        for seed in 0..seeds {
            let mut random = random(seed);
            let (mut clocks, mut graph) = (ClockTable::default(), Graph::default());
            let mut numbers = [0_u64; STREAMS];
            let mut edges: Vec<Vec<(usize, u64)>> = vec![Vec::new(); STREAMS];
            for _ in 0..turns {
                let stream = random(STREAMS as u64) as usize;
                let other = random(STREAMS as u64) as usize;
                if random(3) == 0 && numbers[other] > 0 && other != stream {
                    let number = random(numbers[other]) + 1;
                    clocks.order(StreamKey::new(stream).unwrap(), stamp(other, number));
                    edges[stream].push((other, number));
                } else {
                    numbers[stream] += 1;
                    let node = (stream, numbers[stream]);
                    let mut after = std::mem::take(&mut edges[stream]);
                    after.extend((node.1 > 1).then_some((node.0, node.1 - 1)));
                    graph.after.insert(node, after);
                    clocks.submit(stamp(stream, node.1));
                }
            }
            for (from, to) in (0..STREAMS).flat_map(|from| (0..STREAMS).map(move |to| (from, to))) {
                for number in 1..=numbers[to] {
                    // The next submission to `from`, with the edges it would have.
                    let mut next = edges[from].clone();
                    next.extend((numbers[from] > 0).then_some((from, numbers[from])));
                    let truth = from == to || next.iter().any(|next| graph.reaches(*next, (to, number)));
                    let said = clocks.is_ordered(StreamKey::new(from).unwrap(), stamp(to, number));
                    assert_eq!(said, truth, "seed {seed}: is {from} after {}?", stamp(to, number));
                }
            }
        }
    }
}
