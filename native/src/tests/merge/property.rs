//! Row equality over random histories: at every moment a reader who merges base
//! and generations for himself sees exactly what was written, and when nothing is
//! pending a plain reader of the base sees the same.

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, LargeBinaryArray, LargeStringArray, ListArray,
    StructArray,
};
use arrow_schema::Fields;
use lance::dataset::NewColumnTransform;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;

use super::*;

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A key's newest row: its number, and whether it was written with the column
/// that the table got later.
type Rows = BTreeMap<String, (i64, bool)>;

struct World {
    table: Table,
    random: Random,
    shards: Vec<Uuid>,
    rows: Rows,
    /// Keys appended straight to the base.
    appended: i64,
    evolved: bool,
    number: i64,
}

const BASE_KEYS: u64 = 12;

impl World {
    async fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shards = (0..1 + random.below(3)).map(|one| Uuid::from_u128(0x51 + u128::from(one)));
        let mut world = Self {
            table: Table::empty(true),
            shards: shards.collect(),
            random,
            rows: Rows::new(),
            appended: 0,
            evolved: false,
            number: 0,
        };
        for key in 0..BASE_KEYS {
            world.rows.insert(format!("base {key}"), (0, false));
        }
        let batch = world.expected_batch();
        let rows = RecordBatchIterator::new(vec![Ok(batch)], schema(false));
        let params = WriteParams {
            max_rows_per_file: 5,
            ..WriteParams::default()
        };
        let mut dataset = Box::pin(Dataset::write(rows, &world.table.path(), Some(params)))
            .await
            .unwrap();
        Box::pin(dataset.initialize_mem_wal().execute())
            .await
            .unwrap();
        world
    }

    async fn step(&mut self, engine: &Arc<Engine>) {
        match self.random.below(12) {
            0..=4 => self.write().await,
            5..=8 => self.merge(engine).await,
            9 => self.append().await,
            10 => self.compact().await,
            _ if !self.evolved => self.evolve().await,
            _ => self.index().await,
        }
    }

    /// Some generations of one shard. A key is only ever written by one shard.
    async fn write(&mut self) {
        let shard = self.random.below(self.shards.len() as u64);
        let mut generations = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let mut puts = Vec::new();
            for _ in 0..1 + self.random.below(4) {
                let key = self.key(shard);
                puts.push(match self.random.below(4) {
                    0 => self.delete(&key),
                    _ => self.put(&key),
                });
            }
            generations.push(puts);
        }
        let dataset = self.table.dataset().await;
        let shard = self.shards[shard as usize];
        Box::pin(write_generations(&dataset, shard, generations))
            .await
            .unwrap();
    }

    fn key(&mut self, shard: u64) -> String {
        let shards = self.shards.len() as u64;
        match self.random.below(2) {
            0 => format!(
                "base {}",
                self.random.below(BASE_KEYS / shards) * shards + shard
            ),
            _ => format!("new {shard} {}", self.random.below(6)),
        }
    }

    fn put(&mut self, key: &str) -> Put {
        self.number += 1;
        self.rows
            .insert(key.to_owned(), (self.number, self.evolved));
        Put::Rows(batch(self.evolved, &[(key, (self.number, self.evolved))]))
    }

    fn delete(&mut self, key: &str) -> Put {
        self.rows.remove(key);
        let only_key = Arc::new(schema(self.evolved).project(&[0]).unwrap());
        let keys: ArrayRef = Arc::new(StringArray::from(vec![key]));
        Put::Delete(RecordBatch::try_new(only_key, vec![keys]).unwrap())
    }

    async fn merge(&mut self, engine: &Arc<Engine>) {
        let shard = self.shards[self.random.below(self.shards.len() as u64) as usize];
        let request = MergeWal {
            max_generations: 1 + self.random.below(4) as usize,
            ..request(&self.table.path(), shard)
        };
        let merged = merge_with(engine, request).await;
        assert_eq!(merged["refused"], Value::Null, "{merged}");
    }

    async fn append(&mut self) {
        self.appended += 1;
        let key = format!("appended {}", self.appended);
        self.number += 1;
        let row = (self.number, self.evolved);
        self.rows.insert(key.clone(), row);
        let batch = batch(self.evolved, &[(&key, row)]);
        let rows = RecordBatchIterator::new(vec![Ok(batch)], schema(self.evolved));
        let params = WriteParams {
            mode: WriteMode::Append,
            ..WriteParams::default()
        };
        Box::pin(Dataset::write(rows, &self.table.path(), Some(params)))
            .await
            .unwrap();
    }

    async fn compact(&mut self) {
        let mut dataset = self.table.dataset().await;
        let options = CompactionOptions::default();
        Box::pin(compact_files(&mut dataset, options, None))
            .await
            .unwrap();
    }

    /// The table gets a column. Rows that are there already have none of it.
    async fn evolve(&mut self) {
        self.evolved = true;
        let later = Schema::new(vec![Field::new("later", DataType::Int64, true)]);
        let nulls = NewColumnTransform::AllNulls(Arc::new(later));
        let mut dataset = self.table.dataset().await;
        dataset.add_columns(nulls, None, None).await.unwrap();
    }

    async fn index(&mut self) {
        let mut dataset = self.table.dataset().await;
        let params = ScalarIndexParams::default();
        let name = Some("key".to_owned());
        Box::pin(dataset.create_index(&["id"], IndexType::BTree, name, &params, true))
            .await
            .unwrap();
    }

    fn expected_batch(&self) -> RecordBatch {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|(key, row)| (key.as_str(), *row))
            .collect();
        batch(self.evolved, &rows)
    }

    fn expected(&self) -> Vec<String> {
        sorted(vec![self.expected_batch()])
    }
}

