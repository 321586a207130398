//! Laws about modules and kernels.

use std::sync::OnceLock;

use kiln_driver::{Command, DriverExt, Image, Refusal};

use super::streams::waiting::LONG;
use crate::expect::{equal, holds, inapplicable, refused, refused_somehow, stale, unsupported};
use crate::fixture::Rig;
use crate::kernels::{Arguments, VARIABLE, VARIABLE_START};
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "code.attributes",
        says: "a kernel is found by name, with attributes that fit it",
        run: attributes,
    },
    Law {
        name: "code.unknown_name",
        says: "a name the module does not have is refused by that name",
        run: unknown_name,
    },
    Law {
        name: "code.broken_image",
        says: "an image that cannot be loaded is refused with a log",
        run: broken_image,
    },
    Law {
        name: "code.unsupported_image",
        says: "an image of a kind the device cannot run is unsupported",
        run: unsupported_image,
    },
    Law {
        name: "code.kept_machine_code",
        says: "machine code that was handed out for PTX loads as the same code",
        run: kept_machine_code,
    },
    Law {
        name: "code.load_does_not_wait",
        says: "loading code and finding kernels in it waits for no stream",
        run: load_does_not_wait,
    },
    Law {
        name: "code.modules_are_apart",
        says: "one module's end does not touch another of the same code",
        run: modules_are_apart,
    },
    Law { name: "code.found_twice", says: "a kernel looked up twice is the same kernel", run: found_twice },
    Law {
        name: "code.kernels_die_with_their_module",
        says: "a kernel dies with its module",
        run: kernels_die_with_their_module,
    },
    Law {
        name: "code.occupancy",
        says: "how many blocks fit is more than none, and no more than the limits",
        run: occupancy,
    },
    Law {
        name: "code.occupancy_refused",
        says: "a block no multiprocessor can hold is refused",
        run: occupancy_refused,
    },
    Law {
        name: "code.variable",
        says: "a module's variable is memory that kernels and copies share",
        run: variable,
    },
    Law {
        name: "code.variable_is_not_freed",
        says: "a variable lives and dies with its module",
        run: variable_is_not_freed,
    },
];

fn attributes(rig: &Rig<'_>) -> LawVerdict {
    let kernel = rig.kernel("fill_index")?;
    let known = &kernel.attributes;
    let limit = rig.driver.info().limits.max_threads_per_block;
    let threads = known.max_threads_per_block;
    holds((1..=limit).contains(&threads), format!("1 to {limit} threads in a block"), threads)?;
    equal("shared memory it declares", known.static_shared_bytes, 0)?;
    let Some(spans) = &known.parameters else { return Ok(()) };
    let spans: Vec<_> = spans.iter().map(|span| (span.offset, span.bytes)).collect();
    equal("the parameters of fill_index", spans, vec![(0, 8), (8, 4)])?;
    let axpy = rig.kernel("axpy")?.attributes.parameters;
    let spans = axpy.map(|spans| spans.iter().map(|span| (span.offset, span.bytes)).collect());
    equal("the parameters of axpy", spans, Some(vec![(0, 4), (8, 8), (16, 8), (24, 4)]))
}

fn unknown_name(rig: &Rig<'_>) -> LawVerdict {
    let module = rig.load()?;
    for name in ["no_such_kernel", "FILL_INDEX", "fill_inde", "fill_index ", ""] {
        let answer = rig.driver.function(module, name);
        refused(
            format!("kernel `{name}`"),
            answer,
            |reason| matches!(reason, Refusal::NotFound { name: said, .. } if said == name),
        )?;
        let answer = rig.driver.global(module, name);
        refused(format!("variable `{name}`"), answer, |reason| matches!(reason, Refusal::NotFound { .. }))?;
    }
    refused_somehow("a kernel's name with a zero in it", rig.driver.function(module, "fill_index\0"))?;
    refused_somehow("a variable's name with a zero in it", rig.driver.global(module, "law\0variable"))?;
    rig.driver.function(module, "fill_index")?;
    Ok(())
}

fn broken_image(rig: &Rig<'_>) -> LawVerdict {
    let answer = rig.driver.load(&rig.kernels().broken());
    refused(
        "a broken image",
        answer,
        |reason| matches!(reason, Refusal::Image { log, .. } if !log.trim().is_empty()),
    )?;
    let empty = match rig.kernels().image() {
        Image::Ptx(_) => Image::Ptx(""),
        Image::Cubin(_) => Image::Cubin(&[]),
        _ => Image::HostKernels(""),
    };
    refused_somehow("an empty image", rig.driver.load(&empty))?;
    if let Image::Ptx(text) = rig.kernels().image() {
        let zero = format!("{text}\0");
        // A zero ends the text for a driver written in C; what follows must not be lost without a word.
        refused_somehow("PTX with a zero in it", rig.driver.load(&Image::Ptx(&zero)))?;
    }
    let (stream, memory) = (rig.stream()?, rig.words(4)?);
    rig.increment(stream, &memory, 4)?;
    rig.driver.synchronize(stream)?;
    equal("code loaded after that", rig.get_words(&memory, 4)?, vec![1; 4])
}

