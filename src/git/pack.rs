//! Many objects at once go into a pack: two files and two flushes instead of thousands.

use std::{io::Write, path::Path};

use gix::{hash, objs};

use super::{
    disk,
    error::Error,
    objects::NewObject,
    program::{Call, Environment},
};

/// From this number of objects on a pack costs less than loose files, the start of `git index-pack` included.
pub(super) const WORTH_A_PACK: usize = 64;

/// Writes the objects as one pack, durable when it returns Ok. `git index-pack` checks every object and writes the
/// index beside it.
pub(super) fn write(
    environment: &Environment,
    git_dir: &Path,
    objects_directory: &Path,
    hash: hash::Kind,
    objects: &[NewObject],
) -> Result<(), Error> {
    let stream = encode(hash, objects).map_err(|what| Error::damaged(objects_directory, what))?;
    Call::new(environment, git_dir, &["index-pack", "--stdin"]).input(stream).succeed()?;
    disk::flush_folder(&objects_directory.join("pack"))
}

/// A pack of whole objects: `gitformat-pack`, version 2.
fn encode(hash: hash::Kind, objects: &[NewObject]) -> Result<Vec<u8>, String> {
    let count = u32::try_from(objects.len()).map_err(|_| "too many objects for one pack".to_owned())?;
    let mut stream = b"PACK\0\0\0\x02".to_vec();
    stream.extend(count.to_be_bytes());
    for object in objects {
        stream.extend(header(object));
        let mut writer = gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::DEFAULT);
        writer.write_all(&object.bytes).and_then(|()| writer.flush()).map_err(|cause| cause.to_string())?;
        stream.extend(writer.into_inner());
    }
    let mut hasher = hash::hasher(hash);
    hasher.update(&stream);
    let checksum = hasher.try_finalize().map_err(|cause| cause.to_string())?;
    stream.extend(checksum.as_slice());
    Ok(stream)
}

/// Kind and size: four bits of the size beside the kind, then seven bits per byte, the lowest first.
fn header(object: &NewObject) -> Vec<u8> {
    let kind: u8 = match object.kind {
        objs::Kind::Commit => 1,
        objs::Kind::Tree => 2,
        objs::Kind::Blob => 3,
        objs::Kind::Tag => 4,
    };
    let mut size = object.bytes.len();
    let low = |size: usize, bits: u32| u8::try_from(size & ((1 << bits) - 1)).unwrap_or_default();
    let mut bytes = vec![(kind << 4) | low(size, 4)];
    size >>= 4;
    while size > 0 {
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        bytes.push(low(size, 7));
        size >>= 7;
    }
    bytes
}
