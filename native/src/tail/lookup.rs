//! What a table has under given keys.

use std::collections::{HashMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::ProjectionRequest;
use lance::dataset::mem_wal::arrow_schema_with_field_ids;
use lance_core::ROW_ID;

use super::content::{Content, key_digests};
use super::shape::Shape;
use crate::base::Size;
use crate::error::{Class, Fault};

/// Bytes of rows that are in memory at once, about.
const CHUNK_BYTES: u64 = 32 << 20;
/// Rows taken at once at most.
const CHUNK_ROWS: usize = 4096;

/// The contents under those of the wanted keys that the table has. Only key
/// columns are scanned; whole rows are read of the keys that are found.
pub async fn contents(
    table: &Dataset,
    shape: &Shape,
    wanted: &HashSet<u128>,
) -> Result<HashMap<u128, Content>, Fault> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    if !shape.keyed() {
        return all_contents(table, shape, wanted).await;
    }
    let found = rows_with(table, shape, wanted).await?;
    let at_once = rows_at_once(table).await?;
    let schema = arrow_schema_with_field_ids(table.schema());
    let mut contents = HashMap::new();
    for rows in found.chunks(at_once) {
        let projection = ProjectionRequest::from_schema(table.schema().clone());
        let batch = Box::pin(table.take_rows(rows, projection)).await?;
        add(&mut contents, shape.rows(&schema, batch)?);
    }
    Ok(contents)
}

/// Without a key a row is its own key: all columns are read.
async fn all_contents(
    table: &Dataset,
    shape: &Shape,
    wanted: &HashSet<u128>,
) -> Result<HashMap<u128, Content>, Fault> {
    let schema = arrow_schema_with_field_ids(table.schema());
    let mut scanner = table.scan();
    scanner.batch_size(rows_at_once(table).await?);
    let mut batches = Box::pin(scanner.try_into_stream()).await?;
    let mut contents = HashMap::new();
    while let Some(batch) = batches.try_next().await? {
        let mut rows = shape.rows(&schema, batch)?;
        rows.retain(|(key, _)| wanted.contains(key));
        add(&mut contents, rows);
    }
    Ok(contents)
}

fn add(contents: &mut HashMap<u128, Content>, rows: Vec<(u128, Content)>) {
    for (key, content) in rows {
        contents
            .entry(key)
            .and_modify(|known| *known = known.and(content))
            .or_insert(content);
    }
}

/// Ids of the rows with a wanted key.
async fn rows_with(
    table: &Dataset,
    shape: &Shape,
    wanted: &HashSet<u128>,
) -> Result<Vec<u64>, Fault> {
    let mut scanner = table.scan();
    scanner.project(&shape.key)?;
    scanner.with_row_id();
    let mut batches = Box::pin(scanner.try_into_stream()).await?;
    let mut found = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let ids = batch.column_by_name(ROW_ID);
        let ids = ids.ok_or_else(|| Fault::new(Class::Internal, "a scan gave no row ids"))?;
        let ids = ids.as_primitive::<UInt64Type>();
        let keys = key_digests(&batch, &shape.key)?;
        let rows = keys.iter().zip(ids.values());
        found.extend(
            rows.filter(|(key, _)| wanted.contains(key))
                .map(|(_, id)| *id),
        );
    }
    Ok(found)
}

async fn rows_at_once(table: &Dataset) -> Result<usize, Fault> {
    let size = Size::of(table, 0).await?;
    let rows = (size.rows + size.deleted_rows).max(1) as u64;
    let each = match size.bytes {
        // Nothing is known: assume what a chunk of a hundred rows can bear.
        ..0 => CHUNK_BYTES / 100,
        bytes => bytes as u64 / rows,
    };
    Ok(((CHUNK_BYTES / each.max(1)) as usize).clamp(1, CHUNK_ROWS))
}
