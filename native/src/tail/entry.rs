//! One WAL entry: whose it is, and what its rows are.

use std::io::Cursor;

use arrow_ipc::reader::StreamReader;
use arrow_schema::Schema;
use bytes::Bytes;
use object_store::ObjectStoreExt;
use uuid::Uuid;

use super::content::Content;
use super::shape::Shape;
use crate::error::{Class, Fault};
use crate::fingerprint::wal_entry;
use crate::remote::Remote;

/// Lance 14 writes the generation that an entry's rows go into beside them, and
/// for tables with blobs also the folder.
const GENERATION: &str = "generation";
const TARGET_GENERATION: &str = "mem_wal_target_generation";
const TARGET_FOLDER: &str = "mem_wal_target_generation_dir";

/// What was read of one entry. Its rows themselves are gone.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub position: u64,
    /// Unix ms of the object.
    pub time: i64,
    /// The generation it says its rows go into.
    pub generation: Option<u64>,
    /// The folder of that generation, where blobs are written ahead.
    pub folder: Option<String>,
    /// -1: not known.
    pub count: i64,
    /// None: it could not be read, or there was no room for it.
    pub rows: Option<Vec<(u128, Content)>>,
}

impl Entry {
    /// One that could not be read.
    pub fn unread(position: u64, time: i64) -> Self {
        Self {
            position,
            time,
            count: -1,
            ..Self::default()
        }
    }

    pub fn has_rows(&self) -> bool {
        self.count != 0
    }
}

/// Reads an entry of at most `room` bytes; answers it and its size. `None`: it
/// is not there.
pub async fn read(
    remote: &Remote,
    shard: Uuid,
    position: u64,
    shape: &Shape,
    room: u64,
) -> Result<Option<(Entry, u64)>, Fault> {
    let path = wal_entry(&remote.base, &shard, position);
    let got = match remote.store.inner.get(&path).await {
        Ok(got) => got,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (size, time) = (got.meta.size, got.meta.last_modified.timestamp_millis());
    if size > room {
        return Ok(Some((Entry::unread(position, time), size)));
    }
    let bytes = got.bytes().await?;
    let entry = match decode(bytes, shape) {
        Ok(entry) => Entry {
            position,
            time,
            ..entry
        },
        // Broken, or of columns that can't be compared: of unknown state.
        Err(fault) if matters_to_the_entry(fault.class) => Entry::unread(position, time),
        Err(fault) => return Err(fault),
    };
    Ok(Some((entry, size)))
}

/// Whether an entry can be read to its end, as whoever replays it must. Positions
/// have no gaps.
pub async fn check(remote: &Remote, shard: Uuid, position: u64) -> Result<(), Fault> {
    let path = wal_entry(&remote.base, &shard, position);
    let got = match remote.store.inner.get(&path).await {
        Ok(got) => got,
        Err(object_store::Error::NotFound { .. }) => {
            let message = format!(
                "WAL entry {position} of shard {shard} is not there, and later ones are: nothing \
                 was replayed"
            );
            return Err(Fault::new(Class::Corrupt, message));
        }
        Err(error) => return Err(error.into()),
    };
    let bytes = got.bytes().await?;
    let size = bytes.len();
    whole(bytes).map_err(|fault| {
        let message = format!(
            "WAL entry {position} of shard {shard} ({size} bytes) can't be read, so nothing was \
             replayed: {}",
            fault.message
        );
        Fault::new(Class::Corrupt, message)
    })
}

fn whole(bytes: Bytes) -> Result<(), Fault> {
    for batch in StreamReader::try_new(Cursor::new(bytes), None)? {
        batch?;
    }
    Ok(())
}

fn matters_to_the_entry(class: Class) -> bool {
    matches!(
        class,
        Class::Corrupt | Class::Invalid | Class::Unsupported | Class::Internal
    )
}

fn decode(bytes: Bytes, shape: &Shape) -> Result<Entry, Fault> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    let schema = reader.schema();
    let mut entry = Entry {
        generation: number(&schema, GENERATION)?.or(number(&schema, TARGET_GENERATION)?),
        folder: schema.metadata().get(TARGET_FOLDER).cloned(),
        ..Entry::default()
    };
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch?;
        // A sentinel has neither columns nor rows.
        if batch.num_rows() > 0 {
            rows.extend(shape.rows(&schema, batch)?);
        }
    }
    entry.count = rows.len() as i64;
    entry.rows = Some(rows);
    Ok(entry)
}

fn number(schema: &Schema, key: &str) -> Result<Option<u64>, Fault> {
    let Some(text) = schema.metadata().get(key) else {
        return Ok(None);
    };
    let number = text
        .parse()
        .map_err(|_| Fault::new(Class::Corrupt, format!("a WAL entry says {key} = {text:?}")))?;
    Ok(Some(number))
}
