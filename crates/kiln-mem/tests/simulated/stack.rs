//! A stack is text, and the text is the stack.

use crate::rig::{MIB, Random, Rig};
use kiln_mem::layer::{FailPlan, GuardConfig};
use kiln_mem::resource_stack::{StackBase, StackContext, StackLayer, StackProblem};
use kiln_mem::{AllocationRequest, ByteSize, MemoryResourceExt, Spare, Stack};
use kiln_sim::{DeviceConfig, FaultPlan};

fn random_layer(random: &mut Random) -> StackLayer {
    let size = |random: &mut Random| ByteSize(random.size(1 << 40));
    match random.below(9) {
        0 => StackLayer::Budget(size(random)),
        1 => StackLayer::Limit(size(random)),
        2 => StackLayer::Statistics,
        3 => StackLayer::Trace(1 + random.below(1000) as usize),
        4 => StackLayer::Guard(GuardConfig {
            zone_bytes: random.below(5000),
            quarantine_bytes: random.below(1 << 30),
        }),
        5 => StackLayer::Leaks(random.below(3)),
        6 => StackLayer::Align(ByteSize(1 << random.below(33))),
        7 => StackLayer::Retry(random.below(100) as u32),
        _ => {
            // Not 1, which would be every time.
            let mut some = |most| if random.below(2) == 0 { 0 } else { 2 + random.below(most) };
            StackLayer::Fail(FailPlan {
                every_allocation: some(100),
                every_free: some(100),
                above_bytes: some(1 << 40),
            })
        }
    }
}

fn random_stack(seed: u64) -> Stack {
    let mut random = Random::new(seed);
    let base = StackBase::ALL[random.below(StackBase::ALL.len() as u64) as usize];
    let layers = (0..random.below(8)).map(|_| random_layer(&mut random));
    // A guard looks at device memory.
    let layers = layers.filter(|layer| base != StackBase::Host || !matches!(layer, StackLayer::Guard(_)));
    let stack = layers.fold(Stack::new(base), Stack::inside);
    // The default is not said by what is built from it.
    let stack =
        if seed.is_multiple_of(3) { stack.with_spare(Spare::percent(10 + seed as u32 % 900)) } else { stack };
    if seed.is_multiple_of(5) { stack.with_mapping(ByteSize(seed * 1001)) } else { stack }
}

#[test]
fn what_a_stack_prints_is_read_back_as_the_same_stack() {
    for seed in 0..5000 {
        let stack = random_stack(seed);
        let text = stack.to_string();
        assert_eq!(text.parse::<Stack>().as_ref(), Ok(&stack), "{text}");
        let squeezed = text.replace(' ', "");
        assert_eq!(squeezed.parse::<Stack>(), Ok(stack.clone()), "blanks mean nothing: {squeezed}");
        let spread = text.replace('(', " ( ").replace(')', " ) ").replace(',', " ,\n");
        assert_eq!(spread.parse::<Stack>(), Ok(stack), "{spread}");
    }
}

#[test]
fn what_is_built_prints_the_stack_it_was_built_from() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let context = StackContext::new(rig.driver(), rig.order());
    for text in [
        "heap",
        "heap(spare=50%)",
        "heap(spare=9%..60%)",
        "stats(heap(spare=0%))",
        "heap(mapping=1 GiB)",
        "stats(heap(spare=9%..60%, mapping=0 B))",
        "chunks",
        "host",
        "direct",
        "pool",
        "budget(8 GiB, stats(heap))",
        "limit(3 B, heap)",
        "trace(16, leaks(heap))",
        "leaks(5, trace(7, pool))",
        "guard(512 B, 0 B, heap)",
        "guard(align(4 KiB, retry(2, direct)))",
        "fail(3, heap)",
        "fail(3, 4, heap)",
        "fail(0, 0, 1 MiB, stats(stats(heap)))",
    ] {
        let stack: Stack = text.parse().unwrap();
        let built = stack.build(&context).unwrap();
        assert_eq!((built.to_string().as_str(), stack.to_string().as_str()), (text, text));
    }
    rig.finish(&[stream]);
}

#[test]
fn every_random_stack_can_be_built_and_used() {
    for seed in 0..200 {
        let stack = random_stack(seed);
        let rig = Rig::new(seed, 64 * MIB);
        let stream = rig.stream();
        let resource = stack.build(&StackContext::new(rig.driver(), rig.order())).unwrap();
        assert_eq!(resource.to_string(), stack.to_string());
        // Layers may refuse or fail on purpose; what they give they take back.
        for bytes in [0, 1, 1000] {
            if let Ok(block) = resource.allocate(&AllocationRequest::new(bytes, stream)) {
                let mut left = Some(block);
                while let Some(block) = left.take() {
                    left = resource.free(block).err().map(|failed| failed.block);
                }
            }
        }
        resource.trim().unwrap();
        assert_eq!(resource.accounting().live_blocks, 0, "{stack}");
        drop(resource);
        rig.finish(&[stream]);
    }
}

#[test]
fn a_heap_on_a_device_without_pages_says_what_it_is() {
    let rig = Rig::with(1, DeviceConfig::small(), FaultPlan::none());
    let context = StackContext::new(rig.driver(), rig.order());
    assert_eq!("stats(heap)".parse::<Stack>().unwrap().build(&context).unwrap().to_string(), "stats(chunks)");
    for text in ["pool", "guard(host)", "stats(guard(stats(host)))"] {
        let refused = text.parse::<Stack>().unwrap().build(&context).err().unwrap();
        assert!(refused.refusal().is_some(), "{refused}");
    }
    rig.finish(&[]);
}

