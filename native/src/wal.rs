//! The WAL of one shard: where it ends, and which entries have rows.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt};
use lance::dataset::mem_wal::util::parse_bit_reversed_filename;
use lance_index::mem_wal::ShardManifest;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use uuid::Uuid;

use crate::error::Fault;
use crate::fingerprint::{wal_dir, wal_entry};
use crate::remote::Remote;

/// First position of a WAL.
const FIRST: u64 = 1;
/// HEADs that go out at once while the end of a WAL is sought.
const AHEAD_MAX: u64 = 64;
/// Positions tried one by one before a listing is cheaper.
const PROBES_MAX: u64 = 4096;
/// What is read of an entry. It holds the whole of an entry without rows, and of
/// small ones; of a big one it shows the first batch's number of rows.
const READ_BYTES: u64 = 64 << 10;
/// The end of an Arrow IPC stream: 0xFFFFFFFF and a zero.
const END_MARKER_BYTES: u64 = 8;
/// Entries past the flush cursor that are looked into, newest first. A longer
/// tail is taken to have rows: nobody writes that many empty entries.
const LOOK_INTO_MAX: u64 = 512;
/// How far the newest entry with rows is sought backwards.
const BACKWARDS_MAX: u64 = 64;
/// Reads of entries at once.
const READS_AT_ONCE: usize = 16;

/// What one WAL entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub position: u64,
    /// Unix ms of the object.
    pub time: i64,
    pub rows: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All of the entry was seen.
    Exactly(i64),
    /// It has rows; how many would take reading all of it.
    Some,
}

impl Rows {
    pub fn any(self) -> bool {
        self != Self::Exactly(0)
    }
}

/// What an observation says about a WAL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// First position that does not exist.
    pub next: u64,
    /// Entries with rows past the flush cursor.
    pub entries: i64,
    /// Rows in them; -1: not all counted.
    pub rows: i64,
    /// Newest entry with rows, and its time in unix ms; 0: none found.
    pub newest: u64,
    pub newest_time: i64,
}

/// Times of the newest entries, unix ms; 0: none found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    pub with_rows: i64,
    /// Also without rows, as whoever claims a shard leaves one.
    pub at_all: i64,
}

/// One shard's WAL.
pub struct Wal<'a> {
    pub remote: &'a Remote,
    pub shard: Uuid,
}

