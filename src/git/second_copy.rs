//! Finds another copy of an object whose first copy cannot be read: folded packs stay for a while, and git keeps loose
//! objects it packed until it prunes. git falls back to the next copy by itself, gix does not.

use std::{fs, path::Path};

use gix::{
    hash, objs,
    odb::{loose, pack},
};

use super::objects::identify;

/// Where copies may be. Opened once for many objects.
pub(super) struct Copies {
    loose: loose::Store,
    packs: Vec<pack::Bundle>,
}

impl Copies {
    pub(super) fn open(objects: &Path, hash: hash::Kind) -> Self {
        let files = fs::read_dir(objects.join("pack")).into_iter().flatten().flatten().map(|file| file.path());
        let indexes = files.filter(|path| path.extension().is_some_and(|kind| kind == "idx"));
        let packs = indexes.filter_map(|index| pack::Bundle::at(index, hash).ok()).collect();
        Self { loose: loose::Store::at(objects, hash), packs }
    }

    /// The first intact copy.
    pub(super) fn find(&self, hash: hash::Kind, id: &gix::oid) -> Option<(objs::Kind, Vec<u8>)> {
        let sound = |object: objs::Data<'_>| {
            let is_sound = identify(hash, object.kind, object.data).is_ok_and(|found| *found == *id);
            is_sound.then(|| (object.kind, object.data.to_vec()))
        };
        let mut buffer = Vec::new();
        if let Some(copy) = self.loose.try_find(id, &mut buffer).ok().flatten().and_then(sound) {
            return Some(copy);
        }
        self.packs.iter().find_map(|pack| {
            let (mut bytes, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
            let (object, _) = pack.find(id, &mut bytes, &mut inflate, &mut pack::cache::Never).ok()??;
            sound(object)
        })
    }
}
