//! A fence orders what is on both sides of it: the executor, which knows what happened before what, finds a race where one is missing.

use crate::rig::{Launch, Left, interpret, simulate};
use kiln_ir::{MemoryScope, Program, PtxTarget, ThreadOrder};

/// One warp passes a value in shared memory to another: it writes the value, then a flag; the other one sees the flag, then reads.
fn pass_on(behind_the_write: &str, before_the_read: &str) -> Program {
    pass_with(["relaxed.block"; 2], behind_the_write, before_the_read)
}

/// The same, with atomics of these orders and scopes.
fn pass_with([write, read]: [&str; 2], behind_the_write: &str, before_the_read: &str) -> Program {
    let text = format!(
        "kernel pass_on(inout flag: u32[1], inout seen: u32[1]) block(64) {{
            shared data: u32[1];
            if thread.x == 0 {{
                data[0] = 41;
                {behind_the_write}
                atomic_exchange.{write}(flag[0], 1);
            }}
            if thread.x == 32 {{
                var told: u32 = 0;
                var tries: u32 = 0;
                while (told == 0) & (tries < 1000) {{
                    told = atomic_add.{read}(flag[0], 0);
                    tries = tries + 1;
                }}
                {before_the_read}
                if told == 1 {{ seen[0] = data[0] + 1; }}
            }}
        }}"
    );
    Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn launch() -> Launch {
    let buffers = vec![vec![0; 4], vec![0; 4]];
    Launch { grid: [1, 1, 1], dynamic_shared_bytes: 0, scalars: Vec::new(), buffers }
}

/// What the reader saw on the executor, under several schedules; or what the executor found.
fn simulated(program: &Program) -> Vec<Result<u32, String>> {
    let seen = |left: Left| match left {
        Left::Buffers(buffers) => u32::from_le_bytes(buffers[1][..].try_into().unwrap()),
        trap @ Left::Trap { .. } => panic!("{trap:?}"),
    };
    let one = |seed| simulate(program, &launch(), PtxTarget::new(90).unwrap(), seed).map(seen);
    (0..20).map(one).collect()
}

#[test]
fn fences_of_every_scope_hand_on_what_was_written() {
    for scope in MemoryScope::ALL {
        let fence = format!("fence {scope};");
        let program = pass_on(&fence, &fence);
        for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
            let (Left::Buffers(left), _) = interpret(&program, &launch(), order) else { panic!("a trap") };
            assert!(matches!(left[1][0], 0 | 42), "{order:?}: {left:?}");
        }
        let all = simulated(&program);
        assert!(all.iter().all(|seen| matches!(seen, Ok(0 | 42))), "{scope}: {all:?}");
        assert!(all.contains(&Ok(42)), "{scope}: some thread sees the flag");
        let text = program.emit(PtxTarget::new(70).unwrap()).text;
        let name = match scope {
            MemoryScope::Block => "fence.acq_rel.cta;",
            MemoryScope::Device => "fence.acq_rel.gpu;",
            MemoryScope::System => "fence.acq_rel.sys;",
        };
        assert_eq!(text.matches(name).count(), 2, "{text}");
    }
}

#[test]
fn without_a_fence_on_each_side_it_is_a_race() {
    for (write, read) in [("", ""), ("fence block;", ""), ("", "fence block;")] {
        let all = simulated(&pass_on(write, read));
        let races = all.iter().filter(|seen| seen.is_err()).count();
        assert!(races > 0, "with `{write}` and `{read}` nothing orders the two: {all:?}");
        let named = |seen: &Result<u32, String>| seen.as_ref().is_err_and(|what| what.contains("race"));
        assert_eq!(all.iter().filter(|seen| named(seen)).count(), races, "{all:?}");
    }
}

#[test]
fn orders_of_atomics_hand_on_what_was_written() {
    for scope in MemoryScope::ALL {
        for [write, read] in
            [["release", "acquire"], ["acq_rel", "acq_rel"], ["seq_cst", "seq_cst"], ["release", "seq_cst"]]
        {
            let orders = [format!("{write}.{scope}"), format!("{read}.{scope}")];
            let all = simulated(&pass_with([&orders[0], &orders[1]], "", ""));
            assert!(all.iter().all(|seen| matches!(seen, Ok(0 | 42))), "{orders:?}: {all:?}");
            assert!(all.contains(&Ok(42)), "{orders:?}");
        }
    }
    for [write, read] in [["release", "relaxed"], ["relaxed", "acquire"], ["acquire", "release"]] {
        let orders = [format!("{write}.block"), format!("{read}.block")];
        let all = simulated(&pass_with([&orders[0], &orders[1]], "", ""));
        assert!(all.iter().any(Result::is_err), "{orders:?} order too little: {all:?}");
    }
}

#[test]
fn a_sequentially_consistent_atomic_has_a_fence_of_its_scope_before_it() {
    for (scope, name) in [("block", "cta"), ("device", "gpu"), ("system", "sys")] {
        let text = format!("kernel k(inout x: u32[1]) block(1) {{ atomic_add.seq_cst.{scope}(x[0], 1); }}");
        let text = Program::parse(&text).unwrap().emit(PtxTarget::new(70).unwrap()).text;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let fence = lines.iter().position(|line| *line == format!("fence.sc.{name};")).expect(&text);
        let atomic =
            lines.iter().position(|line| line.contains(&format!("atom.acq_rel.{name}."))).expect(&text);
        assert!(fence < atomic, "{text}");
    }
}
