//! Finds another copy of an object whose first copy cannot be read: folded packs stay for a while, and git keeps loose
//! objects it packed until it prunes. git falls back to the next copy by itself, gix does not.

use std::{fs, path::Path};

use gix::{
    hash, objs,
    odb::{loose, pack},
};

use super::objects::identify;

/// The first intact copy.
pub(super) fn find(objects: &Path, hash: hash::Kind, id: &gix::oid) -> Option<(objs::Kind, Vec<u8>)> {
    let sound = |object: objs::Data<'_>| {
        let is_sound = identify(hash, object.kind, object.data).is_ok_and(|found| *found == *id);
        is_sound.then(|| (object.kind, object.data.to_vec()))
    };
    let mut buffer = Vec::new();
    let loose = loose::Store::at(objects, hash);
    if let Some(copy) = loose.try_find(id, &mut buffer).ok().flatten().and_then(sound) {
        return Some(copy);
    }
    let files = fs::read_dir(objects.join("pack")).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "idx")).find_map(|index| {
        let (mut bytes, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
        let pack = pack::Bundle::at(index, hash).ok()?;
        let (object, _) = pack.find(id, &mut bytes, &mut inflate, &mut pack::cache::Never).ok()??;
        sound(object)
    })
}