fn schema(evolved: bool) -> Arc<Schema> {
    let key = Table::empty(true).schema().field(0).clone();
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let mut fields = vec![
        key,
        Field::new("number", DataType::Int64, false),
        Field::new("text", DataType::LargeUtf8, true),
        Field::new("payload", DataType::LargeBinary, true),
        Field::new("tags", DataType::List(item(DataType::Utf8)), true),
        Field::new(
            "meta",
            DataType::Struct(meta(&item(DataType::Float32))),
            true,
        ),
        Field::new(
            "role",
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
            false,
        ),
    ];
    if evolved {
        fields.push(Field::new("later", DataType::Int64, true));
    }
    Arc::new(Schema::new(fields))
}

fn meta(item: &Arc<Field>) -> Fields {
    vec![
        Field::new("step", DataType::Int32, true),
        Field::new("scores", DataType::List(item.clone()), true),
    ]
    .into()
}

/// Rows whose every column follows from their number.
fn batch(evolved: bool, rows: &[(&str, (i64, bool))]) -> RecordBatch {
    let schema = schema(evolved);
    let numbers: Vec<i64> = rows.iter().map(|(_, (number, _))| *number).collect();
    let each = || numbers.iter().copied();
    let some = |n: i64, other: i64| n % other != 0;
    let mut tags = ListBuilder::new(StringBuilder::new());
    for n in each() {
        match some(n, 5) {
            true => tags.append_value((0..n % 3).map(|tag| Some(format!("tag {tag} of {n}")))),
            false => tags.append_null(),
        }
    }
    let scores = ListArray::from_iter_primitive::<Float32Type, _, _>(
        each().map(|n| some(n, 3).then(|| vec![Some(n as f32 / 2.0), None])),
    );
    let steps = Int32Array::from_iter(each().map(|n| some(n, 2).then_some(n as i32)));
    let DataType::Struct(fields) = schema.field(5).data_type().clone() else {
        panic!("meta is no struct");
    };
    let role: DictionaryArray<arrow_array::types::Int8Type> =
        each().map(|n| ["user", "tool"][(n % 2) as usize]).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(Int64Array::from(numbers.clone())),
        Arc::new(LargeStringArray::from_iter(
            each().map(|n| some(n, 4).then(|| format!("text {n}"))),
        )),
        Arc::new(LargeBinaryArray::from_iter(
            each().map(|n| some(n, 3).then(|| vec![n as u8; n as usize % 50])),
        )),
        Arc::new(tags.finish()),
        Arc::new(StructArray::new(
            fields,
            vec![Arc::new(steps), Arc::new(scores)],
            None,
        )),
        Arc::new(role),
    ];
    if evolved {
        let later = rows
            .iter()
            .map(|(_, (number, with))| with.then_some(*number));
        columns.push(Arc::new(Int64Array::from_iter(later)));
    }
    RecordBatch::try_new(schema, columns).unwrap()
}

async fn live(seed: u64) {
    let (engine, mut world) = (engine(), World::new(seed).await);
    for step in 0..24 {
        world.step(&engine).await;
        let seen = lsm_rows(&world.table.dataset().await).await;
        assert_eq!(seen, world.expected(), "seed {seed}, step {step}");
    }
    for shard in world.shards.clone() {
        merge_all(&engine, request(&world.table.path(), shard)).await;
        let seen = lsm_rows(&world.table.dataset().await).await;
        assert_eq!(seen, world.expected(), "seed {seed}, {shard}");
    }
    assert_eq!(
        world.table.base_rows().await,
        world.expected(),
        "seed {seed}"
    );
}

#[tokio::test]
async fn random_histories_of_one_to_three_shards() {
    for seed in 1..=8 {
        Box::pin(live(seed)).await;
    }
}

/// Without a key every row of every generation counts.
#[tokio::test]
async fn random_histories_without_a_key() {
    for seed in 1..=4 {
        let mut random = Random(seed * 7919);
        let (engine, table) = (engine(), Table::with(false, &[("base", 0)]).await);
        let mut expected = vec!["id=base value=0".to_owned()];
        let names = ["a", "b", "c"];
        for _ in 0..12 {
            let shard = [SHARD, OTHER][random.below(2) as usize];
            if random.below(3) == 0 {
                let request = MergeWal {
                    max_generations: 1 + random.below(3) as usize,
                    ..request(&table.path(), shard)
                };
                merge_with(&engine, request).await;
                continue;
            }
            let name = names[random.below(3) as usize];
            let writes = [Row(name, 1), Row(name, 1)];
            table.generations(shard, &[&writes[..], &writes[..1]]).await;
            expected.extend(std::iter::repeat_n(format!("id={name} value=1"), 3));
        }
        for shard in [SHARD, OTHER] {
            merge_all(&engine, request(&table.path(), shard)).await;
        }
        expected.sort();
        assert_eq!(table.base_rows().await, expected, "seed {seed}");
    }
}
