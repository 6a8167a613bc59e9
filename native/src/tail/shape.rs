//! The base table's shape, and bringing rows of other places to it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use lance::Dataset;
use lance::dataset::mem_wal::{TOMBSTONE, arrow_schema_with_field_ids, reconcile_batches};
use lance_core::datatypes::LANCE_FIELD_ID_KEY;

use super::content::{Content, digests, key_digests};
use crate::error::Fault;

/// Columns and key of a base table. Rows written under an older schema are
/// brought to this one before they are compared; a column they lack is null.
pub struct Shape {
    columns: SchemaRef,
    /// Key columns; none: rows are told apart by their content alone.
    pub key: Vec<String>,
    /// Bytes of blob columns lie outside of the rows: such rows can't be compared.
    pub comparable: bool,
}

impl Shape {
    pub fn of(base: &Dataset) -> Self {
        let schema = base.schema();
        let key = schema.unenforced_primary_key();
        Self {
            columns: Arc::new(arrow_schema_with_field_ids(schema)),
            key: key.iter().map(|field| field.name.clone()).collect(),
            comparable: !schema.fields_pre_order().any(|field| field.is_blob()),
        }
    }

    pub fn keyed(&self) -> bool {
        !self.key.is_empty()
    }

    /// Key and content of each row. `schema` is the batch's own, with field ids
    /// where the place it comes from has them.
    pub fn rows(&self, schema: &Schema, batch: RecordBatch) -> Result<Vec<(u128, Content)>, Fault> {
        let tombstones = tombstones(&batch);
        let source = self.trustworthy(schema);
        let mapped = reconcile_batches(&source, &self.columns, &self.key, vec![batch])?;
        let mut rows = Vec::new();
        for batch in mapped {
            let contents = digests(batch.columns(), batch.num_rows())?;
            let keys = match self.keyed() {
                true => key_digests(&batch, &self.key)?,
                false => contents.clone(),
            };
            rows.extend(keys.into_iter().zip(contents));
        }
        let is_deleted = |row: usize| match &tombstones {
            Some(column) => column.is_valid(row) && column.value(row),
            None => false,
        };
        Ok(rows
            .into_iter()
            .enumerate()
            .map(|(row, (key, content))| match is_deleted(row) {
                true => (key, Content::Deleted),
                false => (key, Content::Row(content)),
            })
            .collect())
    }

    /// Writers before Lance 14 number a generation's columns afresh, so after a
    /// column was dropped from the base their field ids mean other columns. Ids
    /// are believed only where no column of the same name contradicts them.
    fn trustworthy(&self, schema: &Schema) -> Schema {
        let own: HashMap<&str, &String> = with_ids(&self.columns).collect();
        let contradicts =
            with_ids(schema).any(|(name, id)| own.get(name).is_some_and(|o| *o != id));
        match contradicts {
            true => without_ids(schema),
            false => schema.clone(),
        }
    }
}

fn with_ids(schema: &Schema) -> impl Iterator<Item = (&str, &String)> {
    schema.fields().iter().filter_map(|field| {
        let id = field.metadata().get(LANCE_FIELD_ID_KEY)?;
        Some((field.name().as_str(), id))
    })
}

fn without_ids(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| {
        let mut field: Field = field.as_ref().clone();
        field.metadata_mut().remove(LANCE_FIELD_ID_KEY);
        field
    });
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

fn tombstones(batch: &RecordBatch) -> Option<BooleanArray> {
    let column = batch.column_by_name(TOMBSTONE)?;
    column.as_boolean_opt().cloned()
}
