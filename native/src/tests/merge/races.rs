//! Two attempts at one shard that started from the same version, in every order
//! of their commits, beside others who write to the table. A reader who merges
//! for himself sees the same rows at every moment.

use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{MergeInsertBuilder, WhenMatched, WhenNotMatched};
use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;

use super::*;
use crate::merge::{Look, Outcome, Step};

const BASE: [(&str, i64); 4] = [("a", 0), ("b", 0), ("c", 0), ("k", 0)];

/// `x` is put and deleted again: an attempt that ends between the two inserts it,
/// and one that goes on after must take it out, although neither sees the other.
const WRITES: [&[Write]; 4] = [
    &[Row("a", 1), Row("x", 1)],
    &[Row("a", 2), Delete("b"), Row("w", 2)],
    &[Delete("x"), Row("b", 3), Delete("w")],
    &[Row("w", 4), Row("y", 4), Delete("c")],
];
const ROWS: [&str; 5] = [
    "id=a value=2",
    "id=b value=3",
    "id=k value=0",
    "id=w value=4",
    "id=y value=4",
];

/// What somebody else does to the table meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Nothing,
    /// Rows of keys that the generations put and delete, and one of its own.
    Append,
    /// The same, by key.
    Upsert,
    /// Of a base in two fragments.
    Compact,
    /// A row that the generations replace.
    Delete,
    BuildIndex,
}

#[derive(Clone, Copy, Debug)]
struct Race {
    keyed: bool,
    indexed: bool,
    /// Generations that the two attempts take.
    takes: (usize, usize),
    foreign: Foreign,
    /// Between the two commits, else before both.
    between: bool,
    /// The first to commit drains before the second commits.
    drains: bool,
}

impl Race {
    fn all(keyed: bool, indexed: bool) -> Vec<Self> {
        let mut all = Vec::new();
        let mut foreign = vec![Foreign::Nothing, Foreign::Append, Foreign::Compact];
        if keyed {
            foreign.extend([Foreign::Upsert, Foreign::Delete, Foreign::BuildIndex]);
        }
        for takes in [(4, 4), (2, 4), (4, 2), (1, 3)] {
            for foreign in &foreign {
                for (between, drains) in [(false, false), (true, false), (true, true)] {
                    all.push(Self {
                        keyed,
                        indexed,
                        takes,
                        foreign: *foreign,
                        between,
                        drains,
                    });
                }
            }
        }
        all
    }

    async fn run(self) {
        let engine = engine();
        let table = self.table().await;
        let mut first = Attempt::start(&engine, &table, self.takes.0).await;
        let mut second = Attempt::start(&engine, &table, self.takes.1).await;
        let mut expected = self.expected(false);
        if !self.between {
            expected = self.meanwhile(&table).await;
            self.check(&table, &expected).await;
        }
        let landed = first.commit().await;
        self.check(&table, &expected).await;
        let landed = match landed {
            Some(version) if self.drains => {
                first.drain(version).await;
                None
            }
            None => {
                first.pass.make().await.unwrap();
                self.check(&table, &expected).await;
                None
            }
            landed => landed,
        };
        if self.between {
            expected = self.meanwhile(&table).await;
            self.check(&table, &expected).await;
        }
        match second.commit().await {
            Some(version) => {
                self.check(&table, &expected).await;
                second.drain(version).await;
            }
            // It goes on with what it has staged.
            None => {
                second.pass.make().await.unwrap();
            }
        }
        self.check(&table, &expected).await;
        if let Some(version) = landed {
            first.drain(version).await;
            self.check(&table, &expected).await;
        }
        merge_all(&engine, request(&table.path(), SHARD)).await;
        assert_eq!(table.base_rows().await, expected, "{self:?}");
        assert_eq!(table.mark(SHARD).await, 4, "{self:?}");
        assert!(table.listed(SHARD).await.is_empty(), "{self:?}");
    }

    async fn table(self) -> Table {
        let table = Table::with(self.keyed, &BASE[..2]).await;
        table.write(WriteMode::Append, &BASE[2..]).await;
        if self.indexed {
            build_index(&table).await;
        }
        let keyless: [&[Write]; 4] = [
            &[Row("a", 1), Row("x", 1)],
            &[Row("a", 1)],
            &[Row("b", 3)],
            &[Row("y", 4)],
        ];
        let writes = if self.keyed { WRITES } else { keyless };
        table.generations(SHARD, &writes).await;
        table
    }

