//! How many tasks each node of a Slurm step has, as Slurm writes it: `4`, `4(x2)`, `4(x2),3`.

/// The number, if it is the same on every node.
pub(crate) fn tasks_of_each(text: &str) -> Option<u32> {
    let text = text.trim();
    let tasks = match text.split_once("(x") {
        Some((tasks, nodes)) => {
            nodes.strip_suffix(')')?.parse::<u32>().ok()?;
            tasks
        }
        None => text,
    };
    tasks.parse().ok()
}
