//! Prints the costs of a journal on the disk that holds the folder for temporary files.

#![expect(clippy::print_stdout, reason = "a developer reads it")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    println!(
        "{:#?}",
        gyrus_journal::measure::journal(folder.path(), 2_000, 300_000)?
    );
    Ok(())
}
