//! The scripts of the bundle for GPU hosts: the one that compares the commands on a GPU with the simulated device, run where both sides are simulated, and the one that
//! starts ranks, with stand-ins for its programs.

use std::path::Path;
use std::process::{Command, Output};

use crate::folder::Folder;

/// The samples as the bundle for GPU hosts has them.
fn samples(folder: &Folder) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = root.join("xtask/src/gpu_bundle/samples");
    let kernels = root.join("crates/kiln-kernels/kernels");
    let lent = ["elementwise.cu", "elementwise.ptx", "histogram.ptx"].map(|name| kernels.join(name));
    let own = std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    for path in own.chain(lent) {
        let name = path.file_name().unwrap().to_str().unwrap();
        folder.write(name, std::fs::read(&path).unwrap());
    }
    folder.path("compare.sh")
}

fn compare(script: &str, kiln: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg(script).env("KILN", kiln).env("DEVICE", "auto").env("KILN_POLICY", "simulate");
    command.env("KILN_LIBCUDA", "/nonexistent/libcuda.so.1").output().unwrap()
}

#[test]
fn nothing_differs_between_the_simulated_device_and_itself() {
    let folder = Folder::new();
    let script = samples(&folder);
    let outcome = compare(&script, env!("CARGO_BIN_EXE_kiln"));
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(outcome.status.success(), "{text}");
    let verdict = text.lines().last().unwrap();
    let same: u32 = verdict.split(' ').next().unwrap().parse().unwrap();
    assert!(same >= 22 && verdict.ends_with(" the same, 0 differ"), "{text}");
}

/// A command that gets something wrong wherever it is told `--device auto`.
fn lying(folder: &Folder, edit: &str) -> String {
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let text = format!("#!/bin/sh\ncase \"$*\" in *\"--device auto\"*) {edit} ;; esac\nexec {kiln} \"$@\"\n");
    let path = folder.write("lying", text);
    Command::new("chmod").args(["+x", &path]).status().unwrap();
    path
}

#[test]
fn another_result_and_another_end_are_noticed() {
    let folder = Folder::new();
    let script = samples(&folder);
    for (edit, name, why) in [
        // Another last argument of the program gives other numbers.
        (
            "case \"$*\" in *saxpy.kir*f32:2.5*) set -- $(echo \"$*\" | sed s/f32:2.5/f32:2.25/) ;; esac",
            "saxpy.kir: differs",
            "the files are not equal",
        ),
        ("case \"$*\" in *traps.kir*) exit 0 ;; esac", "traps: differs", "ended with 0 instead of 5"),
    ] {
        let outcome = compare(&script, &lying(&folder, edit));
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert!(!outcome.status.success(), "{text}");
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains(why)), "{text}");
    }
}

