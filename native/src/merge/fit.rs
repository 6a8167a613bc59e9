//! Whether the base can take a generation's rows as they are.

use arrow_schema::Schema;
use lance::Dataset;
use lance::dataset::mem_wal::{TOMBSTONE, reconcile_batches};

use crate::generation::{Generation, schema_of};
use crate::maintain::Refusal;

/// A column that the base got later is null in older rows. Everything else must
/// be there under the same name and type.
pub fn refusal(base: &Dataset, key: &[String], generation: &Generation) -> Option<Refusal> {
    let number = generation.number();
    for table in [base, &generation.table] {
        let mut fields = table.schema().fields_pre_order();
        if let Some(blob) = fields.find(|field| field.is_blob()) {
            return Some(Refusal::new(
                "blob",
                format!(
                    "column {:?} is a blob, whose bytes lie outside of the rows: merging such \
                     tables is not supported",
                    blob.name
                ),
            ));
        }
    }
    let why = stranger(base, generation)
        .or_else(|| required(base, generation))
        .or_else(|| mismatch(base, key, &generation.schema()))?;
    Some(Refusal::new(
        "schema",
        format!("the table can't take the rows of generation {number}: {why}"),
    ))
}

/// A column that the base lacks, or has as another one under the same name.
fn stranger(base: &Dataset, generation: &Generation) -> Option<String> {
    for field in &generation.table.schema().fields {
        let name = &field.name;
        if name == TOMBSTONE {
            continue;
        }
        match base.schema().field(name) {
            None => return Some(format!("the table has no column {name:?}")),
            Some(own) if own.id != field.id && generation.has_the_tables_ids() => {
                return Some(format!(
                    "the table's column {name:?} is not the one that was written: it was removed \
                     or renamed, and another one took its name"
                ));
            }
            Some(_) => {}
        }
    }
    None
}

/// A column that must not be null, and that the generation knows nothing of.
fn required(base: &Dataset, generation: &Generation) -> Option<String> {
    let mut fields = base.schema().fields.iter();
    let absent = fields
        .find(|field| !field.nullable && generation.table.schema().field(&field.name).is_none())?;
    let name = &absent.name;
    Some(format!(
        "they lack the column {name:?}, which can't be null"
    ))
}

/// Types that differ, at any depth. Nothing is mapped yet.
fn mismatch(base: &Dataset, key: &[String], source: &Schema) -> Option<String> {
    let mapped = reconcile_batches(source, &schema_of(base), key, Vec::new());
    mapped
        .err()
        .map(|error| crate::error::Fault::from(error).message)
}