fn unsupported_image(rig: &Rig<'_>) -> LawVerdict {
    let features = rig.driver.info().features;
    let kinds = [
        (features.ptx, Image::Ptx(crate::kernels::PTX)),
        (features.cubin, Image::Cubin(&[0x7f, b'E', b'L', b'F'])),
        (features.host_kernels, Image::HostKernels("anything")),
    ];
    for (supported, image) in kinds {
        if !supported {
            unsupported(image.name(), rig.driver.load(&image))?;
        }
    }
    Ok(())
}

fn kept_machine_code(rig: &Rig<'_>) -> LawVerdict {
    let Some(text) = rig.kernels().image().ptx() else {
        return inapplicable("these kernels are not PTX");
    };
    let machine_code = OnceLock::new();
    let from_text = rig.load_image(&Image::PtxToKeep { text, machine_code: &machine_code })?;
    let mut modules = vec![("PTX to keep", from_text)];
    if let Some(code) = machine_code.get() {
        modules.push(("kept machine code", rig.load_image(&Image::Cubin(code))?));
    }
    let stream = rig.stream()?;
    for (value, (what, module)) in (5..).zip(modules) {
        let (kernel, memory) = (rig.driver.function(module, "store_value")?, rig.words(1)?);
        let arguments = Arguments::new().address(memory.address).u32(value);
        rig.launch(stream, kernel.id, 1, 1, &arguments)?;
        rig.driver.synchronize(stream)?;
        equal(format!("a launch of {what}"), rig.get_words(&memory, 1)?, vec![value])?;
    }
    Ok(())
}

fn load_does_not_wait(rig: &Rig<'_>) -> LawVerdict {
    if !rig.in_real_time() {
        return inapplicable("its kernels take no time of the host's");
    }
    let (stream, done) = (rig.stream()?, rig.event()?);
    rig.busy(stream)?;
    rig.driver.synchronize(stream)?;
    rig.busy_for(stream, LONG)?;
    rig.driver.submit(stream, &Command::Signal(done))?;
    let module = rig.load()?;
    rig.driver.function(module, "store_value")?;
    holds(!rig.driver.is_done(done)?, "the kernel to run still after a load", "that the call waited for it")
}

