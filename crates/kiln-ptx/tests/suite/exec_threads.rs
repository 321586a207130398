//! Blocks of one launch run on several threads at once where that is asked for.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, GlobalMemory, LaunchShape, Miss, Options, SimpleMemory, Span};

const STORE: &str = ".version 8.0\n.target sm_90\n.address_size 64
    .visible .entry store(.param .u64 out) {
        .reg .b32 %b; .reg .b64 %o, %i;
        ld.param.u64 %o, [out];
        mov.u32 %b, %ctaid.x;
        mul.wide.u32 %i, %b, 4;
        add.s64 %o, %o, %i;
        st.global.u32 [%o], %b;
        ret;
    }";

/// Memory that answers only once so many threads have asked.
struct Meeting {
    memory: SimpleMemory,
    wanted: usize,
    asked: Mutex<HashSet<ThreadId>>,
    met: Condvar,
}

impl GlobalMemory for Meeting {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let mut asked = self.asked.lock().unwrap();
        asked.insert(std::thread::current().id());
        self.met.notify_all();
        let few = |asked: &mut HashSet<ThreadId>| asked.len() < self.wanted;
        let met = self.met.wait_timeout_while(asked, Duration::from_secs(30), few).unwrap();
        if met.1.timed_out() { None } else { self.memory.span(address) }
    }

    fn miss(&self, address: u64, bytes: u64) -> Miss {
        self.memory.miss(address, bytes)
    }
}

#[test]
fn blocks_run_on_as_many_threads_as_are_asked_for() {
    let program = ExecProgram::new(PtxModule::parse(STORE).unwrap());
    for threads in [1, 3] {
        let mut memory = SimpleMemory::new();
        let out = memory.allocate(4 * 64);
        let meeting = Meeting { memory, wanted: threads, asked: Mutex::default(), met: Condvar::new() };
        let options = Options { threads, ..Options::default() };
        let shape = LaunchShape::linear(64, 1);
        let outcome = program
            .entry("store")
            .unwrap()
            .launch(&shape, &out.to_le_bytes(), &[], &meeting, &options)
            .unwrap();
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        assert_eq!(meeting.asked.lock().unwrap().len(), threads);
        let bytes = meeting.memory.read(out, 4 * 64).unwrap();
        let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        assert!(words.eq(0..64));
    }
}
