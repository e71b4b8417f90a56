//! The objects that the last append wrote, of which the next one reads most: the commit and the folders on the way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use gix::{ObjectId, objs};

use super::objects::NewObject;

/// Larger folders are read again.
const LARGE: usize = 64 << 10;

/// An object is what its id says for ever, so nothing here can be out of date.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(Arc<Mutex<Objects>>);

type Objects = HashMap<ObjectId, (objs::Kind, Arc<[u8]>)>;

impl Recent {
    /// These instead of those before. They have to be durable.
    pub(super) fn keep(&self, objects: &[NewObject]) {
        let is_wanted = |object: &&NewObject| object.kind != objs::Kind::Blob && object.bytes.len() <= LARGE;
        let kept = |object: &NewObject| (object.id, (object.kind, object.bytes.as_slice().into()));
        *self.objects() = objects.iter().filter(is_wanted).map(kept).collect();
    }

    pub(super) fn find(&self, id: &gix::oid) -> Option<(objs::Kind, Arc<[u8]>)> {
        self.objects().get(id).cloned()
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        // Whoever panicked with it has replaced all of it or nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
