//! What PyTorch's snapshot viewer makes of a snapshot, held against the fields that PyTorch documents.

use std::collections::BTreeMap;

use super::pickled::Pickled;

/// What is seen.
pub(crate) struct View {
    /// Address, bytes and first frame of each live block, in the order of addresses.
    pub live: Vec<(u64, u64, String)>,
    pub allocations: usize,
    pub frees: usize,
    pub refusals: usize,
}

impl View {
    /// Looks at a snapshot; stops the test at a field that is not as documented.
    pub(crate) fn of(snapshot: &[u8]) -> Self {
        let snapshot = Pickled::read(snapshot);
        let traces = snapshot.at("device_traces").list();
        assert_eq!(traces.len(), 1, "one device");
        let mut view = Self { live: Vec::new(), allocations: 0, frees: 0, refusals: 0 };
        for segment in snapshot.at("segments").list() {
            view.look_at_segment(segment);
        }
        assert!(view.live.is_sorted(), "segments are in the order of addresses");
        view.look_at_events(traces[0].list());
        view
    }

    fn look_at_segment(&mut self, segment: &Pickled) {
        assert_eq!(segment.at("device").integer(), 0);
        assert!(["small", "large"].contains(&segment.at("segment_type").text()));
        segment.at("stream").integer();
        let mut at = segment.at("address").integer();
        let end = at.checked_add(segment.at("total_size").integer()).unwrap();
        let mut live_bytes = 0;
        for block in segment.at("blocks").list() {
            let (address, bytes) = (block.at("address").integer(), block.at("size").integer());
            assert_eq!(address, at, "blocks lie side by side");
            at = address.checked_add(bytes).unwrap();
            assert!(bytes > 0 && block.at("requested_size").integer() <= bytes);
            match block.at("state").text() {
                "active_allocated" => {
                    live_bytes += bytes;
                    self.live.push((address, bytes, name_of(block)));
                }
                "inactive" => assert!(block.at("frames").list().is_empty()),
                other => panic!("no state: {other}"),
            }
        }
        assert_eq!(at, end, "and fill their segment");
        for key in ["allocated_size", "active_size"] {
            assert_eq!(segment.at(key).integer(), live_bytes);
        }
    }

    /// Follows the events by address, as the viewer does.
    fn look_at_events(&mut self, events: &[Pickled]) {
        let mut live = BTreeMap::new();
        let mut last_time = 0;
        for event in events {
            let (address, bytes) = (event.at("addr").integer(), event.at("size").integer());
            let time = event.at("time_us").integer();
            assert!(time >= last_time, "in the order of time");
            last_time = time;
            event.at("stream").integer();
            match event.at("action").text() {
                "alloc" => {
                    self.allocations += 1;
                    live.insert(address, (bytes, name_of(event)));
                }
                "free_requested" => {}
                "free_completed" => {
                    self.frees += 1;
                    // A block whose allocation is not shown was there before.
                    if let Some((allocated, _)) = live.remove(&address) {
                        assert_eq!(allocated, bytes, "of {address:#x}");
                    }
                }
                "oom" => {
                    event.at("device_free").integer();
                    self.refusals += 1;
                }
                other => panic!("no action: {other}"),
            }
        }
        for (address, bytes, name) in &self.live {
            assert_eq!(live.get(address), Some(&(*bytes, name.clone())), "{address:#x}");
        }
    }
}

/// The first frame, which has what every frame has.
fn name_of(item: &Pickled) -> String {
    let frame = &item.at("frames").list()[0];
    frame.at("filename").text();
    frame.at("line").integer();
    frame.at("name").text().to_owned()
}
