//! tokio compiles the scheduling of a task once for each type of what it runs, 2 KB each time. Behind a pointer, all
//! tasks with the same result are of one type.

use std::pin::Pin;

use tokio::task::JoinHandle;

pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let task: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(task);
    tokio::spawn(task)
}

pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}