    fn expected(self, appended: bool) -> Vec<String> {
        let mut rows: Vec<&str> = match self.keyed {
            true => ROWS.to_vec(),
            false => vec![
                "id=a value=0",
                "id=a value=1",
                "id=a value=1",
                "id=b value=0",
                "id=b value=3",
                "id=c value=0",
                "id=k value=0",
                "id=x value=1",
                "id=y value=4",
            ],
        };
        if appended && !self.keyed {
            rows.extend(["id=w value=9", "id=x value=9", "id=y value=9"]);
        }
        if appended {
            rows.push("id=z value=9");
        }
        rows.sort_unstable();
        rows.into_iter().map(str::to_owned).collect()
    }

    /// Somebody else acts; answers what the rows are from then on.
    async fn meanwhile(self, table: &Table) -> Vec<String> {
        match self.foreign {
            Foreign::Nothing => {}
            Foreign::Append if self.between && self.keyed => {
                // What is merged already is older than this append, which then
                // makes repeated keys of its own.
                table.write(WriteMode::Append, &[("z", 9)]).await;
                return self.expected(true);
            }
            Foreign::Append => {
                let rows = [("w", 9), ("x", 9), ("y", 9), ("z", 9)];
                table.write(WriteMode::Append, &rows).await;
                return self.expected(true);
            }
            Foreign::Upsert if self.between => {
                upsert(table, &[("z", 9)]).await;
                return self.expected(true);
            }
            Foreign::Upsert => {
                upsert(table, &[("w", 9), ("x", 9), ("y", 9), ("z", 9)]).await;
                return self.expected(true);
            }
            Foreign::Compact => {
                let mut dataset = table.dataset().await;
                let options = CompactionOptions::default();
                let done = Box::pin(compact_files(&mut dataset, options, None))
                    .await
                    .unwrap();
                // Indexed fragments are not joined with new ones.
                let apart = self.indexed && self.between;
                assert!(done.fragments_removed > 1 || apart, "{done:?}");
            }
            Foreign::Delete if self.between => {}
            Foreign::Delete => {
                let mut dataset = table.dataset().await;
                Box::pin(dataset.delete("id = 'a'")).await.unwrap();
            }
            Foreign::BuildIndex if !self.indexed => build_index(table).await,
            Foreign::BuildIndex => {}
        }
        self.expected(false)
    }

    async fn check(self, table: &Table, expected: &[String]) {
        if self.keyed {
            let seen = lsm_rows(&table.dataset().await).await;
            assert_eq!(seen, expected, "{self:?}");
        }
    }
}

async fn upsert(table: &Table, rows: &[(&str, i64)]) {
    let dataset = Arc::new(table.dataset().await);
    let mut merge = MergeInsertBuilder::try_new(dataset, vec!["id".to_owned()]).unwrap();
    merge
        .when_matched(WhenMatched::UpdateAll)
        .when_not_matched(WhenNotMatched::InsertAll);
    let rows = RecordBatchIterator::new(vec![Ok(table.batch(rows))], table.schema());
    let reader = Box::new(rows) as Box<dyn arrow_array::RecordBatchReader + Send>;
    Box::pin(merge.try_build().unwrap().execute_reader(reader))
        .await
        .unwrap();
}

async fn build_index(table: &Table) {
    let mut dataset = table.dataset().await;
    let params = ScalarIndexParams::default();
    let name = Some("key".to_owned());
    Box::pin(dataset.create_index(&["id"], IndexType::BTree, name, &params, true))
        .await
        .unwrap();
}

/// A pass that stands still before its commit.
struct Attempt<'a> {
    engine: &'a Engine,
    uri: String,
    pass: Pass<'a>,
    look: Look,
    step: Option<Step>,
}

impl<'a> Attempt<'a> {
    async fn start(engine: &'a Engine, table: &Table, generations: usize) -> Self {
        let request = MergeWal {
            max_generations: generations,
            ..request(&table.path(), SHARD)
        };
        let mut pass = pass(engine, request);
        let look = pass.look().await.unwrap();
        let step = Box::pin(pass.prepare(&look)).await.unwrap();
        Self {
            engine,
            uri: table.path(),
            pass,
            look,
            step: Some(step),
        }
    }

