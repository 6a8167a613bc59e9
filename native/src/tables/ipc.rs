//! Arrow IPC streams: how tables cross the border.

use std::io::Cursor;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use futures::TryStreamExt;
use lance::dataset::scanner::DatasetRecordBatchStream;
use lance_io::stream::RecordBatchStream;

use crate::error::{Class, Fault};

/// A table in memory. It has a schema even when it has no rows.
#[derive(Clone, Debug)]
pub struct Table {
    pub schema: SchemaRef,
    /// None of them is empty.
    pub batches: Vec<RecordBatch>,
}

impl Table {
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub fn reader(self) -> Box<dyn RecordBatchReader + Send> {
        let batches = self.batches.into_iter().map(Ok);
        Box::new(RecordBatchIterator::new(batches, self.schema))
    }
}

/// Decodes a request's body.
pub fn read(body: Bytes) -> Result<Table, Fault> {
    let reader = StreamReader::try_new(Cursor::new(body), None).map_err(undecodable)?;
    let schema = reader.schema();
    let mut batches = reader.collect::<Result<Vec<_>, _>>().map_err(undecodable)?;
    batches.retain(|batch| batch.num_rows() > 0);
    Ok(Table { schema, batches })
}

/// The request is at fault, not something stored.
fn undecodable(error: ArrowError) -> Fault {
    Fault::new(Class::Invalid, format!("body: {error}"))
}

/// Encodes a scan as a reply's body.
pub async fn write(mut rows: DatasetRecordBatchStream) -> Result<Vec<u8>, Fault> {
    let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema())?;
    while let Some(batch) = rows.try_next().await? {
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(writer.into_inner()?)
}
