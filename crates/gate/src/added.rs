//! The additions of a person to the sandbox of a run, as part of the containment of its commands.

use std::{path::PathBuf, thread::available_parallelism};

use gyrus_contract::{Containment, SandboxOptions};

/// Folders below a cache, or a cache of their own, that hold what package managers downloaded, and
/// nothing that is started or configures a program. A part of `*` is any name.
const DOWNLOADS: [&str; 9] = [
    "registry", "git", "_cacache", "pip", "go-build", "pkg/mod", "mod", "caches", "store",
];

/// Adds the variables, connections and folders that the person allows to commands.
pub(crate) fn add(options: &SandboxOptions, containment: &mut Containment) {
    let limits = &mut containment.limits;
    let cores = available_parallelism().map_or(1, |cores| cores.get() as u64);
    limits.cpu_seconds = limits
        .cpu_seconds
        .max(options.longest_command().saturating_mul(cores));
    limits.memory_bytes = options.memory_bytes.unwrap_or(limits.memory_bytes);
    if options.shares_caches {
        let caches = containment.layered.iter().map(|layer| &layer.lower);
        let shared: Vec<PathBuf> = caches
            .flat_map(|cache| DOWNLOADS.map(|name| cache.join(name)))
            .filter(|folder| folder.is_dir() && !folder.is_symlink())
            .collect();
        containment.writable.extend(shared);
    }
    for folder in &options.folders {
        if folder.writable {
            containment.writable.push(folder.path.clone());
        }
    }
}
