//! The variables of launchers, as they set them, and half set.

use kiln::group::{Launcher, MeetingPoint, RankEnvironment, RankEnvironmentError};

type Parsed = Result<Option<RankEnvironment>, RankEnvironmentError>;

fn parse(variables: &[(&str, &str)]) -> Parsed {
    RankEnvironment::parse(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn ranks(variables: &[(&str, &str)]) -> RankEnvironment {
    parse(variables).unwrap().expect("a launcher")
}

fn numbers(ranks: &RankEnvironment) -> (Launcher, u32, u32, Option<u32>, Option<u32>) {
    (ranks.launcher, ranks.rank, ranks.size, ranks.local_rank, ranks.local_size)
}

fn point(host: &str, port: u16, is_taken: bool) -> Option<MeetingPoint> {
    Some(MeetingPoint { host: host.into(), port, is_taken })
}

const TORCHRUN: [(&str, &str); 8] = [
    ("RANK", "5"),
    ("WORLD_SIZE", "16"),
    ("LOCAL_RANK", "1"),
    ("LOCAL_WORLD_SIZE", "4"),
    ("MASTER_ADDR", "node0"),
    ("MASTER_PORT", "29500"),
    ("TORCHELASTIC_RUN_ID", "job"),
    ("TORCHELASTIC_USE_AGENT_STORE", "True"),
];

const SLURM: [(&str, &str); 6] = [
    ("SLURM_PROCID", "9"),
    ("SLURM_NTASKS", "16"),
    ("SLURM_LOCALID", "1"),
    ("SLURM_NTASKS_PER_NODE", "8"),
    ("SLURM_JOB_NODELIST", "gpu[07-08]"),
    ("SLURM_JOB_ID", "1234567"),
];

#[test]
fn each_launcher_is_read() {
    let torchrun = ranks(&TORCHRUN);
    assert_eq!(numbers(&torchrun), (Launcher::Torchrun, 5, 16, Some(1), Some(4)));
    assert_eq!(torchrun.meeting_point, point("node0", 29_500, true));

    let slurm = ranks(&SLURM);
    assert_eq!(numbers(&slurm), (Launcher::Slurm, 9, 16, Some(1), Some(8)));
    assert_eq!(slurm.meeting_point, point("gpu07", 24_567, false));

    let open_mpi = ranks(&[
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ]);
    assert_eq!(numbers(&open_mpi), (Launcher::OpenMpi, 0, 2, Some(0), Some(2)));
    assert_eq!(open_mpi.meeting_point, None);

    let mpich =
        ranks(&[("PMI_RANK", "3"), ("PMI_SIZE", "4"), ("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "2")]);
    assert_eq!(numbers(&mpich), (Launcher::Mpich, 3, 4, Some(1), Some(2)));

    let kubernetes = ranks(&[
        ("JOB_COMPLETION_INDEX", "2"),
        ("WORLD_SIZE", "3"),
        ("MASTER_ADDR", "job-0.svc"),
        ("MASTER_PORT", "4000"),
    ]);
    assert_eq!(numbers(&kubernetes), (Launcher::Kubernetes, 2, 3, None, None));
    assert_eq!(kubernetes.meeting_point, point("job-0.svc", 4_000, false));

    let by_hand = ranks(&[
        ("KILN_RANK", "1"),
        ("KILN_WORLD_SIZE", "2"),
        ("KILN_LOCAL_RANK", "0"),
        ("KILN_MEETING_POINT", "[::1]:4000"),
    ]);
    assert_eq!(numbers(&by_hand), (Launcher::ByHand, 1, 2, Some(0), None));
    assert_eq!(by_hand.meeting_point, point("::1", 4_000, false));
}

#[test]
fn a_launcher_inside_a_slurm_job_comes_before_slurm() {
    let mut inside: Vec<_> = SLURM.to_vec();
    inside.extend(TORCHRUN);
    assert_eq!(numbers(&ranks(&inside)), (Launcher::Torchrun, 5, 16, Some(1), Some(4)));
    inside.extend([("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "1")]);
    assert_eq!(ranks(&inside).launcher, Launcher::ByHand);
}

/// What an MPI launcher says to a rank, and the variables of the Slurm job around it.
fn inside_slurm(launcher: [(&'static str, &'static str); 2]) -> Vec<(&'static str, &'static str)> {
    let job = [
        ("SLURM_JOB_ID", "1234567"),
        ("SLURM_JOB_NODELIST", "gpu[07-09]"),
        ("SLURM_NTASKS", "6"),
        ("SLURM_PROCID", "0"),
    ];
    launcher.into_iter().chain(job).collect()
}

#[test]
fn ranks_of_an_mpi_launcher_inside_a_slurm_job_meet_on_its_first_node() {
    let open_mpi = [("OMPI_COMM_WORLD_RANK", "4"), ("OMPI_COMM_WORLD_SIZE", "6")];
    let hydra = [("PMI_RANK", "4"), ("PMI_SIZE", "6")];
    for (launcher, variables) in [(Launcher::OpenMpi, open_mpi), (Launcher::Mpich, hydra)] {
        let inside = inside_slurm(variables);
        let found = ranks(&inside);
        assert_eq!((found.launcher, found.rank, found.size), (launcher, 4, 6));
        assert_eq!(found.meeting_point, point("gpu07", 24_567, false), "{launcher}");
        // The launcher starts its daemons on the other nodes as a step, whose nodes are not those of all ranks.
        let mut in_step = inside.clone();
        in_step.extend([("SLURM_STEP_NODELIST", "gpu[08-09]"), ("SLURM_STEP_NUM_TASKS", "2")]);
        assert_eq!(ranks(&in_step).meeting_point, point("gpu07", 24_567, false), "{launcher}");
        let mut with_port = inside.clone();
        with_port.push(("MASTER_PORT", "29500"));
        assert_eq!(ranks(&with_port).meeting_point, point("gpu07", 29_500, false));
        let mut by_hand = inside.clone();
        by_hand.extend([("MASTER_ADDR", "node0"), ("MASTER_PORT", "29500")]);
        assert_eq!(ranks(&by_hand).meeting_point, point("node0", 29_500, false));
        let mut damaged = inside.clone();
        damaged.retain(|(name, _)| *name != "SLURM_JOB_NODELIST");
        damaged.push(("SLURM_JOB_NODELIST", "gpu["));
        let error = parse(&damaged).unwrap_err();
        assert!(
            matches!(error, RankEnvironmentError::NodeList { name: "SLURM_JOB_NODELIST", .. }),
            "{error}"
        );
        // Outside of Slurm a port alone is half a meeting point.
        let mut outside = variables.to_vec();
        outside.push(("MASTER_PORT", "29500"));
        assert!(matches!(parse(&outside).unwrap_err(), RankEnvironmentError::HalfAMeetingPoint { .. }));
    }
}

#[test]
fn ranks_that_srun_tells_in_the_variables_of_pmi_meet_on_the_first_node_of_their_step() {
    let mut step = inside_slurm([("PMI_RANK", "1"), ("PMI_SIZE", "2")]);
    step.retain(|(name, _)| *name != "SLURM_PROCID");
    step.extend([
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_NODELIST", "gpu[08-09]"),
    ]);
    let found = ranks(&step);
    assert_eq!((found.rank, found.size, found.meeting_point), (1, 2, point("gpu08", 24_567, false)));
}

#[test]
fn without_a_launcher_there_are_no_ranks() {
    assert_eq!(parse(&[]), Ok(None));
    // What is empty is not set, and the number of ranks alone shows no launcher.
    assert_eq!(parse(&[("RANK", ""), ("SLURM_PROCID", " "), ("WORLD_SIZE", "4")]), Ok(None));
    // A Slurm job that was not started by srun has no ranks.
    assert_eq!(parse(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4")]), Ok(None));
}

#[test]
fn a_variable_that_is_missing_is_named() {
    for (set, missing) in [
        (("RANK", "0"), "WORLD_SIZE"),
        (("LOCAL_RANK", "0"), "RANK"),
        (("TORCHELASTIC_RUN_ID", "x"), "RANK"),
        (("OMPI_COMM_WORLD_SIZE", "2"), "OMPI_COMM_WORLD_RANK"),
        (("PMI_RANK", "0"), "PMI_SIZE"),
        (("SLURM_PROCID", "0"), "SLURM_NTASKS"),
        (("JOB_COMPLETION_INDEX", "0"), "WORLD_SIZE"),
        (("KILN_WORLD_SIZE", "2"), "KILN_RANK"),
    ] {
        let error = parse(&[set]).unwrap_err();
        assert!(matches!(error, RankEnvironmentError::Missing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(set.0) && text.contains(missing), "{text}");
    }
    let by_hand = parse(&[("KILN_RANK", "0")]).unwrap_err().to_string();
    assert!(
        by_hand.contains("KILN_RANK is set, as `kiln launch` does, and KILN_WORLD_SIZE is not"),
        "{by_hand}"
    );
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for text in ["-1", "one", "4294967296", "1.0", "0x1"] {
        let error = parse(&[("RANK", text), ("WORLD_SIZE", "2")]).unwrap_err();
        assert_eq!(error, RankEnvironmentError::NoNumber { name: "RANK", text: text.into() });
    }
    for (rank, size) in [("2", "2"), ("0", "0"), ("9", "3")] {
        let error = parse(&[("PMI_RANK", rank), ("PMI_SIZE", size)]).unwrap_err();
        assert!(matches!(error, RankEnvironmentError::Rank { rank_name: "PMI_RANK", .. }), "{error}");
    }
    let local = [("RANK", "0"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "4"), ("LOCAL_WORLD_SIZE", "4")];
    let error = parse(&local).unwrap_err();
    assert!(matches!(error, RankEnvironmentError::Rank { rank: 4, size: 4, .. }), "{error}");
}

#[test]
fn a_meeting_point_is_whole_or_not_there() {
    let with = |more: &[(&'static str, &'static str)]| {
        let mut variables = vec![("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "2")];
        variables.extend(more);
        parse(&variables)
    };
    for (text, is_port) in
        [("node0", false), (":4000", false), ("node0:", true), ("node0:0", true), ("a:65536", true)]
    {
        let error = with(&[("KILN_MEETING_POINT", text)]).unwrap_err();
        let is_about_port = matches!(error, RankEnvironmentError::NoPort { .. });
        let is_about_form = matches!(error, RankEnvironmentError::NoHostAndPort { .. });
        assert_eq!((is_about_port, is_about_form), (is_port, !is_port), "{text}: {error}");
    }
    let halves = [("MASTER_ADDR", "node0", "MASTER_PORT"), ("MASTER_PORT", "29500", "MASTER_ADDR")];
    for (set, value, missing) in halves {
        let error = with(&[(set, value)]).unwrap_err();
        assert_eq!(error, RankEnvironmentError::HalfAMeetingPoint { set, missing });
    }
    let mut slurm = SLURM.to_vec();
    slurm.push(("SLURM_STEP_NODELIST", "gpu["));
    let error = parse(&slurm).unwrap_err();
    assert!(matches!(error, RankEnvironmentError::NodeList { name: "SLURM_STEP_NODELIST", .. }), "{error}");
    // A port by hand goes with the node that Slurm names.
    let mut slurm = SLURM.to_vec();
    slurm.push(("MASTER_PORT", "29500"));
    assert_eq!(ranks(&slurm).meeting_point, point("gpu07", 29_500, false));
}

#[test]
fn a_meeting_point_alone_is_half_a_launcher() {
    let error = parse(&[("KILN_MEETING_POINT", "node0:29500")]).unwrap_err().to_string();
    assert!(error.starts_with("KILN_MEETING_POINT is set") && error.contains("KILN_RANK is not"), "{error}");
    // It says where ranks of another launcher meet.
    let mut slurm = SLURM.to_vec();
    slurm.push(("KILN_MEETING_POINT", "node0:29500"));
    assert_eq!(ranks(&slurm).meeting_point, point("node0", 29_500, false));
}

#[test]
fn a_meeting_point_beside_half_a_launcher_names_that_launcher() {
    const POINT: (&str, &str) = ("KILN_MEETING_POINT", "node0:4000");
    for (variable, missing) in [
        ("SLURM_NTASKS", "SLURM_PROCID"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"),
        ("MPI_LOCALNRANKS", "PMI_RANK"),
        ("KILN_LOCAL_RANK", "KILN_RANK"),
    ] {
        let error = parse(&[(variable, "2"), POINT]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{variable} is set, as ")), "{error}");
        assert!(error.contains(&format!(" and {missing} is not")), "{error}");
    }
}

#[test]
fn a_number_of_ranks_and_where_they_meet_without_a_rank_are_half_a_launcher() {
    let job = [("WORLD_SIZE", "4"), ("MASTER_ADDR", "node0"), ("MASTER_PORT", "29500")];
    let error = parse(&job).unwrap_err().to_string();
    assert!(error.contains("MASTER_ADDR is set, as by torchrun, and RANK is not"), "{error}");
    let port = [job[0], job[2]];
    let error = parse(&port).unwrap_err().to_string();
    assert!(error.contains("MASTER_PORT is set, as by torchrun, and RANK is not"), "{error}");
    // Some images have these for a process that is alone.
    assert_eq!(
        parse(&[("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")]),
        Ok(None)
    );
    for alone in [&job[..1], &job[1..]] {
        assert_eq!(parse(alone), Ok(None));
    }
}

#[test]
fn a_local_number_alone_is_half_a_launcher() {
    for (set, missing) in [
        (("KILN_LOCAL_RANK", "1"), "KILN_RANK"),
        (("KILN_LOCAL_SIZE", "2"), "KILN_RANK"),
        (("LOCAL_WORLD_SIZE", "2"), "RANK"),
        (("OMPI_COMM_WORLD_LOCAL_RANK", "0"), "OMPI_COMM_WORLD_RANK"),
        (("OMPI_COMM_WORLD_LOCAL_SIZE", "2"), "OMPI_COMM_WORLD_RANK"),
        (("MPI_LOCALRANKID", "0"), "PMI_RANK"),
        (("PMI_LOCAL_SIZE", "2"), "PMI_RANK"),
        (("SLURM_LOCALID", "0"), "SLURM_PROCID"),
    ] {
        let error = parse(&[set]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is set, as ", set.0)), "{error}");
        assert!(error.contains(&format!(" and {missing} is not")), "{error}");
    }
    // It stands beside a whole launcher, and a job of Slurm has the last one without ranks.
    let mut torchrun = TORCHRUN.to_vec();
    torchrun.push(("KILN_LOCAL_RANK", "0"));
    assert_eq!(ranks(&torchrun).launcher, Launcher::Torchrun);
    assert_eq!(parse(&[("SLURM_NTASKS_PER_NODE", "4")]), Ok(None));
}

#[test]
fn slurm_without_the_number_of_its_job_has_no_port() {
    let without = |name: &str| SLURM.into_iter().filter(|(known, _)| *known != name).collect::<Vec<_>>();
    let mut lettered = without("SLURM_JOB_ID");
    lettered.push(("SLURM_JOB_ID", "x7"));
    for (variables, said) in [(without("SLURM_JOB_ID"), "is not set"), (lettered, "is `x7`")] {
        let error = parse(&variables).unwrap_err().to_string();
        for part in ["SLURM_JOB_NODELIST", "SLURM_JOB_ID", said, "MASTER_PORT", "KILN_MEETING_POINT"] {
            assert!(error.contains(part), "{error}");
        }
        let mut with_port = variables.clone();
        with_port.push(("MASTER_PORT", "29500"));
        assert_eq!(ranks(&with_port).meeting_point, point("gpu07", 29_500, false));
    }
}

#[test]
fn what_a_batch_script_asked_for_per_node_is_no_limit_for_a_step_that_has_more_ranks_there() {
    // `srun -n 4` inside a job of one task per node ignores that number, and leaves it in the environment.
    let step = |local: &'static str, tasks: &'static str| {
        let rank = [("SLURM_PROCID", local), ("SLURM_LOCALID", local), ("SLURM_STEP_NUM_TASKS", "4")];
        let of_job = [("SLURM_NTASKS", "1"), ("SLURM_NTASKS_PER_NODE", "1")];
        numbers(&ranks(&[&rank[..], &of_job, &[("SLURM_STEP_TASKS_PER_NODE", tasks)]].concat()))
    };
    for (local, rank) in [("0", 0), ("3", 3)] {
        assert_eq!(step(local, "4"), (Launcher::Slurm, rank, 4, Some(rank), Some(4)));
    }
    assert_eq!(step("1", "2(x2)"), (Launcher::Slurm, 1, 4, Some(1), Some(2)));
    // Not the same number on every node, or no number at all.
    for tasks in ["3,1", "2(x3),1", "", "4(x", "many"] {
        assert_eq!(step("1", tasks).4, None, "{tasks}");
    }
}
