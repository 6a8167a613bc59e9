mod append;
mod commit;
mod read;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use serde_json::Value;
use tempfile::TempDir;

use super::ipc::Table;
use super::*;

struct Place {
    engine: Arc<Engine>,
    _dir: TempDir,
    uri: String,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let uri = dir.path().join("_stats.rollout.lance");
    Place {
        engine: Arc::new(Engine::for_tests()),
        uri: uri.to_str().unwrap().to_owned(),
        _dir: dir,
    }
}

/// Columns of numbers; the first is required, the others are not.
fn numbers(columns: &[(&str, &[i64])]) -> Table {
    let field = |(index, (name, _)): (usize, &(&str, &[i64]))| {
        Field::new(*name, DataType::Int64, index > 0)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns
        .iter()
        .map(|(_, values)| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)
        .collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    Table {
        schema,
        batches: vec![batch],
    }
}

fn body(table: &Table) -> Bytes {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &table.schema).unwrap();
    for batch in &table.batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    writer.into_inner().unwrap().into()
}

fn request<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

impl Place {
    async fn commit(&self, expect: u64, table: &Table) -> Result<u64, Fault> {
        let properties = json!({ "lancefleet.action": "commit" });
        let json = json!({ "uri": self.uri, "expect_version": expect, "properties": properties });
        let reply = commit_snapshot(self.engine.clone(), request(json), body(table)).await?;
        Ok(reply.json["version"].as_u64().unwrap())
    }

    async fn append(&self, create: bool, table: &Table) -> Result<u64, Fault> {
        let json = json!({ "uri": self.uri, "create": create });
        let reply = append(self.engine.clone(), request(json), body(table)).await?;
        Ok(reply.json["version"].as_u64().unwrap())
    }

    async fn read(&self, json: Value) -> Result<(Value, Table), Fault> {
        let mut all = json!({ "uri": self.uri });
        all.as_object_mut()
            .unwrap()
            .extend(json.as_object().unwrap().clone());
        let reply = read_table(self.engine.clone(), request(all), Bytes::new()).await?;
        Ok((reply.json, ipc::read(reply.body.into())?))
    }

    /// The first column of the newest version, sorted.
    async fn values(&self) -> Vec<i64> {
        let (_, table) = self.read(json!({})).await.unwrap();
        let mut values: Vec<i64> = table
            .batches
            .iter()
            .flat_map(|batch| {
                batch
                    .column(0)
                    .as_primitive::<Int64Type>()
                    .values()
                    .to_vec()
            })
            .collect();
        values.sort_unstable();
        values
    }

    async fn head(&self) -> Result<Value, Fault> {
        let json = json!({ "uri": self.uri });
        let reply = head(self.engine.clone(), request(json), Bytes::new()).await?;
        Ok(reply.json)
    }

    /// Leaves the newest version only.
    async fn clean_up(&self) -> Value {
        let json = json!({ "uri": self.uri, "older_than_ms": 0, "keep": 1 });
        let reply = cleanup_versions(self.engine.clone(), request(json), Bytes::new()).await;
        reply.unwrap().json
    }

    fn manifest(&self, version: u64) -> PathBuf {
        let name = format!("{:020}.manifest", u64::MAX - version);
        PathBuf::from(&self.uri).join(VERSIONS_DIR).join(name)
    }
}

fn class<T>(outcome: Result<T, Fault>) -> Option<Class> {
    outcome.err().map(|fault| fault.class)
}