    /// The version it landed as, if it did.
    async fn commit(&mut self) -> Option<u64> {
        let Some(Step::Ready(prepared)) = self.step.take() else {
            panic!("nothing to commit");
        };
        match prepared.commit(self.engine, &self.uri).await.unwrap() {
            Outcome::Landed(version) => Some(version),
            Outcome::Lost(_) => None,
        }
    }

    async fn drain(&mut self, version: u64) {
        self.pass.finish(&self.look, Some(version)).await.unwrap();
    }
}

#[tokio::test]
async fn two_attempts_at_a_keyed_table() {
    for race in Race::all(true, false) {
        Box::pin(race.run()).await;
    }
}

#[tokio::test]
async fn two_attempts_at_a_keyed_table_with_an_index_on_the_key() {
    for race in Race::all(true, true) {
        Box::pin(race.run()).await;
    }
}

#[tokio::test]
async fn two_attempts_at_a_table_without_a_key() {
    for race in Race::all(false, false) {
        Box::pin(race.run()).await;
    }
}

/// The late attempt's rows are older than what was merged since.
#[tokio::test]
async fn an_attempt_that_comes_after_newer_ones_changes_nothing() {
    for keyed in [true, false] {
        for takes in [1, 2, 4] {
            let (engine, table) = (engine(), Table::with(keyed, &BASE).await);
            let (early, late): (&[&[Write]], &[&[Write]]) = match keyed {
                true => (&WRITES[..2], &WRITES[2..]),
                false => (&[&[Row("p", 1)], &[Row("q", 1)]], &[&[Row("r", 1)]]),
            };
            table.generations(SHARD, early).await;
            let mut zombie = Attempt::start(&engine, &table, takes).await;
            merge_all(&engine, request(&table.path(), SHARD)).await;
            table.generations(SHARD, late).await;
            merge_all(&engine, request(&table.path(), SHARD)).await;
            let (rows, before) = (table.base_rows().await, table.mark(SHARD).await);
            assert_eq!(zombie.commit().await, None, "{keyed} {takes}");
            assert_eq!(table.base_rows().await, rows);
            assert_eq!(table.mark(SHARD).await, before);
        }
    }
}

#[tokio::test]
async fn passes_over_two_shards_at_once_both_land() {
    let (engine, table) = (engine(), Table::with(false, &BASE).await);
    table.generations(SHARD, &[&[Row("p", 1)]]).await;
    table.generations(OTHER, &[&[Row("q", 1)]]).await;
    let mut first = Attempt::start(&engine, &table, 8).await;
    merge(&engine, &table.path(), OTHER).await;
    assert!(first.commit().await.is_some());
    assert_eq!(table.base_rows().await.len(), 6);
}

/// A key of a type that Lance has no name for can't be told to others: then two
/// shards, which may both insert it, take turns.
#[tokio::test]
async fn passes_over_two_shards_take_turns_where_keys_have_no_name() {
    let table = Table::empty(true);
    let key = table.schema().field(0).metadata().clone();
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int16, false).with_metadata(key),
        Field::new("value", DataType::Int64, true),
    ]));
    let row = |value: i64| {
        let id = arrow_array::Int16Array::from(vec![1]);
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(id), Arc::new(Int64Array::from(vec![value]))];
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    let rows = RecordBatchIterator::new(Vec::new(), schema.clone());
    let mut dataset = Box::pin(Dataset::write(rows, &table.path(), None))
        .await
        .unwrap();
    Box::pin(dataset.initialize_mem_wal().execute())
        .await
        .unwrap();
    for (shard, value) in [(SHARD, 1), (OTHER, 2)] {
        let puts = vec![vec![Put::Rows(row(value))]];
        Box::pin(write_generations(&dataset, shard, puts))
            .await
            .unwrap();
    }
    let engine = engine();
    let mut first = Attempt::start(&engine, &table, 8).await;
    merge(&engine, &table.path(), OTHER).await;
    assert_eq!(first.commit().await, None);
    first.pass.make().await.unwrap();
    assert_eq!(table.base_rows().await, ["id=1 value=1"]);
}
