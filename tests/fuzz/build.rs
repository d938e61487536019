//! Tells the code whether the compiler counts what runs: only then are there counters to look at.

fn main() {
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo::rustc-check-cfg=cfg(guided)");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if flags.contains("instrument-coverage") {
        println!("cargo::rustc-cfg=guided");
    }
}