fn modules_are_apart(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.load()?, rig.load()?);
    holds(first != second, "a separate handle for each module", first)?;
    let (gone, kept) =
        (rig.driver.function(first, "store_value")?, rig.driver.function(second, "store_value")?);
    let (stream, memory) = (rig.stream()?, rig.words(1)?);
    let arguments = Arguments::new().address(memory.address).u32(5);
    rig.launch(stream, gone.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    rig.destroy(first)?;
    let arguments = Arguments::new().address(memory.address).u32(6);
    rig.launch(stream, kept.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    equal("a launch from the module that is left", rig.get_words(&memory, 1)?, vec![6])
}

fn found_twice(rig: &Rig<'_>) -> LawVerdict {
    let module = rig.load()?;
    let (stream, memory) = (rig.stream()?, rig.words(1)?);
    for value in [1, 2] {
        let kernel = rig.driver.function(module, "store_value")?;
        let arguments = Arguments::new().address(memory.address).u32(value);
        rig.launch(stream, kernel.id, 1, 1, &arguments)?;
        rig.driver.synchronize(stream)?;
        equal("a launch of a kernel looked up again", rig.get_words(&memory, 1)?, vec![value])?;
    }
    Ok(())
}

fn kernels_die_with_their_module(rig: &Rig<'_>) -> LawVerdict {
    let module = rig.load()?;
    let kernel = rig.driver.function(module, "store_value")?;
    let (stream, memory) = (rig.stream()?, rig.words(1)?);
    rig.destroy(module)?;
    let arguments = Arguments::new().address(memory.address).u32(1);
    stale("a launch", rig.launch(stream, kernel.id, 1, 1, &arguments))?;
    stale("an occupancy", rig.driver.occupancy(kernel.id, 32, 0))?;
    stale("a lookup", rig.driver.function(module, "store_value"))?;
    stale("a lookup of a variable", rig.driver.global(module, VARIABLE))?;
    stale("a second destroy", rig.driver.destroy(module.into()))?;
    let again = rig.load()?;
    let newer = rig.driver.function(again, "store_value")?;
    stale("a launch through the old handle", rig.launch(stream, kernel.id, 1, 1, &arguments))?;
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 0)?;
    rig.launch(stream, newer.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    equal("a launch from the module loaded again", rig.get_words(&memory, 1)?, vec![1])
}

fn occupancy(rig: &Rig<'_>) -> LawVerdict {
    let kernel = rig.kernel("fill_index")?;
    let limits = &rig.driver.info().limits;
    let threads_limit = kernel.attributes.max_threads_per_block;
    let mut before = u32::MAX;
    for threads in [32, 128, threads_limit] {
        let fit = rig.driver.occupancy(kernel.id, threads, 0)?;
        let blocks = fit.blocks_per_multiprocessor;
        let most =
            (limits.max_threads_per_multiprocessor / threads).min(limits.max_blocks_per_multiprocessor);
        holds((1..=most).contains(&blocks), format!("1 to {most} blocks of {threads} threads"), blocks)?;
        holds(blocks <= before, "no more large blocks than small ones", format!("{before}, then {blocks}"))?;
        before = blocks;
        let suggested = fit.suggested_block_threads;
        holds((1..=threads_limit).contains(&suggested), "a suggested block the kernel can have", suggested)?;
        holds(fit.suggested_grid_blocks >= 1, "a suggested grid", fit.suggested_grid_blocks)?;
    }
    let plain = rig.driver.occupancy(kernel.id, 32, 0)?.blocks_per_multiprocessor;
    let heavy = rig.driver.occupancy(kernel.id, 32, limits.shared_bytes_per_block)?.blocks_per_multiprocessor;
    let most = limits.shared_bytes_per_multiprocessor / limits.shared_bytes_per_block;
    holds(
        heavy <= most && heavy <= plain,
        format!("at most {most} blocks with all their shared memory"),
        heavy,
    )
}

fn occupancy_refused(rig: &Rig<'_>) -> LawVerdict {
    let kernel = rig.kernel("fill_index")?;
    let limits = &rig.driver.info().limits;
    for threads in [0, limits.max_threads_per_block + 1, u32::MAX] {
        refused_somehow(
            format!("a block of {threads} threads"),
            rig.driver.occupancy(kernel.id, threads, 0),
        )?;
    }
    for bytes in [limits.shared_bytes_per_block_optin + 1, u32::MAX] {
        refused_somehow(
            format!("a block with {bytes} shared bytes"),
            rig.driver.occupancy(kernel.id, 32, bytes),
        )?;
    }
    rig.driver.occupancy(kernel.id, 32, 0)?;
    Ok(())
}

fn variable(rig: &Rig<'_>) -> LawVerdict {
    if !rig.kernels().has_variable {
        return inapplicable("these kernels come without a variable");
    }
    let module = rig.load()?;
    let variable = rig.driver.global(module, VARIABLE)?;
    equal("the length of the variable", variable.bytes, 4)?;
    equal("its first value", rig.get_words(&variable, 1)?, vec![VARIABLE_START])?;
    let (stream, out) = (rig.stream()?, rig.words(1)?);
    let bump = rig.driver.function(module, "bump_variable")?;
    let arguments = Arguments::new().address(out.address);
    rig.launch(stream, bump.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    equal("the value a kernel saw", rig.get_words(&out, 1)?, vec![VARIABLE_START])?;
    equal("the value it left", rig.get_words(&variable, 1)?, vec![VARIABLE_START + 1])?;
    rig.put(variable.id, &70u32.to_le_bytes())?;
    rig.launch(stream, bump.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    equal("the value a copy left", rig.get_words(&out, 1)?, vec![70])?;
    let fresh = rig.load()?;
    let other = rig.driver.global(fresh, VARIABLE)?;
    equal("the variable of another module", rig.get_words(&other, 1)?, vec![VARIABLE_START])
}

fn variable_is_not_freed(rig: &Rig<'_>) -> LawVerdict {
    if !rig.kernels().has_variable {
        return inapplicable("these kernels come without a variable");
    }
    let (module, stream) = (rig.load()?, rig.stream()?);
    let variable = rig.driver.global(module, VARIABLE)?;
    refused_somehow("a free of a variable", rig.driver.free(variable.id, None))?;
    refused_somehow("a free of a variable on a stream", rig.driver.free(variable.id, Some(stream)))?;
    equal("the variable after that", rig.get_words(&variable, 1)?, vec![VARIABLE_START])?;
    rig.destroy(module)?;
    let answer = rig.driver.fill(stream, variable.id.into(), 0, 4);
    stale("a fill of a variable whose module is gone", answer)?;
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 0)
}
