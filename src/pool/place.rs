//! Where an agent works, if that is not the project itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::{Hooks, SessionPool, WorkTree};
use crate::model::Slug;

/// An agent's clone of the project, and what is bound to it.
pub(crate) struct Place {
    /// The project's root there, in the form that paths are compared with.
    pub(crate) project: String,
    pub(crate) hooks: Hooks,
    /// Its engines, whose sandbox bounds them to it.
    pub(crate) pool: Arc<SessionPool>,
    pub(crate) tree: Arc<WorkTree>,
}

/// A place that is being made; `None`: the project.
pub(crate) type FoundPlace<'p> = Pin<Box<dyn Future<Output = Result<Option<Arc<Place>>, String>> + Send + 'p>>;

/// Gives agents their places.
pub(crate) trait Places: Send + Sync {
    /// The agent's place for work that begins now; the error is why it has none.
    fn place(&self, agent: &Slug) -> FoundPlace<'_>;

    /// The agent's place is gone, with its machine. `true`: it has another one, where it may begin again; `false`: it has none
    /// that the configuration lets it go to by itself.
    fn move_away<'p>(
        &'p self,
        agent: &Slug,
        why: &str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'p>>;

    /// The agent has done what it got its place for.
    fn leave(&self, agent: &Slug) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
