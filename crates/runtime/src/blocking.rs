//! Work that blocks, carried out from tasks that must not.

/// Carries out what blocks, such as reading the disk, on a thread that may. A panic in it goes on here.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