impl Wal<'_> {
    /// Measures the WAL. `cursor`: the last flushed position. `seen`: a position
    /// that somebody has seen, to start from.
    pub async fn tail(&self, cursor: u64, seen: u64) -> Result<Tail, Fault> {
        let next = self.next_position(cursor.max(seen)).await?;
        let from = (cursor + 1)
            .max(next.saturating_sub(LOOK_INTO_MAX))
            .max(FIRST);
        let looked = self.entries(from..next).await?;
        let mut tail = Tail {
            next,
            ..Tail::default()
        };
        for entry in &looked {
            tail.add(entry.rows);
        }
        if let Some(unseen @ 1..) = from.checked_sub(cursor + 1) {
            tail.entries += unseen as i64;
            tail.rows = -1;
        }
        let newest = match looked.iter().rev().find(|entry| entry.rows.any()) {
            Some(entry) => Some(*entry),
            None => self.newest_with_rows(from.min(next)).await?,
        };
        if let Some(entry) = newest {
            (tail.newest, tail.newest_time) = (entry.position, entry.time);
        }
        Ok(tail)
    }

    /// First position that does not exist, after this manifest of the shard was read.
    pub async fn end(&self, manifest: Option<&ShardManifest>) -> Result<u64, Fault> {
        let (cursor, seen) = manifest.map_or((0, 0), |one| {
            (
                one.replay_after_wal_entry_position,
                one.wal_entry_position_last_seen,
            )
        });
        self.next_position(cursor.max(seen)).await
    }

    /// Whether there are entries after `end` although none is there: one was lost,
    /// and whoever reads them in order never gets to those after it.
    pub async fn has_more_after(&self, end: u64) -> Result<bool, Fault> {
        Ok(self.next_by_listing().await? > end && !self.exists(end).await?)
    }

    /// When it was written last, looking back from `end` as far as for a tail.
    pub async fn last(&self, end: u64) -> Result<Last, Fault> {
        let mut last = Last::default();
        let lowest = end.saturating_sub(BACKWARDS_MAX).max(FIRST);
        for position in (lowest..end).rev() {
            let Some(entry) = self.entry(position).await? else {
                break;
            };
            last.at_all = last.at_all.max(entry.time);
            if entry.rows.any() {
                last.with_rows = entry.time;
                break;
            }
        }
        Ok(last)
    }

    /// First position that does not exist. Positions have no gaps, so it is the
    /// first absent one after a present one; `seen` is where to begin. When that
    /// entry is not there (a stale hint), or the end is far, a LIST tells.
    pub async fn next_position(&self, seen: u64) -> Result<u64, Fault> {
        let mut next = seen.max(FIRST);
        if seen >= FIRST {
            if !self.exists(seen).await? {
                return self.next_by_listing().await;
            }
            next = seen + 1;
        }
        let (start, mut ahead) = (next, 1);
        while next - start < PROBES_MAX {
            let window = next..next + ahead;
            if let Some(absent) = self.first_absent(window).await? {
                return Ok(absent);
            }
            next += ahead;
            ahead = (ahead * 2).min(AHEAD_MAX);
        }
        self.next_by_listing().await
    }

    async fn exists(&self, position: u64) -> Result<bool, Fault> {
        let path = wal_entry(&self.remote.base, &self.shard, position);
        Ok(self.remote.head(&path).await?.is_some())
    }

    async fn first_absent(&self, window: Range<u64>) -> Result<Option<u64>, Fault> {
        let present: Vec<bool> = futures::stream::iter(window.clone())
            .map(|position| self.exists(position))
            .buffered(AHEAD_MAX as usize)
            .try_collect()
            .await?;
        let absent = present.iter().position(|present| !present);
        Ok(absent.map(|offset| window.start + offset as u64))
    }

    async fn next_by_listing(&self) -> Result<u64, Fault> {
        let directory = wal_dir(&self.remote.base, &self.shard);
        let mut listed = self.remote.store.inner.list(Some(&directory));
        let mut next = FIRST;
        while let Some(object) = listed.try_next().await? {
            let name = object.location.filename().unwrap_or_default();
            if name.ends_with(".arrow")
                && let Some(position) = parse_bit_reversed_filename(name)
            {
                next = next.max(position + 1);
            }
        }
        Ok(next)
    }

    /// The newest entry with rows below `end`, not too far down.
    async fn newest_with_rows(&self, end: u64) -> Result<Option<Entry>, Fault> {
        let lowest = end.saturating_sub(BACKWARDS_MAX).max(FIRST);
        for position in (lowest..end).rev() {
            match self.entry(position).await? {
                Some(entry) if entry.rows.any() => return Ok(Some(entry)),
                Some(_) => {}
                // Whoever removed entries removed the older ones too.
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The entries of a range, in order. One that vanished is left out.
    async fn entries(&self, range: Range<u64>) -> Result<Vec<Entry>, Fault> {
        let read: Vec<Option<Entry>> = futures::stream::iter(range)
            .map(|position| self.entry(position))
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await?;
        Ok(read.into_iter().flatten().collect())
    }

    /// 1 GET, of at most the first 64 KiB.
    async fn entry(&self, position: u64) -> Result<Option<Entry>, Fault> {
        let path = wal_entry(&self.remote.base, &self.shard, position);
        let options = GetOptions {
            range: Some(GetRange::Bounded(0..READ_BYTES)),
            ..GetOptions::default()
        };
        let got = match self.remote.store.inner.get_opts(&path, options).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return self.empty_object(position, &path, error).await,
        };
        let (size, time) = (got.meta.size, got.meta.last_modified.timestamp_millis());
        let bytes = got.bytes().await?;
        Ok(Some(Entry {
            position,
            time,
            rows: rows_in(&bytes, size),
        }))
    }

    /// Stores refuse a range of an object without bytes. Such an entry is broken,
    /// which is no reason to give up on the whole table.
    async fn empty_object(
        &self,
        position: u64,
        path: &Path,
        error: object_store::Error,
    ) -> Result<Option<Entry>, Fault> {
        match self.remote.head(path).await {
            Ok(Some(meta)) if meta.size == 0 => Ok(Some(Entry {
                position,
                time: meta.last_modified.timestamp_millis(),
                rows: Rows::Some,
            })),
            _ => Err(error.into()),
        }
    }
}

impl Tail {
    fn add(&mut self, rows: Rows) {
        self.entries += i64::from(rows.any());
        self.rows = match (self.rows, rows) {
            (-1, _) | (_, Rows::Some) => -1,
            (sum, Rows::Exactly(rows)) => sum + rows,
        };
    }
}

/// The rows of an entry of `size` bytes, of which `bytes` is the beginning. An
/// entry is an Arrow IPC stream; the number of rows stands in the header of each
/// batch, so no column is decoded. A fence sentinel has no batches, and whatever
/// can't be understood is taken to have rows: that is the careful answer.
fn rows_in(bytes: &[u8], size: u64) -> Rows {
    let mut rows = 0;
    let mut at = 0;
    loop {
        match next_message(bytes, at) {
            Message::End => return Rows::Exactly(rows),
            Message::Unknown => return Rows::Some,
            Message::Batch { rows: more, end } => {
                rows += more;
                at = end;
            }
            Message::Other { end } => at = end,
        }
        // Nothing or only the end marker follows, read or not.
        if size.saturating_sub(at as u64) <= END_MARKER_BYTES {
            return Rows::Exactly(rows);
        }
    }
}

enum Message {
    End,
    /// Beyond what was read, or not Arrow.
    Unknown,
    Batch {
        rows: i64,
        end: usize,
    },
    Other {
        end: usize,
    },
}

/// The message at `at`: a marker of 0xFFFFFFFF (absent in old streams), the size
/// of the header, the header, the body.
fn next_message(bytes: &[u8], at: usize) -> Message {
    let word = |at: usize| -> Option<u32> {
        let word = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    };
    let (size, start) = match word(at) {
        Some(u32::MAX) => (word(at + 4), at + 8),
        size => (size, at + 4),
    };
    let Some(size) = size else {
        return Message::Unknown;
    };
    if size == 0 {
        return Message::End;
    }
    let Some(end) = start.checked_add(size as usize) else {
        return Message::Unknown;
    };
    let header = bytes.get(start..end).map(arrow_ipc::root_as_message);
    let Some(Ok(message)) = header else {
        return Message::Unknown;
    };
    let body = usize::try_from(message.bodyLength()).unwrap_or(usize::MAX);
    let Some(end) = end.checked_add(body) else {
        return Message::Unknown;
    };
    match message.header_as_record_batch() {
        Some(batch) => Message::Batch {
            rows: batch.length(),
            end,
        },
        None => Message::Other { end },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch};
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn stream(fields: usize, batches: &[usize]) -> Vec<u8> {
        let fields: Vec<_> = (0..fields)
            .map(|n| Field::new(format!("column {n}"), DataType::Int64, true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
        for rows in batches {
            let columns = schema
                .fields()
                .iter()
                .map(|_| Arc::new(Int64Array::from(vec![7; *rows])) as _)
                .collect();
            let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
            writer.write(&batch).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn a_sentinel_without_fields_and_an_entry_of_empty_batches_have_no_rows() {
        for bytes in [stream(0, &[]), stream(3, &[]), stream(3, &[0, 0])] {
            assert_eq!(rows_in(&bytes, bytes.len() as u64), Rows::Exactly(0));
        }
    }

    #[test]
    fn the_rows_of_all_batches_are_counted() {
        let bytes = stream(3, &[5, 0, 2]);
        assert_eq!(rows_in(&bytes, bytes.len() as u64), Rows::Exactly(7));
    }

    #[test]
    fn an_entry_that_was_not_read_to_its_end_is_counted_if_it_has_one_batch() {
        let bytes = stream(3, &[5000]);
        assert_eq!(
            rows_in(&bytes[..2000], bytes.len() as u64),
            Rows::Exactly(5000)
        );
        let bytes = stream(3, &[5000, 4]);
        assert_eq!(rows_in(&bytes[..2000], bytes.len() as u64), Rows::Some);
    }

    #[test]
    fn rubbish_and_a_truncated_entry_count_as_rows() {
        assert_eq!(rows_in(b"not arrow at all", 16), Rows::Some);
        let bytes = stream(3, &[5]);
        assert_eq!(rows_in(&bytes[..40], 40), Rows::Some);
        assert_eq!(rows_in(b"", 0), Rows::Some);
    }
}
