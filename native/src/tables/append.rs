//! Appends that let a table's schema grow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;
use lance::Dataset;
use lance::dataset::{NewColumnTransform, WriteDestination, WriteMode};
use serde::Deserialize;
use serde_json::json;

use super::commit::{self, Fate};
use super::ipc::{self, Table};
use super::{open_if_there, write_params};
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

/// Attempts against others who change the table at the same time, each from a
/// fresh head.
const ATTEMPTS: usize = 8;

#[derive(Deserialize)]
pub struct Append {
    uri: String,
    #[serde(default)]
    create: bool,
    #[serde(default)]
    properties: HashMap<String, String>,
}

/// Adds rows. Columns that one side lacks read as null.
pub async fn append(engine: Arc<Engine>, request: Append, body: Bytes) -> Result<Reply, Fault> {
    let rows = ipc::read(body).map_err(|fault| fault.at(&request.uri))?;
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match attempt(&engine, &request, rows.clone()).await {
            Ok(version) => return Ok(Reply::json(json!({ "version": version }))),
            // A conflict is certain not to have landed, so trying again is safe.
            Err(fault) if fault.class == Class::Conflict && left > 0 => {}
            Err(fault) => return Err(fault.at(&request.uri)),
        }
    }
}

async fn attempt(engine: &Engine, request: &Append, rows: Table) -> Result<u64, Fault> {
    let (uri, properties) = (&request.uri, &request.properties);
    let Some(mut dataset) = open_if_there(engine, uri).await? else {
        if !request.create {
            return Err(Fault::new(Class::Gone, "no table to append to"));
        }
        let (version, _) = commit::overwrite(engine, uri, None, properties, rows).await?;
        return Ok(version);
    };
    widen(&mut dataset, &rows.schema).await?;
    if rows.rows() == 0 {
        return Ok(dataset.version_id());
    }
    let rows = fit(rows, &Arc::new(Schema::from(dataset.schema())))?;
    let after = dataset.version_id();
    let destination = WriteDestination::from(Arc::new(dataset));
    let params = write_params(engine, WriteMode::Append, properties)?;
    let transaction = commit::stage(destination.clone(), &params, rows.reader()).await?;
    let uuid = transaction.uuid.clone();
    match commit::commit(engine, destination, transaction).await {
        Ok(dataset) => Ok(dataset.version_id()),
        Err(fault) => match commit::fate(engine, uri, after, &uuid).await {
            Ok(Fate::Landed(version)) => Ok(version),
            _ => Err(fault),
        },
    }
}

/// Adds the columns of `schema` that the table lacks, all null.
async fn widen(dataset: &mut Dataset, schema: &Schema) -> Result<(), Fault> {
    let missing: Vec<Field> = schema
        .fields()
        .iter()
        .filter(|field| dataset.schema().field(field.name()).is_none())
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let nulls = NewColumnTransform::AllNulls(Arc::new(Schema::new(missing)));
    Ok(Box::pin(dataset.add_columns(nulls, None, None)).await?)
}

/// Brings rows into the table's shape.
fn fit(rows: Table, schema: &SchemaRef) -> Result<Table, Fault> {
    let batches = rows
        .batches
        .iter()
        .map(|batch| fit_batch(batch, schema))
        .collect::<Result<_, _>>()?;
    Ok(Table {
        schema: schema.clone(),
        batches,
    })
}

fn fit_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Fault> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) => Ok(column.clone()),
            None if field.is_nullable() => Ok(new_null_array(field.data_type(), batch.num_rows())),
            None => Err(Fault::new(
                Class::Invalid,
                format!("column {:?} is required", field.name()),
            )),
        })
        .collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
        .map_err(|error| Fault::new(Class::Invalid, format!("body: {error}")))
}
