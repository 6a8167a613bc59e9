#!/bin/sh
# Makes the bucket, and has it tell lancefleet of what is written. May run again.
set -eu
until mc alias set store http://minio:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD" >/dev/null 2>&1; do
  echo "waiting for minio"
  sleep 2
done
mc mb --ignore-existing store/lake
mc event add --ignore-existing store/lake arn:minio:sqs::LANCEFLEET:webhook --event put --prefix fleet/
