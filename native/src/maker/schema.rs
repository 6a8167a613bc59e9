//! Columns of the kinds of experiment, as lance-context 0.6.7 declares them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::Deserialize;
use serde_json::json;

/// Key column of every kind.
pub const KEY: &str = "id";

const PRIMARY_KEY: &str = "lance-schema:unenforced-primary-key";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Rollout,
    Generic,
    Table,
}

impl Kind {
    /// Whether its writers go through a MemWAL.
    pub fn has_wal(self) -> bool {
        self != Self::Table
    }

    pub fn schema(self) -> SchemaRef {
        Arc::new(match self {
            Self::Rollout => Schema::new(rollout()),
            Self::Generic => Schema::new_with_metadata(generic(), declared()),
            Self::Table => Schema::new(table()),
        })
    }
}

/// The same columns, none of them a key.
pub fn without_key(schema: &Schema) -> SchemaRef {
    let plain = |field: &Arc<Field>| field.as_ref().clone().with_metadata(HashMap::new());
    let fields: Vec<Field> = schema.fields().iter().map(plain).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata.clone()))
}

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn key() -> Field {
    required(KEY, DataType::Utf8)
        .with_metadata(HashMap::from([(PRIMARY_KEY.to_owned(), "true".to_owned())]))
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(optional("item", item)))
}

fn related() -> DataType {
    DataType::Struct(
        vec![
            optional("target_id", DataType::Utf8),
            optional("relation", DataType::Utf8),
            optional("weight", DataType::Float32),
        ]
        .into(),
    )
}

fn rollout() -> Vec<Field> {
    use DataType::{
        Boolean, Dictionary, Float32, Int8, Int32, Int64, LargeBinary, LargeUtf8, Utf8,
    };
    vec![
        key(),
        required("rollout_id", Utf8),
        required("problem_id", Utf8),
        optional("dataset", Utf8),
        required("sequence_order", Int32),
        required("role", Dictionary(Box::new(Int8), Box::new(Utf8))),
        required(
            "created_at",
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        optional("content", LargeUtf8),
        required("content_type", Utf8),
        optional("model_input_string", LargeUtf8),
        optional("model_output_string", LargeUtf8),
        optional("rationale", LargeUtf8),
        optional("problem_text", LargeUtf8),
        optional("user_metadata", LargeUtf8),
        optional("input_tokens", list(Int32)),
        optional("output_tokens", list(Int32)),
        optional("num_input_tokens", Int32),
        optional("num_output_tokens", Int32),
        optional("output_logprobs", list(Float32)),
        optional("input_logprobs", list(Float32)),
        optional("ref_logprobs", list(Float32)),
        optional("loss_mask", list(Int8)),
        optional("advantage", Float32),
        optional("reward", Float32),
        optional("raw_reward", Float32),
        optional("grader_id", Utf8),
        optional("score", Float32),
        optional("include_in_training", Boolean),
        optional("exclude_reason", Utf8),
        optional("policy_version", Utf8),
        optional("relationships", list(related())),
        optional("binary_payload", LargeBinary),
        optional("payload_size", Int64),
        optional("payload_checksum", Utf8),
        optional("artifact_type", Utf8),
        optional("metadata", LargeUtf8),
    ]
}

/// A generic store's columns are its user's own; these are an example's.
fn generic() -> Vec<Field> {
    let vector = Arc::new(optional("item", DataType::Float32));
    vec![
        key(),
        optional("user", DataType::Utf8),
        optional("score", DataType::Float32),
        optional("tags", list(DataType::Utf8)),
        optional("vec", DataType::FixedSizeList(vector, 8)),
        optional("n", DataType::Int64),
    ]
}

/// What a generic store was told about its columns; it does not open without.
fn declared() -> HashMap<String, String> {
    let string = |nullable| json!({ "type": "string", "large": false, "nullable": nullable });
    let tags = json!({
        "type": "list", "item": { "type": "string", "large": false }, "nullable": true,
    });
    let vector = json!({ "type": "vector", "dim": 8, "metric": "cosine", "nullable": true });
    let columns = json!({ "columns": [
        [KEY, string(false)],
        ["user", string(true)],
        ["score", { "type": "float32", "nullable": true }],
        ["tags", tags],
        ["vec", vector],
        ["n", { "type": "int64", "nullable": true }],
    ] });
    HashMap::from([
        ("lance-context:schema_spec", columns.to_string()),
        ("lance-context:distance_metric:vec", "cosine".to_owned()),
        ("lance-context:seal_on_add", "false".to_owned()),
    ])
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

fn table() -> Vec<Field> {
    let vector = Arc::new(optional("item", DataType::Float32));
    vec![
        required(KEY, DataType::Utf8),
        optional("text", DataType::LargeUtf8),
        optional("value", DataType::Float64),
        optional("n", DataType::Int64),
        optional("vec", DataType::FixedSizeList(vector, 16)),
    ]
}
