//! Plausible rows for any schema.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray, new_null_array,
};
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};

use crate::error::{Class, Fault};

/// Numbers that look random and depend on the seed only (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One of 0..sides. The remainder keeps it in range of every type used here.
    fn roll(&mut self, sides: u16) -> u16 {
        (self.next() % u64::from(sides.max(1))) as u16
    }

    fn fraction(&mut self) -> f32 {
        f32::from(self.roll(10_000)) / 10_000.0
    }
}

const WORDS: [&str; 12] = [
    "the", "model", "answers", "a", "question", "about", "numbers", "and", "checks", "every",
    "step", "twice",
];
const ROLES: [&str; 3] = ["user", "assistant", "tool"];

/// One row for each key; `key` names the key's column.
pub fn batch(
    schema: &SchemaRef,
    key: &str,
    keys: &[String],
    dice: &mut Dice,
    now_ms: i64,
) -> Result<RecordBatch, Fault> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            if field.name() == key && *field.data_type() == DataType::Utf8 {
                return Ok(Arc::new(StringArray::from_iter_values(keys)) as ArrayRef);
            }
            column(field, keys.len(), dice, now_ms)
        })
        .collect::<Result<_, _>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

/// Only the keys, as deletes want them.
pub fn key_batch(schema: &SchemaRef, key: &str, keys: &[String]) -> Result<RecordBatch, Fault> {
    let only_key = Arc::new(schema.project(&[schema.index_of(key)?])?);
    batch(&only_key, key, keys, &mut Dice::new(0), 0)
}

fn column(field: &Field, rows: usize, dice: &mut Dice, now_ms: i64) -> Result<ArrayRef, Fault> {
    match values(field, rows, dice, now_ms) {
        // The maker's lists have an "item"; other shapes of list do without.
        Some(array) if array.data_type() == field.data_type() => Ok(array),
        _ if field.is_nullable() => Ok(new_null_array(field.data_type(), rows)),
        _ => Err(Fault::new(
            Class::Unsupported,
            format!(
                "no values for column {:?} ({})",
                field.name(),
                field.data_type()
            ),
        )),
    }
}

fn values(field: &Field, rows: usize, dice: &mut Dice, now_ms: i64) -> Option<ArrayRef> {
    let each = 0..rows;
    Some(match field.data_type() {
        DataType::Utf8 => {
            let name = field.name();
            let value = |_| format!("{name}-{}", dice.roll(1000));
            Arc::new(StringArray::from_iter_values(each.map(value)))
        }
        // lance-context parses these as JSON.
        DataType::LargeUtf8 if field.name().ends_with("metadata") => {
            let value = |_| format!("{{\"step\":{}}}", dice.roll(1000));
            Arc::new(LargeStringArray::from_iter_values(each.map(value)))
        }
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter_values(
            each.map(|_| sentence(dice)),
        )),
        DataType::Int32 => Arc::new(Int32Array::from_iter_values(
            each.map(|_| i32::from(dice.roll(4096))),
        )),
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(
            each.map(|_| i64::from(dice.roll(4096))),
        )),
        DataType::Float32 => Arc::new(Float32Array::from_iter_values(
            each.map(|_| dice.fraction()),
        )),
        DataType::Float64 => Arc::new(Float64Array::from_iter_values(
            each.map(|_| f64::from(dice.fraction())),
        )),
        DataType::Boolean => {
            let value = |_| Some(dice.roll(2) == 1);
            Arc::new(each.map(value).collect::<BooleanArray>())
        }
        DataType::Timestamp(unit, zone) => timestamps(*unit, zone.clone(), rows, now_ms)?,
        DataType::Dictionary(..) => {
            let value = |_| ROLES[usize::from(dice.roll(3))];
            Arc::new(each.map(value).collect::<DictionaryArray<Int8Type>>())
        }
        DataType::List(item) => list(item.data_type(), rows, dice)?,
        DataType::FixedSizeList(_, length) => {
            let vector = |_| {
                Some(
                    (0..*length)
                        .map(|_| Some(dice.fraction()))
                        .collect::<Vec<_>>(),
                )
            };
            let vectors = each.map(vector);
            Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, *length))
        }
        DataType::LargeBinary => Arc::new(
            each.map(|row| payload(row, dice))
                .collect::<LargeBinaryArray>(),
        ),
        DataType::Binary => Arc::new(each.map(|row| payload(row, dice)).collect::<BinaryArray>()),
        _ => return None,
    })
}

fn sentence(dice: &mut Dice) -> String {
    let length = 8 + usize::from(dice.roll(24));
    let words: Vec<&str> = (0..length)
        .map(|_| WORDS[usize::from(dice.roll(WORDS.len() as u16))])
        .collect();
    words.join(" ")
}

/// Payloads are rare and small.
fn payload(row: usize, dice: &mut Dice) -> Option<Vec<u8>> {
    row.is_multiple_of(4).then(|| {
        let length = 32 + usize::from(dice.roll(96));
        (0..length).map(|_| dice.roll(256) as u8).collect()
    })
}

/// A second apart, the last one now.
fn timestamps(
    unit: TimeUnit,
    zone: Option<Arc<str>>,
    rows: usize,
    now_ms: i64,
) -> Option<ArrayRef> {
    let first = now_ms - 1000 * rows as i64;
    let millis = (1..=rows as i64).map(move |row| first + 1000 * row);
    Some(match unit {
        TimeUnit::Microsecond => Arc::new(
            TimestampMicrosecondArray::from_iter_values(millis.map(|ms| ms * 1000))
                .with_timezone_opt(zone),
        ),
        TimeUnit::Millisecond => {
            Arc::new(TimestampMillisecondArray::from_iter_values(millis).with_timezone_opt(zone))
        }
        TimeUnit::Second | TimeUnit::Nanosecond => return None,
    })
}

fn list(item: &DataType, rows: usize, dice: &mut Dice) -> Option<ArrayRef> {
    let mut lists = (0..rows).map(|_| {
        let length = 4 + dice.roll(8);
        (0..length)
            .map(|_| Some(dice.roll(100)))
            .collect::<Vec<_>>()
    });
    let array: ArrayRef = match item {
        DataType::Int32 => Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            lists.map(|list| {
                Some(
                    list.into_iter()
                        .map(|n| n.map(i32::from))
                        .collect::<Vec<_>>(),
                )
            }),
        )),
        DataType::Int8 => Arc::new(ListArray::from_iter_primitive::<Int8Type, _, _>(lists.map(
            |list| {
                Some(
                    list.into_iter()
                        .map(|n| n.map(|n| n as i8))
                        .collect::<Vec<_>>(),
                )
            },
        ))),
        DataType::Float32 => Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
            lists.map(|list| {
                let scaled = list.into_iter().map(|n| n.map(|n| f32::from(n) / -100.0));
                Some(scaled.collect::<Vec<_>>())
            }),
        )),
        DataType::Utf8 => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            lists.by_ref().for_each(|list| {
                let tags = list.into_iter().take(3);
                builder.append_value(tags.map(|n| n.map(|n| format!("tag-{n}"))));
            });
            Arc::new(builder.finish())
        }
        _ => return None,
    };
    Some(array)
}
