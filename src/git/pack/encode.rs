//! Encodes a pack and its index: `gitformat-pack`, version 2 of both.
//!
//! Every object is stored whole, without deltas, so an entry can be copied to another pack as it is.

use std::io::{self, Write};

use gix::{ObjectId, hash, objs};

use crate::git::objects::NewObject;

/// A pack and its index, ready to be written.
pub(super) struct Encoded {
    pub(super) pack: Vec<u8>,
    pub(super) index: Vec<u8>,
}

pub(super) struct Encoder {
    hash: hash::Kind,
    pack: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    id: ObjectId,
    offset: usize,
    crc: u32,
}

/// Magic and version; the number of objects follows.
const HEAD: &[u8] = b"PACK\0\0\0\x02";
const INDEX_HEAD: &[u8] = b"\xfftOc\0\0\0\x02";

/// The length of the pack header.
pub(super) const BEFORE: usize = 12;

impl Encoder {
    pub(super) fn new(hash: hash::Kind) -> Self {
        Self::with_capacity(hash, 0)
    }

    /// Reserves space for a pack of this size.
    pub(super) fn with_capacity(hash: hash::Kind, bytes: usize) -> Self {
        let mut pack = Vec::with_capacity(bytes);
        pack.extend(HEAD);
        pack.extend([0; 4]);
        Self { hash, pack, entries: Vec::new() }
    }

    pub(super) fn add(&mut self, object: &NewObject) -> io::Result<()> {
        let bytes = [header(object), compress(&object.bytes)?].concat();
        self.copy(object.id, &bytes);
        Ok(())
    }

    /// Adds an entry of another pack. Each object may be added once.
    pub(super) fn copy(&mut self, id: ObjectId, entry: &[u8]) {
        self.entries.push(Entry { id, offset: self.pack.len(), crc: crc32fast::hash(entry) });
        self.pack.extend(entry);
    }

    pub(super) fn finish(mut self) -> io::Result<Encoded> {
        let count = u32::try_from(self.entries.len()).map_err(|_| too_large())?;
        self.pack[HEAD.len()..BEFORE].copy_from_slice(&count.to_be_bytes());
        let checksum = checksum(self.hash, &self.pack)?;
        self.pack.extend(checksum.as_slice());
        let index = self.index(&checksum)?;
        Ok(Encoded { pack: self.pack, index })
    }

    /// The fan-out table (how many ids begin with at most each byte), then the sorted ids, their checksums and offsets.
    fn index(&mut self, pack: &ObjectId) -> io::Result<Vec<u8>> {
        self.entries.sort_by_key(|entry| entry.id);
        let mut index = INDEX_HEAD.to_vec();
        let mut below = 0;
        for byte in 0..=u8::MAX {
            below += self.entries[below..].iter().take_while(|entry| entry.id.first_byte() == byte).count();
            index.extend(u32::try_from(below).map_err(|_| too_large())?.to_be_bytes());
        }
        self.entries.iter().for_each(|entry| index.extend(entry.id.as_slice()));
        self.entries.iter().for_each(|entry| index.extend(entry.crc.to_be_bytes()));
        for entry in &self.entries {
            // The highest bit refers to a table of 64-bit offsets, which packs below 2 GiB do not need.
            let offset = i32::try_from(entry.offset).map_err(|_| too_large())?;
            index.extend(offset.to_be_bytes());
        }
        index.extend(pack.as_slice());
        let checksum = checksum(self.hash, &index)?;
        index.extend(checksum.as_slice());
        Ok(index)
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "too much for one pack")
}

fn checksum(hash: hash::Kind, bytes: &[u8]) -> io::Result<ObjectId> {
    let mut hasher = hash::hasher(hash);
    hasher.update(bytes);
    hasher.try_finalize().map_err(|cause| io::Error::other(cause.to_string()))
}

/// Kind and size: four bits of the size next to the kind, then seven bits per byte, lowest first.
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

/// Whether an entry is a whole object, by its first byte: a delta cannot be copied alone.
pub(super) fn is_whole(entry: &[u8]) -> bool {
    entry.first().is_some_and(|byte| (1..=4).contains(&(byte >> 4 & 7)))
}

/// The usual block size of file systems.
const BLOCK: usize = 4096;

/// Objects that fit into one disk block are stored uncompressed: setting up compression costs more than the rest of an
/// append, and git recompresses when it packs. Others are compressed for speed.
fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    if let Some(stored) = store(bytes) {
        return Ok(stored);
    }
    let mut writer = gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::BEST_SPEED);
    writer.write_all(bytes)?;
    writer.flush()?;
    Ok(writer.into_inner())
}

/// A zlib stream (RFC 1950) of one stored block (RFC 1951, 3.2.4), if it fits into one disk block.
fn store(bytes: &[u8]) -> Option<Vec<u8>> {
    const AROUND: usize = 11;
    let length = u16::try_from(bytes.len()).ok().filter(|_| bytes.len() + AROUND <= BLOCK)?;
    // Deflate with a window of 32 KiB and no dictionary; one final, stored block.
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(bytes);
    // Adler-32: so few bytes cannot overflow the sums before they are reduced.
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = low + u32::from(*byte);
        (low, high + low)
    });
    stream.extend(((high % 65_521) << 16 | (low % 65_521)).to_be_bytes());
    Some(stream)
}
