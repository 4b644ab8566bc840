//! Snapshots, deadlocks, stalls, dumps and profiles.

pub mod dump;
pub mod profile;
pub mod stalls;

/// Returns a variable of the process's environment, unless it is empty: a Worker may have another environment.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}
