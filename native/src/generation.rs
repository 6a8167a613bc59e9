//! One flushed generation of a shard: a small Lance dataset of its own, whose
//! rows are read in order and never all at once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use futures::FutureExt;
use lance::Dataset;
use lance::dataset::mem_wal::TOMBSTONE;
use lance::dataset::scanner::{DatasetRecordBatchStream, Scanner};
use lance_index::mem_wal::SsTable;
use uuid::Uuid;

use crate::base::Size;
use crate::engine::Engine;
use crate::error::Fault;

/// Rows that are decoded at once, by their size in memory: rows may be tens of
/// megabytes each.
const BATCH_BYTES: u64 = 8 << 20;
/// What is read ahead from storage.
const READ_AHEAD_BYTES: u64 = 32 << 20;
/// Writers from this one on keep the table's field ids in a generation; older
/// ones number the columns afresh.
const IDS_SINCE_MAJOR: u64 = 14;

/// A generation, opened.
#[derive(Clone, Debug)]
pub struct Generation {
    pub sstable: SsTable,
    pub table: Dataset,
    pub size: Size,
}

impl Generation {
    pub async fn open(
        engine: &Engine,
        uri: &str,
        shard: Uuid,
        sstable: &SsTable,
    ) -> Result<Self, Fault> {
        let uri = uri_of(uri, shard, &sstable.path);
        let table = engine.open(&uri, None).await?;
        let size = Size::of(&table, 0).boxed().await?;
        Ok(Self {
            sstable: sstable.clone(),
            table,
            size,
        })
    }

    pub fn number(&self) -> u64 {
        self.sstable.generation
    }

    /// Of its data files; where their sizes are not known, what its writer
    /// measured in memory. -1: nobody knows.
    pub fn bytes(&self) -> i64 {
        match (self.size.bytes, self.sstable.in_memory_bytes) {
            (-1, Some(measured)) => measured as i64,
            (bytes, _) => bytes,
        }
    }

    /// Its columns as it stores them, without the one that marks deletes.
    pub fn schema(&self) -> Schema {
        let schema = Schema::from(self.table.schema());
        let own = schema.fields().iter().filter(|f| f.name() != TOMBSTONE);
        Schema::new_with_metadata(own.cloned().collect::<Vec<_>>(), schema.metadata().clone())
    }

    /// Whether a column that has another field id than the table's of the same
    /// name is another column.
    pub fn has_the_tables_ids(&self) -> bool {
        let writer = self.table.manifest().writer_version.as_ref();
        let major = writer.and_then(|one| one.version.split('.').next()?.parse::<u64>().ok());
        major.is_some_and(|major| major >= IDS_SINCE_MAJOR)
    }

    pub fn can_delete(&self) -> bool {
        self.table.schema().field(TOMBSTONE).is_some()
    }

    /// The key columns of all rows, and which rows delete, in the same order as
    /// `rows`.
    pub async fn keys(&self, key: &[String]) -> Result<DatasetRecordBatchStream, Fault> {
        let mut columns: Vec<&str> = key.iter().map(String::as_str).collect();
        if self.can_delete() {
            columns.push(TOMBSTONE);
        }
        let mut scanner = in_order(&self.table);
        scanner.project(&columns)?;
        Ok(Box::pin(scanner.try_into_stream()).await?)
    }

    /// All rows.
    pub async fn rows(&self) -> Result<DatasetRecordBatchStream, Fault> {
        Ok(Box::pin(in_order(&self.table).try_into_stream()).await?)
    }
}

pub fn uri_of(table: &str, shard: Uuid, folder: &str) -> String {
    format!("{}/_mem_wal/{shard}/{folder}", table.trim_end_matches('/'))
}

/// A scan in bounded memory whose rows always come in the same order.
pub fn in_order(table: &Dataset) -> Scanner {
    let mut scanner = table.scan();
    scanner
        .scan_in_order(true)
        .batch_size_bytes(BATCH_BYTES)
        .io_buffer_size(READ_AHEAD_BYTES)
        .batch_readahead(2)
        .fragment_readahead(1);
    scanner
}

/// Which rows of a batch delete their key; `None`: it has no such column.
pub fn deletes(batch: &RecordBatch) -> Option<BooleanArray> {
    let column = batch.column_by_name(TOMBSTONE)?;
    column.as_boolean_opt().cloned()
}

/// The batch without the column that marks deletes.
pub fn without_marks(batch: &RecordBatch) -> Result<RecordBatch, Fault> {
    let schema = batch.schema();
    let Ok(marked) = schema.index_of(TOMBSTONE) else {
        return Ok(batch.clone());
    };
    let others: Vec<usize> = (0..schema.fields().len())
        .filter(|i| *i != marked)
        .collect();
    Ok(batch.project(&others)?)
}

/// The schema of a table's rows as they are written into it.
pub fn schema_of(table: &Dataset) -> Arc<Schema> {
    Arc::new(Schema::from(table.schema()))
}
