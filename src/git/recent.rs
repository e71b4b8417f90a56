//! A cache of the objects the last append wrote. The next append reads most of them: the commit and the changed
//! folders.

use std::collections::HashMap;
use std::sync::Arc;

use gix::{ObjectId, objs};
use parking_lot::Mutex;

use super::objects::NewObject;

/// Larger objects are not cached.
const MAX_SIZE: usize = 64 << 10;

/// An object's id is its content hash, so the cache never goes stale.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentObjects(Arc<Mutex<Objects>>);

type Objects = HashMap<ObjectId, (objs::Kind, Arc<[u8]>)>;

impl RecentObjects {
    /// Replaces the cached objects. The new ones must be durable.
    pub(super) fn replace(&self, objects: &[NewObject]) {
        let is_wanted = |object: &&NewObject| object.kind != objs::Kind::Blob && object.bytes.len() <= MAX_SIZE;
        let cached = |object: &NewObject| (object.id, (object.kind, object.bytes.as_slice().into()));
        *self.0.lock() = objects.iter().filter(is_wanted).map(cached).collect();
    }

    pub(super) fn find(&self, id: &gix::oid) -> Option<(objs::Kind, Arc<[u8]>)> {
        self.0.lock().get(id).cloned()
    }
}
