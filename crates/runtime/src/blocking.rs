//! Work that blocks, carried out from tasks that must not.

/// Runs work that blocks, such as reading the disk, on a thread for such work. A panic in it is
/// propagated.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
