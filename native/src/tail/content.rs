//! Rows by their content, so that rows of a WAL entry, of a generation and of the
//! base can be compared without keeping them: 128 bits of each row's key and of
//! all its columns. Equal values give equal digests however Arrow stores them
//! (slices, dictionaries, views); null and "" differ.

use std::hash::{DefaultHasher, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_schema::DataType;

use crate::error::{Class, Fault};

/// What a table has under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Digest of all columns.
    Row(u128),
    /// A tombstone; of a base table: no such key.
    Deleted,
    /// Several rows that differ. Equal to nothing.
    Several,
}

impl Content {
    pub fn same_as(self, other: Self) -> bool {
        self == other && self != Self::Several
    }

    /// What two rows of one table under the same key amount to.
    pub fn and(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self::Several,
        }
    }
}

/// Digests of the rows of a batch over the given columns, in order.
pub fn digests(columns: &[ArrayRef], rows: usize) -> Result<Vec<u128>, Fault> {
    let columns: Vec<Column> = columns.iter().map(Column::new).collect::<Result<_, _>>()?;
    Ok((0..rows)
        .map(|row| {
            let mut digest = Digest::default();
            for column in &columns {
                column.add(row, &mut digest);
            }
            digest.finish()
        })
        .collect())
}

/// Digests over the columns of these names. All of them must be there.
pub fn key_digests(batch: &RecordBatch, names: &[String]) -> Result<Vec<u128>, Fault> {
    let columns = names
        .iter()
        .map(|name| {
            batch.column_by_name(name).cloned().ok_or_else(|| {
                Fault::new(
                    Class::Corrupt,
                    format!("the key column {name:?} is missing"),
                )
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    digests(&columns, batch.num_rows())
}

/// Two hashes of 64 bits that start differently.
struct Digest(DefaultHasher, DefaultHasher);

impl Default for Digest {
    fn default() -> Self {
        let (mut low, mut high) = (DefaultHasher::new(), DefaultHasher::new());
        low.write_u8(1);
        high.write_u8(2);
        Self(low, high)
    }
}

impl Digest {
    fn tag(&mut self, tag: u8) {
        self.0.write_u8(tag);
        self.1.write_u8(tag);
    }

    fn length(&mut self, length: usize) {
        self.0.write_u64(length as u64);
        self.1.write_u64(length as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(&self) -> u128 {
        (u128::from(self.0.finish()) << 64) | u128::from(self.1.finish())
    }
}

/// One column of a batch, looked through to its values.
struct Column {
    array: ArrayRef,
    values: Values,
}

enum Values {
    Null,
    Boolean(BooleanArray),
    /// Values of one width, back to back.
    Fixed {
        bytes: Vec<u8>,
        width: usize,
    },
    Bytes(fn(&ArrayRef, usize) -> &[u8]),
    /// Where each row's elements lie in the child.
    List {
        ranges: Vec<(usize, usize)>,
        child: Box<Column>,
    },
    Struct(Vec<Column>),
    Dictionary {
        keys: Vec<usize>,
        values: Box<Column>,
    },
}

const NULL: u8 = 0;
const VALUE: u8 = 1;

impl Column {
    fn new(array: &ArrayRef) -> Result<Self, Fault> {
        Ok(Self {
            values: Values::of(array)?,
            array: array.clone(),
        })
    }

    fn add(&self, row: usize, digest: &mut Digest) {
        if matches!(self.values, Values::Null) || self.array.is_null(row) {
            return digest.tag(NULL);
        }
        if let Values::Dictionary { keys, values } = &self.values {
            return values.add(keys[row], digest);
        }
        digest.tag(VALUE);
        match &self.values {
            Values::Null | Values::Dictionary { .. } => {}
            Values::Boolean(array) => digest.tag(u8::from(array.value(row))),
            Values::Fixed { bytes, width } => {
                digest.bytes(&bytes[row * width..(row + 1) * width]);
            }
            Values::Bytes(value) => digest.bytes(value(&self.array, row)),
            Values::List { ranges, child } => {
                let (start, end) = ranges[row];
                digest.length(end - start);
                for element in start..end {
                    child.add(element, digest);
                }
            }
            Values::Struct(children) => {
                for child in children {
                    child.add(row, digest);
                }
            }
        }
    }
}

impl Values {
    fn of(array: &ArrayRef) -> Result<Self, Fault> {
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Boolean(array.as_boolean().clone()),
            DataType::Utf8 => Self::Bytes(|a, row| a.as_string::<i32>().value(row).as_bytes()),
            DataType::LargeUtf8 => Self::Bytes(|a, row| a.as_string::<i64>().value(row).as_bytes()),
            DataType::Utf8View => Self::Bytes(|a, row| a.as_string_view().value(row).as_bytes()),
            DataType::Binary => Self::Bytes(|a, row| a.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Self::Bytes(|a, row| a.as_binary::<i64>().value(row)),
            DataType::BinaryView => Self::Bytes(|a, row| a.as_binary_view().value(row)),
            DataType::FixedSizeBinary(_) => {
                Self::Bytes(|a, row| a.as_fixed_size_binary().value(row))
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let ends = list.value_offsets().iter().map(|end| *end as usize);
                Self::list(ends, list.values())?
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let ends = list.value_offsets().iter().map(|end| *end as usize);
                Self::list(ends, list.values())?
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let ends = map.value_offsets().iter().map(|end| *end as usize);
                let entries: StructArray = map.entries().clone();
                Self::list(ends, &(std::sync::Arc::new(entries) as ArrayRef))?
            }
            DataType::FixedSizeList(_, size) => {
                let size = *size as usize;
                let ends = (0..=array.len()).map(|row| row * size);
                Self::list(ends, array.as_fixed_size_list().values())?
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns();
                Self::Struct(columns.iter().map(Column::new).collect::<Result<_, _>>()?)
            }
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                Self::Dictionary {
                    keys: keys_of(array),
                    values: Box::new(Column::new(dictionary.values())?),
                }
            }
            other => Self::fixed(array, other)?,
        })
    }

    fn list(ends: impl Iterator<Item = usize> + Clone, child: &ArrayRef) -> Result<Self, Fault> {
        Ok(Self::List {
            ranges: ends.clone().zip(ends.skip(1)).collect(),
            child: Box::new(Column::new(child)?),
        })
    }

    /// Numbers, times, decimals, intervals.
    fn fixed(array: &ArrayRef, data_type: &DataType) -> Result<Self, Fault> {
        let width = data_type.primitive_width().ok_or_else(|| {
            Fault::new(
                Class::Unsupported,
                format!("columns of type {data_type} can't be compared"),
            )
        })?;
        let data = array.to_data();
        let start = data.offset() * width;
        let bytes = &data.buffers()[0].as_slice()[start..start + array.len() * width];
        Ok(Self::Fixed {
            bytes: bytes.to_vec(),
            width,
        })
    }
}

/// Indexes into a dictionary's values; anything for a null.
fn keys_of(array: &ArrayRef) -> Vec<usize> {
    let dictionary = array.as_any_dictionary();
    match dictionary.values().is_empty() {
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        DictionaryArray, FixedSizeListArray, Float64Array, Int64Array, LargeBinaryArray, ListArray,
        NullArray, StringArray,
    };
    use arrow_schema::{Field, Fields};

    use super::*;

    fn of(column: impl Array + 'static) -> Vec<u128> {
        let column: ArrayRef = Arc::new(column);
        let rows = column.len();
        digests(&[column], rows).unwrap()
    }

    #[test]
    fn equal_values_are_equal_wherever_they_stand() {
        let all = Int64Array::from(vec![Some(1), Some(7), None, Some(7)]);
        let seen = of(all.clone());
        assert_eq!(seen[1], seen[3]);
        assert_eq!(of(all.slice(1, 3)), seen[1..]);
        assert_ne!(seen[0], seen[1]);
        assert_ne!(seen[2], of(Int64Array::from(vec![0]))[0]);
    }

    #[test]
    fn null_and_empty_differ_and_columns_do_not_run_into_each_other() {
        let seen = of(StringArray::from(vec![Some(""), None]));
        assert_ne!(seen[0], seen[1]);
        let rows = |left: &str, right: &str| {
            let column = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
            digests(&[column(left), column(right)], 1).unwrap()
        };
        assert_ne!(rows("ab", "c"), rows("a", "bc"));
        assert_ne!(rows("", "x"), rows("x", ""));
        assert_eq!(of(NullArray::new(2)).len(), 2);
    }

    #[test]
    fn a_dictionary_counts_by_its_values() {
        let one: DictionaryArray<Int8Type> = vec!["b", "a", "b"].into_iter().collect();
        let other: DictionaryArray<Int8Type> = vec!["a", "b"].into_iter().collect();
        let (one, other) = (of(one), of(other));
        assert_eq!(one[0], one[2]);
        assert_eq!((one[0], one[1]), (other[1], other[0]));
        let nulls: DictionaryArray<Int8Type> = vec![None::<&str>, None].into_iter().collect();
        assert_eq!(of(nulls)[0], of(StringArray::from(vec![None::<&str>]))[0]);
    }

    #[test]
    fn lists_and_structs_are_looked_into() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(1), None]),
            Some(vec![]),
            None,
            Some(vec![Some(1), Some(2)]),
        ]);
        let seen = of(lists.clone());
        assert_eq!(seen[0], seen[4]);
        assert_eq!(of(lists.slice(4, 1))[0], seen[0]);
        for (left, right) in [(0, 1), (1, 2), (2, 3)] {
            assert_ne!(seen[left], seen[right]);
        }
        let vectors = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
            [Some(vec![Some(1), Some(2)]), Some(vec![Some(1), Some(3)])],
            2,
        );
        let whole = of(vectors.clone());
        assert_ne!(whole[0], whole[1]);
        assert_eq!(of(vectors.slice(1, 1))[0], whole[1]);
        let fields: Fields = vec![Field::new("a", DataType::Float64, true)].into();
        let children: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(vec![Some(0.5), None]))];
        let there = StructArray::new(fields.clone(), children.clone(), None);
        let absent = StructArray::new(fields, children, Some(vec![true, false].into()));
        let (there, absent) = (of(there), of(absent));
        assert_eq!(there[0], absent[0]);
        assert_ne!(there[1], absent[1]);
    }

    #[test]
    fn floats_are_compared_by_their_bits() {
        let seen = of(Float64Array::from(vec![0.0, -0.0, f64::NAN, f64::NAN]));
        assert_ne!(seen[0], seen[1]);
        assert_eq!(seen[2], seen[3]);
        let bytes = of(LargeBinaryArray::from(vec![b"ab".as_ref(), b"ac"]));
        assert_ne!(bytes[0], bytes[1]);
    }
}