/// A stand-in for the training: its losses are those of every number of ranks, but for what `edit` does.
#[cfg(target_os = "linux")]
fn trained(folder: &Folder, edit: &str, failing: &str) -> Output {
    let ranks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/src/gpu_bundle/ranks");
    let training = format!(
        "#!/bin/sh\n[ \"$KILN_LOCAL_RANK $NCCL_HOSTID\" = \"0 kiln-rank-$KILN_RANK\" ] || exit 9\nloss=0.5\nlast=$((KILN_WORLD_SIZE - 1))\n{edit}\n\
         [ \"$1 $2\" = \"--kill-rank $KILN_RANK\" ] && kill -6 $$\n[ $KILN_RANK = 0 ] || exit 0\n\
         [ $# -eq 0 ] || echo \"rank $2 is lost; $last go on from step $4\"\necho \"step 0: loss $loss (bits 3f000000)\"\n"
    );
    let doctor = "#!/bin/sh\n[ $1 = doctor ] || exec \"$REAL\" \"$@\"\n[ $KILN_RANK = 0 ] || exit 0\n\
                  echo 'The sum over all ranks is right, in 1 ms: an all-reduce over NCCL.'\nexit 5\n";
    let program = |name: &str, text: &str| {
        let path = folder.write(name, text);
        Command::new("chmod").args(["+x", &path]).status().unwrap();
        path
    };
    let mut command = Command::new("sh");
    command.arg(ranks.join("run.sh")).env("KILLS", "2").env("REAL", env!("CARGO_BIN_EXE_kiln"));
    command.env("KILN", program("doctor", doctor)).env("TRAINING", program("training", &training));
    let killed = "#!/bin/sh\n[ \"$1 $3\" = '--ranks --jobs' ] || exit 9\necho \"$4 good, 0 bad: told\"\n[ \"$KILLED\" != \"$2\" ]\n";
    command
        .env("KILLED_RANK", program("killed_rank", killed))
        .env("QUEUE_KILLS", "3")
        .env("WORKER_KILLS", "2")
        .env("KILLED", failing)
        .env("KINDS", if failing == "a-kind" { "" } else { "7" });
    let collectives = "#!/bin/sh\necho \"rank $KILN_RANK: ready after 7 ms\"\nlast=$((KILN_WORLD_SIZE - 1))\n\
                       right=\"right on rank 0 of $KILN_WORLD_SIZE\"\n\
                       [ \"$1 $KILN_RANK\" = '--graphs 0' ] && for kind in 1 2 3 4 5 6 $KINDS; do echo \"$kind in a graph, 100 replays: $right\"; done\n\
                       [ \"$1 $KILN_RANK\" = '--graphs 0' ] && echo \"several in one graph, 100 replays at once: $right\"\n\
                       [ \"$1\" = --missing ] && [ $KILN_RANK != $last ] && [ \"$KILLED\" != none-told ] || exit 0\n\
                       echo \"rank $KILN_RANK: told after 5700 ms: rank $last has not called it\"\n\
                       echo \"rank $KILN_RANK: what it kept is there\"\n";
    command.env("COLLECTIVES", program("collectives", collectives));
    command.output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn ranks_that_give_other_losses_or_do_not_tell_of_a_lost_rank_are_noticed() {
    let folder = Folder::new();
    for (edit, name, why) in [
        ("", "", ""),
        ("[ $last = 1 ] && loss=0.25", "training on 2 ranks: bad", "its losses are not those of one rank"),
        ("[ $# -eq 0 ] || exit 0", "training on 3 ranks, rank 2 killed at step 7: bad", "instead of 134"),
        ("[ $# -eq 0 ] && exit 3", "training on 1 rank: bad", "it printed no losses"),
    ] {
        let outcome = trained(&folder, edit, "none");
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert_eq!(outcome.status.success(), why.is_empty(), "{text}");
        let is_told = |line: &str| line.starts_with(name) && line.contains(why);
        assert!(text.lines().any(is_told), "{why}: {text}");
        assert!(!why.is_empty() || text.ends_with("18 good, 0 bad\n"), "{text}");
        assert!(text.contains("rank 1: ready after 7 ms"), "{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_job_whose_killed_rank_was_not_survived_is_noticed() {
    let folder = Folder::new();
    let outcome = trained(&folder, "", "3");
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(!outcome.status.success() && text.ends_with("16 good, 2 bad\n"), "{text}");
    assert!(text.contains("a rank of 2 killed among queued all-reduces, 2 jobs: good"), "{text}");
    assert!(text.contains("a rank of 3 killed among queued all-reduces, 1 job: bad"), "{text}");
    assert!(text.contains("a rank of 3 killed among queued all-reduces, --isolate, 1 job: bad"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_missing_rank_of_which_the_others_are_not_told_is_noticed() {
    let folder = Folder::new();
    let outcome = trained(&folder, "", "none-told");
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(!outcome.status.success() && text.ends_with("16 good, 2 bad\n"), "{text}");
    let is_told =
        |line: &&str| line.starts_with("a rank of ") && line.contains("not all others were told in time");
    assert_eq!(text.lines().filter(is_told).count(), 2, "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_kind_of_collective_that_is_not_right_in_a_graph_is_noticed() {
    let folder = Folder::new();
    let outcome = trained(&folder, "", "a-kind");
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(!outcome.status.success() && text.ends_with("15 good, 3 bad\n"), "{text}");
    let told = "collectives in graphs on 2 ranks, NCCL in worker processes: bad";
    assert!(
        text.lines().any(|line| line.starts_with(told) && line.contains("not all kinds were right")),
        "{text}"
    );
}