/// Whether a problem is the one a text has.
type IsRight = fn(&StackProblem) -> bool;

#[test]
fn a_text_that_is_no_stack_is_refused_where_it_goes_wrong() {
    use StackProblem::{Expected, LeftOver, Number, Numbers, Parenthesis, TooManyLayers, Twice, UnknownWord};
    let deep = format!("{}heap{}", "stats(".repeat(33), ")".repeat(33));
    let cases: &[(&str, usize, IsRight)] = &[
        ("", 0, |problem| matches!(problem, Expected(_))),
        ("   ", 3, |problem| matches!(problem, Expected(_))),
        ("heep", 0, |problem| matches!(problem, UnknownWord(word) if word == "heep")),
        ("stats(heep)", 6, |problem| matches!(problem, UnknownWord(_))),
        ("stats", 0, |problem| matches!(problem, Parenthesis { is_layer: true, .. })),
        ("heap(spare)", 10, |problem| matches!(problem, Expected(_))),
        ("heap(spare=50%", 14, |problem| matches!(problem, Expected("`)`"))),
        ("heap(spare=50)", 11, |problem| matches!(problem, Number { .. })),
        ("heap(spare=50%..9%)", 11, |problem| matches!(problem, Number { .. })),
        ("heap(spare=1001%)", 11, |problem| matches!(problem, Number { .. })),
        ("heap(mapping)", 12, |problem| matches!(problem, Expected(_))),
        ("heap(mapping=1GB)", 13, |problem| matches!(problem, Number { .. })),
        ("heap(mapping=99999999999TiB)", 13, |problem| matches!(problem, Number { .. })),
        ("heap(mapping=1GiB, pool)", 19, |problem| matches!(problem, Expected(_))),
        ("heap(mapping=1GiB,)", 18, |problem| matches!(problem, Expected(_))),
        ("heap(spare=5%, mapping=1GiB, spare=5%)", 29, |problem| matches!(problem, Twice("spare"))),
        ("heap(mapping=1GiB, mapping=1GiB)", 19, |problem| matches!(problem, Twice("mapping"))),
        ("pages(mapping=1GiB)", 5, |problem| matches!(problem, Parenthesis { is_layer: false, .. })),
        ("heap(spare=5%)(", 14, |problem| matches!(problem, Parenthesis { is_layer: false, .. })),
        ("stats(heap(spare=5%)", 20, |problem| matches!(problem, Expected("`)`"))),
        ("chunks(spare=5%)", 6, |problem| matches!(problem, Parenthesis { is_layer: false, .. })),
        ("heap(pool)", 4, |problem| matches!(problem, Parenthesis { is_layer: false, .. })),
        ("stats(heap", 10, |problem| matches!(problem, Expected("`)`"))),
        ("stats()", 6, |problem| matches!(problem, Expected(_))),
        ("stats(heap))", 11, |problem| matches!(problem, LeftOver(_))),
        ("heap pool", 5, |problem| matches!(problem, LeftOver(_))),
        ("budget(heap)", 0, |problem| matches!(problem, Numbers { layer: "budget", .. })),
        ("budget(8GiB)", 11, |problem| matches!(problem, Expected(_))),
        ("budget(8GiB heap)", 16, |problem| matches!(problem, Expected(_))),
        ("budget(8 gigs, heap)", 7, |problem| matches!(problem, Number { .. })),
        ("budget(-1, heap)", 7, |problem| matches!(problem, Number { .. })),
        ("budget(99999999999GiB, heap)", 7, |problem| matches!(problem, Number { .. })),
        ("stats(1, heap)", 0, |problem| matches!(problem, Numbers { layer: "stats", .. })),
        ("fail(1,2,3,4,5,6, heap)", 0, |problem| matches!(problem, Numbers { layer: "fail", .. })),
        ("align(3B, heap)", 6, |problem| matches!(problem, Number { .. })),
        ("align(8GiB, heap)", 6, |problem| matches!(problem, Number { .. })),
        ("trace(0, heap)", 6, |problem| matches!(problem, Number { .. })),
        ("trace(99999999999, heap)", 6, |problem| matches!(problem, Number { .. })),
        ("retry(1.5, heap)", 6, |problem| matches!(problem, Number { .. })),
        ("stats(hüap)", 6, |problem| matches!(problem, UnknownWord(_))),
        ("stats(\u{1f525})", 6, |problem| matches!(problem, Expected(_))),
        (&deep, 32 * 6, |problem| matches!(problem, TooManyLayers)),
    ];
    for (text, at, is_right) in cases {
        let error = text.parse::<Stack>().unwrap_err();
        assert_eq!(error.at, *at, "{text}: {error}");
        assert!(is_right(&error.problem), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("at byte {at}: ")));
    }
}

#[test]
fn no_damaged_text_panics() {
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut text: Vec<char> = random_stack(seed).to_string().chars().collect();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() as u64 + 1) as usize;
            let other = ['(', ')', ',', ' ', '9', 'é', 'h', '.', '-'][random.below(9) as usize];
            match random.below(3) {
                0 => text.insert(at, other),
                1 if at < text.len() => drop(text.remove(at)),
                _ if at < text.len() => text[at] = other,
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = text.parse::<Stack>() {
            assert!(error.at <= text.len(), "{text}");
        }
    }
    assert!("(".repeat(1_000_000).parse::<Stack>().is_err());
    assert!("stats(".repeat(1_000_000).parse::<Stack>().is_err());
}
